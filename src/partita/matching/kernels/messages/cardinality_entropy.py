"""The largest entropy of sets of b edges at a vertex, or at most b, whose shares are given."""

from __future__ import annotations

import numpy as np

from ....numerics.cardinality import tilt
from ....numerics.jit import kernel
from ....numerics.math import log

#: Accuracy of shares, and most sweeps over the edges of a vertex to reach it.
CLOSE, SWEEPS = 1e-13, 500


@kernel
def entropies(graph, b, exactly, tau, theta, out):
    """For each vertex the entropy; for each half-edge the log-odds with which sets have these shares.

    `tau` are the shares of edges, none of them zero or one.
    """
    starts, edges, _ = graph
    n, most = 0, 0
    for i in range(len(b)):
        n, most = max(n, starts[i + 1] - starts[i]), max(most, b[i])
    left, right, own = np.empty((n + 1, most + 1)), np.empty((n + 1, most + 1)), np.empty(n)
    theta[:] = 0.0
    for i in range(len(b)):
        first, count = starts[i], starts[i + 1] - starts[i]
        out[i] = 0.0
        if b[i] == 0 or count == 0:
            continue
        odds = theta[first : first + count]
        for k in range(count):
            own[k] = tau[edges[first + k]]
            odds[k] = log(own[k]) - log(1.0 - own[k])
        out[i], _ = tilt(own[:count], b[i], exactly, odds, left, right, CLOSE, SWEEPS)
        for k in range(count):
            out[i] -= odds[k] * own[k]


@kernel
def slope(graph, b, exactly, tau, direction, step, rho, least, rest, theta, out):
    """The slope of ``(1 - 2 rho) sum_e H_e + rho sum_a H_a`` along a direction, at a step from tau; shares are kept at least
    at `least`, and as far from one as `rest`."""
    _, edges, _ = graph
    t = np.empty(len(tau))
    for e in range(len(tau)):
        t[e] = min(max(tau[e] + step * direction[e], least), 1.0 - rest)
    entropies(graph, b, exactly, t, theta, out)
    total = 0.0
    for e in range(len(tau)):
        if direction[e] != 0.0:
            total -= (1.0 - 2.0 * rho) * direction[e] * (log(t[e]) - log(1.0 - t[e]))
    for h in range(len(edges)):
        total -= rho * direction[edges[h]] * theta[h]
    return total
