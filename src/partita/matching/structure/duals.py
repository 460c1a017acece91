"""Numbers of vertices that bring the weights of matchings into the range of exact sums."""

from __future__ import annotations

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..registry import find_engine

#: Sums of scaled weights below exp(-RANGE) could lose digits: weights are then scaled by duals of the best matching.
RANGE = 300.0


def partial_duals(weights: FloatArray, perfect: bool, workers: Workers) -> tuple[FloatArray, FloatArray, IntArray]:
    """Numbers of the vertices of a larger and a smaller side, for one matrix of weights with at least as many rows as
    columns, and the columns of rows in a best matching, -1 for none.

    Their sums are at least the weights, and together they are as large as the best matching: scaled by them, no weight is
    above one and the best matching is one. Those of rows, which may stay alone, are not negative; those of columns neither,
    unless all columns are matched (`perfect`). They are those of an assignment that has zeros for whoever stays alone.
    """
    L, s = weights.shape
    low = -1e6 - float(np.abs(weights[weights > -np.inf]).sum())
    N = L if perfect else L + s
    padded = np.zeros((N, N))
    padded[:L, :s] = np.maximum(weights, low)
    columns = find_engine("assignment")(padded[None], workers)[0]
    u, v = find_engine("assignment_duals")(padded, columns)
    best = np.where(columns[:L] < s, columns[:L], -1)
    least = float(v[s:].min(initial=np.inf))  # of those that stand for staying alone; 0 <= u + least
    if perfect:
        least = least if np.isfinite(least) else 0.0
        return np.asarray(u + least), np.asarray(v[:s] - least), best
    return np.asarray(np.maximum(u[:L] + least, 0.0)), np.asarray(np.maximum(v[:s] + float(u[L:].min()), 0.0)), best


def simple_duals(weights: FloatArray, perfect: bool) -> tuple[FloatArray, FloatArray]:
    """The same for many matrices, but for the best matching, which may be below one: the largest weights of columns."""
    top = weights.max(axis=1)
    top = np.where(top > -np.inf, top, 0.0)
    return np.zeros(weights.shape[:2]), top if perfect else np.maximum(top, 0.0)
