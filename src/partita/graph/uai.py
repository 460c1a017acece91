"""Models, evidence and answers in the format of the UAI inference competitions.

Tables hold weights, potentials their logarithms. All files may be gzip-compressed. Answers are PR (log10 of the partition
function), MAR (probabilities of the states of every variable) and MAP (a most probable configuration).
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from ..core.memory import check_memory
from ..core.results import FloatArray, IntArray
from ..core.validation import check_choice
from ..io.text import Path, read_text, write_text
from .structure.factor_graph import FactorGraph

KINDS = ("MARKOV", "BAYES")
#: How far a row of a conditional table may be from a sum of one.
ROW_SUM = 1e-6

INTEGER = re.compile(r"[+-]?[0-9]+")

Answer = TypeVar("Answer")


class _Words:
    """The words of a file one after the other; `fail` names the line of the last one."""

    def __init__(self, path: Path) -> None:
        self.path = os.fspath(path)
        lines = read_text(path).split("\n")
        self.words = [word for line in lines for word in line.split()]
        self.ends: IntArray = np.cumsum([len(line.split()) for line in lines])  # words up to the end of each line
        self.at = 0

    def fail(self, message: str) -> ValueError:
        return ValueError(f"{self.path}, line {self.line(self.at - 1)}: {message}")

    def line(self, word: int) -> int:
        return int(np.searchsorted(self.ends, max(word, 0), side="right")) + 1 if self.words else 1

    def word(self, what: str) -> str:
        if self.at == len(self.words):
            raise self.fail(f"the file ends where {what} should be")
        self.at += 1
        return self.words[self.at - 1]

    def count(self, what: str, least: int, most: int | None = None) -> int:
        word = self.word(what)
        if not INTEGER.fullmatch(word):
            raise self.fail(f"{what} must be an integer, got {word!r}")
        number = int(word) if len(word) < 20 else least - 1
        if number < least or (most is not None and number > most):
            span = f"at least {least}" if most is None else f"from {least} to {most}"
            raise self.fail(f"{what} must be {span}, got {word}")
        return number

    def numbers(self, what: str, count: int, least: float = 0.0) -> FloatArray:
        begin, words = self.at, self.words[self.at : self.at + count]
        self.at += len(words)
        if len(words) < count:
            raise self.fail(f"the file ends where {what} should be: {len(words)} of {count} numbers")
        values = np.array([_number(word) for word in words])
        bad = ~(values >= least) | np.isinf(values)
        if bad.any():
            i = int(bad.argmax())
            self.at = begin + i + 1
            rule = "finite numbers" if least < 0.0 else "finite numbers that are not negative"
            raise self.fail(f"{what} must be {rule}, got {words[i]!r}")
        return values

    def end(self) -> None:
        if self.at < len(self.words):
            self.at += 1
            raise self.fail(f"the file should end here, got {self.words[self.at - 1]!r}")


def _number(word: str) -> float:
    try:
        return float(word) if "_" not in word else math.nan
    except ValueError:
        return math.nan


# Models


def read_uai(
    path: Path, evidence: Path | Mapping[int, int] | None = None, n_jobs: int | None = None
) -> tuple[FactorGraph, FloatArray]:
    """Read a model: its graph, and its potentials, which are the logarithms of the tables (-inf for zeros).

    Parameters
    ----------
    path : str or path
        A file that begins with MARKOV or BAYES, plain or gzip-compressed.
    evidence : str, path or dict, optional
        A file of evidence, or states by variable. Observed variables keep their number and have one state.
    n_jobs : int or None
        Threads of the graph.
    """
    words = _Words(path)
    kind = words.word("MARKOV or BAYES")
    if kind not in KINDS:
        raise words.fail(f"a model must begin with MARKOV or BAYES, got {kind!r}")
    n = words.count("the number of variables", 1)
    cardinalities = [words.count(f"the number of states of variable {v}", 1) for v in range(n)]
    check_memory(f"{words.path}: states of variables", 8.0 * sum(cardinalities))
    scopes = []
    for k in range(words.count("the number of factors", 0)):
        arity = words.count(f"the number of variables of factor {k}", 0, n)
        scope = tuple(words.count(f"a variable of factor {k}", 0, n - 1) for _ in range(arity))
        if len(set(scope)) < arity:
            raise words.fail(f"factor {k} must have different variables, got {' '.join(map(str, scope))}")
        scopes.append(scope)
    tables = []
    for k, scope in enumerate(scopes):
        entries = math.prod(cardinalities[v] for v in scope)
        given = words.count(f"the number of entries of factor {k}", 0)
        if given != entries:
            raise words.fail(f"factor {k} must have {entries} entries, got {given}")
        tables.append(words.numbers(f"the entries of factor {k}", entries))
    words.end()
    with np.errstate(divide="ignore"):
        potentials = np.log(np.concatenate([np.zeros(0), *tables]))
    graph = FactorGraph(np.array(cardinalities), scopes, n_jobs=n_jobs)
    known = read_evidence(evidence, cardinalities) if isinstance(evidence, str | os.PathLike) else evidence
    if not known:
        return graph, potentials
    graph, index = graph.condition(known)
    return graph, potentials[index]


def write_uai(path: Path, graph: FactorGraph, potentials: Any, kind: str = "MARKOV") -> None:
    """Write a model, with all digits; compressed if the name ends in .gz.

    Parameters
    ----------
    potentials : vector or list of tables
        Logarithms of what is written; -inf becomes 0.
    kind : {"MARKOV", "BAYES"}
        ``"BAYES"``: every variable is the last one of exactly one factor, whose table is its distribution given the others.
    """
    check_choice("kind", kind, KINDS)
    flat = graph.potentials(potentials)
    if len(flat) != 1:
        raise ValueError(f"potentials must be one set of tables, got {len(flat)}")
    with np.errstate(over="ignore", under="ignore"):
        weights = np.exp(flat[0])
    lost = np.isinf(weights) | ((weights == 0.0) & (flat[0] > -np.inf))
    if lost.any():
        k = int(np.searchsorted(graph.offsets, int(lost.argmax()), side="right")) - 1
        raise ValueError(
            f"potentials must be logarithms of numbers that a file can hold, from -745 to 709, got {flat[0][lost][0]!r} in "
            f"factor {k}: add a constant to its table, which adds it to log Z"
        )
    if kind == "BAYES":
        _check_conditional(graph, weights)
    lines = [kind, str(graph.n_variables), _join(graph.cardinalities.tolist()), str(graph.n_factors)]
    lines += [_join([len(scope), *scope]) for scope in graph.factors]
    for table in graph.tables(weights):
        rows = table.reshape(-1, table.shape[-1]) if table.ndim else table.reshape(1, 1)
        lines += ["", str(table.size), *(f" {_join(row)}" for row in rows.tolist())]
    write_text(path, "\n".join(lines) + "\n")


def _check_conditional(graph: FactorGraph, weights: FloatArray) -> None:
    """Every variable has one factor in which it is last, and rows sum to one."""
    children = sorted(scope[-1] if scope else -1 for scope in graph.factors)
    if children != list(range(graph.n_variables)):
        raise ValueError("kind='BAYES' needs exactly one factor for every variable, in which it is the last; use 'MARKOV'")
    for k, table in enumerate(graph.tables(weights)):
        if not np.allclose(table.sum(-1), 1.0, rtol=0.0, atol=ROW_SUM):
            raise ValueError(f"kind='BAYES' needs rows that sum to one, unlike those of factor {k}; use 'MARKOV'")


def _join(values: Iterable[Any]) -> str:
    return " ".join([repr(value) for value in values])


# Evidence


def read_evidence(path: Path, cardinalities: ArrayLike | None = None, sample: int | None = None) -> dict[int, int]:
    """Read the states of the observed variables.

    Parameters
    ----------
    cardinalities : array of int, optional
        States of every variable of the model, to check the evidence against.
    sample : int, optional
        Which of several samples, from 0; needed only if the file has more than one.

    Notes
    -----
    A file is ``n v s v s …``: how many variables are observed, then each with its state. Some have several samples: a first
    line that is only their number, then exactly one line for each of them, of just the length that its first number says.
    """
    words = _Words(path)
    counts = None if cardinalities is None else np.asarray(cardinalities).tolist()
    samples = _sample_lines(words)
    if samples is None:
        found = [_evidence(words, counts)]
        words.end()
    else:
        words.at = 1
        found = [_evidence(words, counts) for _ in range(samples)]
    if sample is None and len(found) > 1:
        raise ValueError(f"{words.path} has {len(found)} samples of evidence: choose one by sample=")
    if not 0 <= (sample or 0) < len(found):
        raise ValueError(f"sample must be from 0 to {len(found) - 1}, the samples of {words.path}; got {sample}")
    return found[sample or 0]


def _sample_lines(words: _Words) -> int | None:
    """The number of samples, if the lines are laid out as samples."""
    sizes = np.diff(words.ends, prepend=0)
    sizes = sizes[sizes > 0].tolist()
    if len(sizes) < 2 or sizes[0] != 1 or words.words[0] != str(len(sizes) - 1):
        return None
    at = 1
    for size in sizes[1:]:
        head = words.words[at]
        if not head.isdigit() or size != 1 + 2 * int(head):
            return None
        at += size
    return len(sizes) - 1


def _evidence(words: _Words, cardinalities: Sequence[int] | None) -> dict[int, int]:
    known: dict[int, int] = {}
    for _ in range(words.count("the number of observed variables", 0)):
        v = words.count("an observed variable", 0, None if cardinalities is None else len(cardinalities) - 1)
        most = None if cardinalities is None else cardinalities[v] - 1
        state = words.count(f"the state of variable {v}", 0, most)
        if known.setdefault(v, state) != state:
            raise words.fail(f"variable {v} is observed in state {known[v]} and in state {state}")
    return known


def write_evidence(path: Path, evidence: Mapping[int, int]) -> None:
    """Write evidence in one line."""
    pairs = [int(number) for pair in evidence.items() for number in pair]
    write_text(path, _join([len(evidence), *pairs]) + "\n")


# Answers


def format_partition(log_z: float) -> str:
    """The answer to PR: the logarithm of the partition function to base 10."""
    return f"PR\n{float(log_z) / math.log(10.0)!r}\n"


def format_marginals(marginals: Sequence[ArrayLike]) -> str:
    """The answer to MAR: for each variable, the number of its states and their probabilities."""
    rows = [np.asarray(p, dtype=np.float64).tolist() for p in marginals]
    return f"MAR\n{' '.join([str(len(rows)), *(_join([len(row), *row]) for row in rows)])}\n"


def format_states(states: ArrayLike) -> str:
    """The answer to MAP: the state of each variable."""
    listed = np.asarray(states).tolist()
    return f"MAP\n{_join([len(listed), *listed])}\n"


def write_partition(path: Path, log_z: float) -> None:
    """Write the answer to PR."""
    write_text(path, format_partition(log_z))


def write_marginals(path: Path, marginals: Sequence[ArrayLike]) -> None:
    """Write the answer to MAR."""
    write_text(path, format_marginals(marginals))


def write_states(path: Path, states: ArrayLike) -> None:
    """Write the answer to MAP."""
    write_text(path, format_states(states))


def read_partition(path: Path) -> float:
    """log Z (natural) of an answer to PR."""

    def parse(words: _Words) -> float:
        word = words.word("log10 of the partition function")
        value = _number(word)
        if math.isnan(value) or value == math.inf:
            raise words.fail(f"log10 of the partition function must be a number, got {word!r}")
        return value * math.log(10.0)

    return _answer(path, ("PR",), parse)


def read_marginals(path: Path) -> list[FloatArray]:
    """The probabilities of the states of every variable, of an answer to MAR."""

    def parse(words: _Words) -> list[FloatArray]:
        found = []
        for v in range(words.count("the number of variables", 0)):
            states = words.count(f"the number of states of variable {v}", 1)
            found.append(words.numbers(f"the probabilities of variable {v}", states))
        return found

    return _answer(path, ("MAR",), parse)


def read_states(path: Path) -> IntArray:
    """The state of every variable, of an answer to MAP (MPE in older competitions)."""

    def parse(words: _Words) -> IntArray:
        n = words.count("the number of variables", 0)
        return np.array([words.count(f"the state of variable {v}", 0) for v in range(n)], dtype=np.int64)

    return _answer(path, ("MAP", "MPE"), parse)


def _answer(path: Path, kinds: tuple[str, ...], parse: Callable[[_Words], Answer]) -> Answer:
    """Read an answer. Older files have a line with the number of samples, 1, before it."""
    words = _Words(path)
    kind = words.word(kinds[0])
    if kind not in kinds:
        raise words.fail(f"the answer must begin with {' or '.join(kinds)}, got {kind!r}")
    try:
        found = parse(words)
        words.end()
    except ValueError:
        alone = len(words.words) > 2 and words.words[1] == "1" and words.line(0) < words.line(1) < words.line(2)
        if not alone:
            raise
        words.at = 2
        found = parse(words)
        words.end()
    return found
