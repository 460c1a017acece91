"""Models, evidence and answers in the format of the UAI inference competitions."""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np

from ..core.results import FloatArray, IntArray
from ..structures import FactorGraph

Path = str | os.PathLike[str]


class _Tokens:
    """The words of a file, with the line of the last one for errors."""

    def __init__(self, path: Path) -> None:
        self.path, self.line = os.fspath(path), 1
        with open(path, encoding="utf-8") as file:
            self._words: Iterator[tuple[int, str]] = iter(
                [(number, word) for number, line in enumerate(file, 1) for word in line.split()]
            )

    def fail(self, message: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.line}: {message}")

    def word(self, what: str) -> str:
        try:
            self.line, word = next(self._words)
        except StopIteration:
            raise self.fail(f"the file ends where {what} should be") from None
        return word

    def count(self, what: str, least: int, most: float = np.inf) -> int:
        word = self.word(what)
        try:
            number = int(word)
        except ValueError:
            raise self.fail(f"{what} must be an integer, got {word!r}") from None
        if not least <= number <= most:
            raise self.fail(f"{what} must be from {least} to {most}, got {number}")
        return number

    def numbers(self, what: str, count: int) -> FloatArray:
        rows = list(itertools.islice(self._words, count))
        if len(rows) < count:
            self.line = rows[-1][0] if rows else self.line
            raise self.fail(f"the file ends where {what} should be: {len(rows)} of {count} numbers")
        try:
            out = np.array([word for _, word in rows], dtype=np.float64)
        except ValueError:
            self.line, word = next((line, word) for line, word in rows if not _is_number(word))
            raise self.fail(f"{what} must be numbers, got {word!r}") from None
        bad = ~(out >= 0.0) | np.isinf(out)
        if bad.any():
            self.line, word = rows[int(bad.argmax())]
            raise self.fail(f"{what} must be finite and not negative, got {word!r}")
        if rows:
            self.line = rows[-1][0]
        return out

    def end(self) -> None:
        for line, word in self._words:
            self.line = line
            raise self.fail(f"nothing should follow, got {word!r}")


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def read_uai(
    path: Path, evidence: Path | Mapping[int, int] | None = None, n_jobs: int | None = None
) -> tuple[FactorGraph, FloatArray]:
    """A model and its potentials (logarithms of the tables), given evidence.

    Parameters
    ----------
    path : str or path
        A file that begins with MARKOV or BAYES.
    evidence : str, path or dict, optional
        A file of evidence, or states by variable. Observed variables keep their number and have one state.
    """
    tokens = _Tokens(path)
    kind = tokens.word("MARKOV or BAYES")
    if kind not in ("MARKOV", "BAYES"):
        raise tokens.fail(f"a model must begin with MARKOV or BAYES, got {kind!r}")
    n = tokens.count("the number of variables", 1)
    cardinalities = [tokens.count(f"the number of states of variable {v}", 1) for v in range(n)]
    scopes = []
    for k in range(tokens.count("the number of factors", 0)):
        arity = tokens.count(f"the number of variables of factor {k}", 0, n)
        scope = tuple(tokens.count(f"a variable of factor {k}", 0, n - 1) for _ in range(arity))
        if len(set(scope)) < arity:
            raise tokens.fail(f"factor {k} has a variable twice: {scope}")
        scopes.append(scope)
    tables = []
    for k, scope in enumerate(scopes):
        entries = int(np.prod([cardinalities[v] for v in scope]))
        given = tokens.count(f"the number of entries of factor {k}", 0)
        if given != entries:
            raise tokens.fail(f"factor {k} must have {entries} entries, got {given}")
        tables.append(tokens.numbers(f"the entries of factor {k}", entries))
    tokens.end()
    with np.errstate(divide="ignore"):
        potentials = np.log(np.concatenate([np.zeros(0), *tables]))
    graph = FactorGraph(np.array(cardinalities), scopes, n_jobs=n_jobs)
    known = read_evidence(evidence, cardinalities) if isinstance(evidence, str | os.PathLike) else evidence
    if not known:
        return graph, potentials
    graph, index = graph.condition(known)
    return graph, potentials[index]


def read_evidence(path: Path, cardinalities: Any) -> dict[int, int]:
    """The states of the observed variables of a file of evidence."""
    tokens = _Tokens(path)
    known: dict[int, int] = {}
    for _ in range(tokens.count("the number of observed variables", 0)):
        v = tokens.count("a variable", 0, len(cardinalities) - 1)
        state = tokens.count(f"the state of variable {v}", 0, int(cardinalities[v]) - 1)
        if known.setdefault(v, state) != state:
            raise tokens.fail(f"variable {v} has two states")
    tokens.end()
    return known


def format_partition(log_z: float) -> str:
    """The answer to PR: log10 Z."""
    return f"PR\n{log_z / np.log(10.0)!r}\n"


def format_marginals(
    marginals: list[FloatArray], cardinalities: Any = None, evidence: Mapping[int, int] | None = None
) -> str:
    """The answer to MAR: for each variable, its number of states and their probabilities."""
    rows = []
    for v, p in enumerate(marginals):
        if evidence and v in evidence and cardinalities is not None:
            p = np.eye(int(cardinalities[v]))[evidence[v]]
        rows.append(" ".join([str(len(p)), *(repr(float(x)) for x in p)]))
    return f"MAR\n{len(rows)} {' '.join(rows)}\n"


def format_states(states: IntArray) -> str:
    """The answer to MAP."""
    return f"MAP\n{len(states)} {' '.join(map(str, states.tolist()))}\n"
