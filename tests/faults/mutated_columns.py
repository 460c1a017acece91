"""Changed column files: NUL bytes, broken UTF-8, lines without end, gzip that is cut off; read whole and in blocks."""

from __future__ import annotations

import itertools
import os
from typing import Any

import numpy as np
from harness import Counts, Worker, judge, run_cases, scratch
from texts import changed, corpus

FILES = [
    b"the D x\ncat N y\n\na D x\ncat N y\nsat V y\n",
    "naïve A\ncafé N\n\n\n日本 N\n".encode(),
    b"# id = 1\n1\tthe\tthe\tDET\tDT\t_\t2\tdet\t_\t_\n2-3\tcat's\t_\t_\t_\t_\t_\t_\t_\t_\n\n",
    b"a b\r\nc d\r\n\r\ne f\r\n",
    b"x" * 100_000 + b" L\n" + b"y L\n" * 1000,
]


def attempt(path: str) -> tuple[str, str]:
    from partita.io import iter_columns, read_columns, read_conllu

    refused = []
    for options in ({}, {"separator": "\t"}, {"comments": "#"}, {"encoding": "latin-1"}):
        try:
            whole = read_columns(path, **options)
            parts = [block.columns for block in iter_columns(path, 2, **options)]
        except Exception as error:
            outcome, text = judge(error)
            if outcome != "refused":
                return outcome, text
            refused.append(text)
            continue
        tokens = sum(part.n_tokens for part in parts)
        sequences = [sequence for part in parts for sequence in part.sequences(0)]
        if tokens != whole.n_tokens or sequences != whole.sequences(0):
            return "silent", f"{whole.n_tokens} tokens at once, {tokens} in blocks"
    try:
        read_conllu(path)
    except Exception as error:
        outcome, text = judge(error)
        if outcome != "refused":
            return outcome, text
    return ("refused", refused[0]) if refused else ("legal", "")


def main(budget_seconds: float, seed: int, most: int | None = None, worker: Worker | None = None) -> Counts:
    with scratch() as folder:
        path = os.path.join(folder, "file")

        def cases() -> Any:
            noise = (("noise", np.random.default_rng(k).bytes(200)) for k in range(5))
            for what, text in itertools.chain(corpus("columns"), noise, changed(FILES, seed)):
                with open(path, "wb") as file:
                    file.write(text)
                yield what, path

        return run_cases("mutated_columns:attempt", cases(), budget_seconds, most=most, worker=worker)
