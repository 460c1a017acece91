"""Bethe free energies of perfect matchings that are largest at a matching, where messages take long or for ever to say so.

At the best matching pi, permuted to be the diagonal, let D have the rates at which other entries grow, with row sums r. The
entropies of entries and complements then change by ``sum_i r_i H(D_i / r_i)``, so that the free energy grows at a rate of
``sum_ij r_i P_ij (log A_ij - log P_ij)`` with ``P = D / r``, ``A_ij = exp(W_i,pi(j) - W_i,pi(i))`` and ``A_ii = 0``. Column
sums of D are r too: P is a Markov chain with the stationary measure r. The largest rate, for a measure of one, is the
logarithm of the spectral radius of A (Donsker and Varadhan), which is at most ``log max_i (A v)_i / v_i`` for any v > 0. The
free energy is concave, and r sums to n at most, so it is nowhere larger than at pi by more than n times that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy.optimize import linear_sum_assignment

from ...core.results import FloatArray, IntArray
from ..registry import find_engine

#: Steps of power iteration.
STEPS = 300


def frozen(weights: FloatArray) -> tuple[IntArray, float, float, FloatArray]:
    """The best column of every row of a square matrix, their weight, how far the Bethe free energy can be above it, and the
    prices of rows and then of columns.

    >>> import numpy as np
    >>> frozen(np.array([[0.0, -3.0, -3.0], [-3.0, 0.0, -3.0], [-3.0, -3.0, 0.0]]))[2]
    0.0
    """
    n = len(weights)
    columns = linear_sum_assignment(weights, maximize=True)[1]
    value = float(weights[np.arange(n), columns].sum())
    u, v = find_engine("assignment_duals")(weights, columns)
    A = np.exp(np.minimum((weights - u[:, None] - v)[:, columns], 0.0))  # has the same spectral radius, and no entry above 1
    np.fill_diagonal(A, 0.0)
    x, least = np.ones(n), np.inf
    for _ in range(STEPS):
        image = A @ x
        ratio = image / x
        least = min(least, float(ratio.max()))
        if least <= 1.0 or ratio.min() > 1.0:
            break
        x = x + image
        x /= x.max()
        x = np.maximum(x, 1e-200)
    return columns, value, n * max(0.0, float(np.log(least))), np.concatenate([u, v])


def freeze(arrays: Any, weights: FloatArray, tau: Any, out: Any) -> FloatArray:
    """Put the best matching in place of what messages found for an example, if its certificate is smaller.

    `out` has the value, the certificate and the number of sweeps. Returns the prices of vertices at the best matching.
    """
    ends, left = arrays[3], arrays[4]
    W = np.full((left, left), -np.inf)
    W[ends[:, 0], ends[:, 1] - left] = weights
    columns, value, gap, prices = frozen(W)
    gap += 1e-15 * float(np.abs(weights).max()) * left
    if gap < out[1]:
        tau[:] = columns[ends[:, 0]] == ends[:, 1] - left
        out[:2] = value, gap
    return prices
