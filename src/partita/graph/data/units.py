"""Weights on features of graphs in comparable units, for solvers, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray, IntArray
from ...softmax import StandardColumns


class Columns(NamedTuple):
    """The units of the features of one kind: the means that were taken off, spreads (one more for an intercept) and l2 of
    each, the number of weights of a feature, and whether the intercept has no penalty."""

    mean: FloatArray
    spread: FloatArray
    l2: FloatArray
    statistics: int
    free: bool

    def rows(self, features: Any) -> Any:
        """Other features in these units."""
        if features is None:
            return None
        mean, spread = self.mean, self.spread[: len(self.mean)]
        F = features[:, : len(mean)]
        F = F.multiply(1.0 / spread).tocsr() if sp.issparse(F) else (F - mean) / spread
        return F if len(self.spread) == len(mean) else _with_ones(F)


@dataclass(frozen=True)
class Units:
    """The weights that a solver moves, on standardised features, and those of the user, on features as they are.

    Attributes
    ----------
    back, there : sparse matrices
        From the weights of the solver to those of the user, with free intercepts that sum to zero; and the reverse.
    penalty : array
        The l2 of each weight of the solver.
    scale : array
        The l1 of each weight of the solver, for an l1 of one: 0 for free intercepts.
    free : int array
        Numbers of the intercepts without a penalty, which the data determine but for a constant.
    columns : list of Columns
        By kind of factors.
    """

    back: sp.csr_matrix
    there: sp.csr_matrix
    penalty: FloatArray
    scale: FloatArray
    free: IntArray
    columns: list[Columns]

    @classmethod
    def of(cls, columns: list[Columns]) -> Units:
        """The units of all kinds together."""
        back, there, scale = zip(*map(_changes, columns), strict=True)
        ends = np.cumsum([len(kind.spread) * kind.statistics for kind in columns]).tolist()
        free = [np.arange(end - kind.statistics, end) for kind, end in zip(columns, ends, strict=True) if kind.free]
        return cls(
            sp.block_diag(back, format="csr"),
            sp.block_diag(there, format="csr"),
            np.concatenate([np.repeat(kind.l2, kind.statistics) for kind in columns]),
            np.concatenate(scale),
            np.concatenate([np.zeros(0, np.int64), *free]),
            columns,
        )


@dataclass(frozen=True)
class Part:
    """The features of factors of one kind, without their intercept, and the number of weights of each feature.

    `weights` are those of the factors. The intercept is ``"none"``, ``"free"`` (without a penalty), ``"mean"`` (the penalty
    is on the scores at the mean of the features, so that a shift does not matter) or ``"plain"`` (a weight like others).
    """

    features: Any
    weights: FloatArray
    statistics: int
    intercept: str


def standard_units(parts: Sequence[Part], l2: float) -> tuple[list[Any], Units]:
    """Features in comparable units with their intercepts (None for kinds without features), and what weights on them are."""
    rows, columns = [], []
    for part in parts:
        F, found = _standard(part, l2)
        rows.append(F)
        columns.append(found)
    return rows, Units.of(columns)


def _changes(kind: Columns) -> tuple[sp.csr_matrix, sp.csr_matrix, FloatArray]:
    """From the weights of a kind to those of the user; the reverse; and the l1 of each weight, for one of the user's."""
    eye, mean, spread = sp.identity(kind.statistics), kind.mean, kind.spread
    back = sp.kron(_bordered(1.0 / spread, -mean / spread[: len(mean)]), eye, format="csr")
    there = sp.kron(_bordered(spread, mean), eye, format="csr")
    scale = np.repeat(1.0 / spread, kind.statistics)
    if not kind.free:
        return back, there, scale
    # A constant added to the scores of all labels changes nothing: without a penalty only this takes it away, from the
    # intercepts of the user, so that no variance of it is left in them either.
    first = (len(spread) - 1) * kind.statistics
    intercepts = back[first:]
    common = sp.csr_matrix(intercepts.sum(0) / kind.statistics)
    centred = intercepts - sp.vstack([common] * kind.statistics)
    scale[first:] = 0.0
    return sp.vstack([back[:first], centred], format="csr"), there, scale


def _bordered(diagonal: FloatArray, last: FloatArray) -> sp.coo_matrix:
    """A diagonal matrix with a last row."""
    n, some = len(diagonal), np.flatnonzero(last)
    row = np.concatenate([np.arange(n), np.full(len(some), n - 1)])
    column = np.concatenate([np.arange(n), some])
    return sp.coo_matrix((np.concatenate([diagonal, last[some]]), (row, column)), shape=(n, n))


def _standard(part: Part, l2: float) -> tuple[Any, Columns]:
    """Features of one kind in comparable units, and what these are."""
    F, free = part.features, part.intercept == "free"
    if F is None:
        return None, Columns(np.zeros(0), np.ones(1), np.full(1, l2), part.statistics, False)
    mean, spread, own = np.zeros(0), np.ones(0), np.zeros(0)
    if F.shape[1]:
        weights = part.weights if part.weights.any() else np.ones(len(part.weights))
        columns = StandardColumns(F, weights, l2, part.intercept in ("free", "mean"), rotate=False)
        F, mean, spread, own = columns.rows, columns.mean, columns.spread, columns.penalty
    if part.intercept != "none":
        F = _with_ones(F)
        spread, own = np.append(spread, 1.0), np.append(own, 0.0 if free else l2)
    return F, Columns(mean, spread, own, part.statistics, free)


def _with_ones(F: Any) -> Any:
    ones = np.ones((F.shape[0], 1))
    return sp.hstack([F, ones], format="csr") if sp.issparse(F) else np.hstack([F, ones])
