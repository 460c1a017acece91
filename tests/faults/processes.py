"""Children by fork and spawn that ask, fit, save and load: all as in the parent."""

from __future__ import annotations

import multiprocessing
from typing import Any

from harness import Counts, Worker, run_cases

#: A few of each family; every child by spawn begins with seconds of imports.
FORKED = ("SoftmaxRegression", "ChainCRF", "GraphCRF", "MarkovNetwork", "MatchingCRF", "LatentSoftmax", "BayesianNetwork")
FORKED += ("ColumnTagger",)
SPAWNED = ("SoftmaxRegression", "ChainCRF", "MarkovNetwork")


def answer(name: str) -> str:
    """Fit a model, save it, load it, and ask."""
    import os
    import tempfile
    import warnings

    from questions import told
    from zoo import CASES

    import partita as pt

    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        path = os.path.join(folder, "m")
        CASES[name].fitted().save(path)
        return told(pt.load(path))


def attempt(case: tuple[str, list[str]]) -> tuple[str, str]:
    method, names = case
    expected = [answer(name) for name in names]  # the parent has compiled, and has threads, before it forks
    context: Any = multiprocessing.get_context(method)
    with context.Pool(2) as pool:
        found = pool.map(answer, names)
    wrong = [name for name, a, b in zip(names, expected, found, strict=True) if a != b]
    return ("silent", f"differ: {wrong}") if wrong else ("same", "")


def main(budget_seconds: float, seed: int, short: bool = False, worker: Worker | None = None) -> Counts:
    methods = multiprocessing.get_all_start_methods()
    cases = [("fork", ("fork", [name])) for name in FORKED[: 3 if short else None]] if "fork" in methods else []
    if not short:
        cases += [("spawn", ("spawn", list(SPAWNED)))]
    counts = run_cases("processes:attempt", cases, max(budget_seconds, 60.0), seconds=120.0, worker=worker)
    counts.skipped = "" if "fork" in methods else "no fork here"
    return counts
