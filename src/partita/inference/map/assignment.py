"""Assignments of largest weight, by SciPy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...kernels import assignment as kernels


def assignments(weights: FloatArray, workers: Workers) -> IntArray:
    """The best column of every row in each of many square matrices; -inf forbids an entry.

    >>> import numpy as np
    >>> from partita.core.parallel import Workers
    >>> assignments(np.array([[[1.0, 2.0], [0.0, 5.0]]]), Workers(1))
    array([[0, 1]])
    """
    out = np.empty(weights.shape[:2], np.int64)

    def run(lo: int, hi: int) -> None:
        for b in range(lo, hi):
            try:
                out[b] = linear_sum_assignment(weights[b], maximize=True)[1]
            except ValueError as error:
                raise ValueError(f"there is no perfect matching in example {b}: {error}") from None

    workers.run(run, Workers.ranges(len(weights), 100.0 * weights.size))
    return out


def assignment_duals(weights: FloatArray, columns: IntArray) -> tuple[FloatArray, FloatArray]:
    """Numbers of rows and of columns whose sums are at least the weights, and equal to those of the best assignment."""
    u, v = np.empty(len(weights)), np.empty(len(weights))
    chosen = weights[np.arange(len(weights)), columns]
    slack = 1e-12 * (1.0 + float(np.abs(chosen).max(initial=0.0)))
    kernels.duals(np.ascontiguousarray(weights), columns, slack, u, v)
    return u, v
