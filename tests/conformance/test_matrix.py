"""Every estimator with every method, as `docs/matrix.md` says."""

from __future__ import annotations

import re
from functools import cache

import matrix
import pytest

#: Estimators whose column takes long; those are for `make test-slow`.
LONG = ("HiddenChainCRF", "LatentDynamicCRF", "DependencyCRF", "OracleCRF")


@cache
def written():
    """What the page says, by row and estimator: a tick, a sentence, or nothing."""
    text = matrix.PAGE.read_text()
    sentences = dict(re.findall(r"^(\d+)\. (.+)$", text, re.MULTILINE))
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")][1:]
    out, keys = {}, iter(matrix.ROWS)
    for first, *entries in rows:
        if first.strip().startswith(("**", "---")):
            continue
        key = next(keys)
        assert first.strip() == key[1]
        for name, entry in zip(matrix.SUBJECTS, entries, strict=True):
            out[name, key] = sentences.get(entry.strip(), entry.strip())
    assert next(keys, None) is None, "the page lacks rows"
    return out


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in matrix.SUBJECTS]
)
def test_the_page_says_what_works_and_why_the_rest_does_not(name):
    for row, cell in matrix.cells(name).items():
        said = written()[name, row]
        assert cell.state != "wrong", f"{name}, {': '.join(row)}: {cell.sentence}"
        assert said == {"works": "✓", "missing": "–"}.get(cell.state, cell.sentence), f"{name}, {': '.join(row)}"


def test_every_cell_of_the_page_is_a_tick_a_reason_or_a_gap():
    for (name, row), said in written().items():
        assert said in ("✓", "–") or said.endswith("."), f"{name}, {': '.join(row)}: {said}"
