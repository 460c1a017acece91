"""Assignments of largest weight, by SciPy."""

from __future__ import annotations

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray


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
    n = len(weights)
    chosen = weights[np.arange(n), columns]
    v = np.zeros(n)
    for _ in range(n):
        u = chosen - v[columns]
        raised = np.maximum(v, (weights - u[:, None]).max(0))
        if np.allclose(raised, v, rtol=0.0, atol=1e-12 * (1.0 + np.abs(v).max())):
            break
        v = raised
    u = (weights - v).max(1)
    return u, v
