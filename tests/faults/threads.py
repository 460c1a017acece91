"""Eight threads that ask one model, and fits in two threads at once: all as if one after the other."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from harness import Counts, Worker, run_cases

THREADS = 8


def _predictions(model: Any) -> str:
    """What a model says that does not change it; all threads share the one model."""
    from questions import answers, plain

    asked = answers(model)
    return json.dumps([plain(next(asked)), plain(next(asked, None))])


def attempt(case: tuple[str, str]) -> tuple[str, str]:
    from questions import told
    from zoo import CASES

    what, name = case
    fit = CASES[name].fitted
    model = fit()
    ask = _predictions if what == "questions" else lambda _: told(fit())
    expected = ask(model)
    fresh = fit() if what == "questions" else model  # nothing that it derives from its weights is there yet
    count = THREADS if what == "questions" else 2
    with ThreadPoolExecutor(count) as pool:
        found = list(pool.map(lambda _: ask(fresh), range(3 * count)))
    wrong = sum(text != expected for text in found)
    return ("silent", f"{wrong} of {len(found)} differ") if wrong else ("same", "")


def main(budget_seconds: float, seed: int, most: int | None = None, worker: Worker | None = None) -> Counts:
    from zoo import CASES

    cases = [(f"{what}: {name}", (what, name)) for what in ("questions", "fits") for name in CASES]
    return run_cases("threads:attempt", cases, max(budget_seconds, 10.0), seconds=120.0, most=most, worker=worker)
