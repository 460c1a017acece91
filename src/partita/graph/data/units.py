"""Weights on features of graphs in comparable units, for solvers, and the way back."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray, IntArray
from ...softmax import StandardColumns


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
    """

    back: sp.csr_matrix
    there: sp.csr_matrix
    penalty: FloatArray
    scale: FloatArray
    free: IntArray


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
    rows: list[Any] = []
    penalty, back, there, scale, free, start = [], [], [], [], [np.zeros(0, np.int64)], 0
    for part in parts:
        F, mean, spread, own = _standard(part, l2)
        rows.append(F)
        eye, last = sp.identity(part.statistics), len(own) - 1
        back.append(sp.kron(_bordered(1.0 / spread, -mean / spread[: len(mean)]), eye, format="csr"))
        scale.append(np.repeat(1.0 / spread, part.statistics))
        there.append(sp.kron(_bordered(spread, mean), eye))
        penalty.append(np.repeat(own, part.statistics))
        if part.intercept == "free":
            numbers = last * part.statistics + np.arange(part.statistics)
            free.append(start + numbers)
            scale[-1][numbers] = 0.0
            # a constant added to the scores of all labels changes nothing: without a penalty only this takes it away, from
            # the intercepts of the user, so that no variance of it is left in them either
            intercepts = back[-1][numbers]
            common = sp.csr_matrix(intercepts.sum(0) / part.statistics)
            centred = intercepts - sp.vstack([common] * part.statistics)
            back[-1] = sp.vstack([back[-1][: numbers[0]], centred], format="csr")
        start += len(own) * part.statistics
    units = Units(
        sp.block_diag(back, format="csr"),
        sp.block_diag(there, format="csr"),
        np.concatenate(penalty),
        np.concatenate(scale),
        np.concatenate(free),
    )
    return rows, units


def _bordered(diagonal: FloatArray, last: FloatArray) -> sp.coo_matrix:
    """A diagonal matrix with a last row."""
    n, some = len(diagonal), np.flatnonzero(last)
    row = np.concatenate([np.arange(n), np.full(len(some), n - 1)])
    column = np.concatenate([np.arange(n), some])
    return sp.coo_matrix((np.concatenate([diagonal, last[some]]), (row, column)), shape=(n, n))


def _standard(part: Part, l2: float) -> tuple[Any, FloatArray, FloatArray, FloatArray]:
    """Features of one kind in comparable units, the means that were taken off, spreads, and the l2 of each."""
    F = part.features
    if F is None:
        return None, np.zeros(0), np.ones(1), np.full(1, l2)
    mean, spread, own = np.zeros(0), np.ones(0), np.zeros(0)
    if F.shape[1]:
        weights = part.weights if part.weights.any() else np.ones(len(part.weights))
        columns = StandardColumns(F, weights, l2, part.intercept in ("free", "mean"), rotate=False)
        F, mean, spread, own = columns.rows, columns.mean, columns.spread, columns.penalty
    if part.intercept != "none":
        ones = np.ones((F.shape[0], 1))
        F = sp.hstack([F, ones], format="csr") if sp.issparse(F) else np.hstack([F, ones])
        spread, own = np.append(spread, 1.0), np.append(own, 0.0 if part.intercept == "free" else l2)
    return F, mean, spread, own
