"""Changed models, evidence and answers in the format of the UAI competitions."""

from __future__ import annotations

import itertools
import os
from typing import Any

from harness import Counts, Worker, judge, run_cases, scratch
from texts import changed, corpus

MODELS = [
    b"MARKOV\n3\n2 2 3\n3\n1 0\n2 0 1\n2 1 2\n\n2\n 0.4 0.6\n\n4\n 0.1 0.9 0.5 0.5\n\n6\n 0.2 0.3 0.5 0.1 0 0.9\n",
    b"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n\n2\n 0.4 0.6\n\n4\n 0.25 0.75 0.5 0.5\n",
    b"MARKOV\n1\n2\n2\n0\n1 0\n\n1\n 2.5\n\n2\n 1 1\n",
]
EVIDENCE = [b"2 0 1 2 2\n", b"1\n1 0 1\n", b"0\n"]
ANSWERS = [b"PR\n-1.25\n", b"MAR\n3 2 0.5 0.5 2 1 0 3 0.2 0.3 0.5\n", b"MAP\n3 1 0 2\n"]


def attempt(case: tuple[str, str]) -> tuple[str, str]:
    import numpy as np

    from partita import io

    kind, path = case
    try:
        if kind == "model":
            graph, potentials = io.read_uai(path)
            result = graph.infer(potentials)
            if np.isnan(result.log_z).any() or ((result.log_z > -np.inf).all() and np.isnan(result.marginals).any()):
                return "silent", "NaN"
            graph.argmax(potentials)
        elif kind == "evidence":
            io.read_evidence(path, [2, 2, 3])
        else:
            for read in (io.read_partition, io.read_marginals, io.read_states):
                try:
                    read(path)
                except Exception as error:
                    outcome, text = judge(error)
                    if outcome != "refused":
                        return outcome, text
    except Exception as error:
        return judge(error)
    return "legal", ""


def main(budget_seconds: float, seed: int, most: int | None = None, worker: Worker | None = None) -> Counts:
    with scratch() as folder:
        path = os.path.join(folder, "file")

        def cases() -> Any:
            kept = (("model", text) for text in corpus("uai"))
            streams = (("model", MODELS), ("model", MODELS), ("evidence", EVIDENCE), ("answer", ANSWERS))
            endless = [zip(itertools.repeat(kind), changed(texts, seed + k)) for k, (kind, texts) in enumerate(streams)]
            mixed = (case for row in zip(*endless, strict=False) for case in row)
            for kind, (what, text) in itertools.chain(kept, mixed):
                with open(path, "wb") as file:
                    file.write(text)
                yield f"{kind} {what}", (kind, path)

        return run_cases("mutated_uai:attempt", cases(), budget_seconds, most=most, worker=worker)
