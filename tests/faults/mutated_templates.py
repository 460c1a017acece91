"""Changed template files, used on a small column file."""

from __future__ import annotations

import itertools
from typing import Any

from harness import Counts, Worker, judge, run_cases
from texts import changed, corpus

WORDS = [b"U00:", b"B", b"%x[0,0]", b"%x[-1,1]", b"%x[100,0]", b"%suffix3[0,0]", b"%x[0,9]", b"%y[0,0]", b"%x[,]", b"*"]
TEMPLATES = [
    b"# words\nU00:%x[-1,0]\nU01:%x[0,0]\nU02:%x[1,0]\nU03:%x[0,0]/%x[0,1]\n\nB\n",
    b"U:%lower[0,0]\nU:%shape[0,0]\nU:%prefix2[0,0]|%suffix2[-2,0]\nB\n",
]
DATA = b"the D x\ncat N y\n\na D x\ncat N y\nsat V y\n"


def attempt(text: bytes) -> tuple[str, str]:
    import io

    from partita import ChainCRF, ColumnTagger
    from partita.features import Templates
    from partita.io import read_columns

    try:
        templates = Templates.parse(text.decode())
        columns = read_columns(io.BytesIO(DATA))
        tagger = ColumnTagger(templates, ChainCRF(max_iter=2, tol=1.0)).fit(columns)
        tagger.predict(columns)
    except UnicodeDecodeError:
        return "refused", "not text"  # of this test, not of the library
    except Exception as error:
        return judge(error)
    return "legal", ""


def main(budget_seconds: float, seed: int, most: int | None = None, worker: Worker | None = None) -> Counts:
    cases: Any = itertools.chain(corpus("template"), changed(TEMPLATES, seed, WORDS))
    return run_cases("mutated_templates:attempt", cases, budget_seconds, most=most, worker=worker)
