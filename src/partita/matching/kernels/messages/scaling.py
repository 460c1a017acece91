"""Bethe's free energy of matchings where no edge has half of a vertex: one number for each vertex says all.

With numbers v of vertices, ``tau (1 - tau) = exp(w_e - v_i - v_j)`` for every edge, and tau is the smaller root. Edge e
joins the vertices ``one[e]`` and ``other[e]``. Sums are kept while `one` stays the same: edges in order make that fast.
"""

from __future__ import annotations

import numpy as np

from ....numerics.jit import sum_kernel
from ....numerics.math import exp, log

_LOG_QUARTER = np.log(0.25)


@sum_kernel
def shares(one, other, weights, duals, tau, curves):
    """tau of edges, at most 1/2, and its derivatives. Loops are apart so that each is vectorised."""
    for e in range(len(tau)):
        tau[e] = min(weights[e] - duals[one[e]] - duals[other[e]], _LOG_QUARTER)
    for e in range(len(tau)):
        tau[e] = exp(tau[e])
    for e in range(len(tau)):
        root = np.sqrt(max(1.0 - 4.0 * tau[e], 1e-6))
        curves[e] = tau[e] / root
        tau[e] = 2.0 * tau[e] / (1.0 + root)


@sum_kernel
def add_degrees(one, other, tau, sums):
    """Add the shares of edges to those of their vertices."""
    at, total = one[0], 0.0
    for e in range(len(tau)):
        if one[e] != at:
            sums[at] += total
            at, total = one[e], 0.0
        total += tau[e]
        sums[other[e]] += tau[e]
    sums[at] += total


@sum_kernel
def add_product(one, other, curves, x, out):
    """Add what numbers of edges, as a symmetric matrix, make of x."""
    at, total = one[0], 0.0
    for e in range(len(curves)):
        if one[e] != at:
            out[at] += total
            at, total = one[e], 0.0
        total += curves[e] * x[other[e]]
        out[other[e]] += curves[e] * x[at]
    out[at] += total


@sum_kernel
def log_rests(tau):
    """The sum of log(1 - tau)."""
    total = 0.0
    for e in range(len(tau)):
        total += log(1.0 - tau[e])
    return total
