"""The largest entropy of sets of b edges at a vertex, or at most b, whose shares are given."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import log
from .cardinality import symmetric_polynomials

#: Most steps for one vertex, how much of each is taken (edges may covary by twice their variances), and when to end.
STEPS, PART, CLOSE = 400, 0.5, 1e-13


@kernel
def entropies(graph, b, single, tau, rest, theta, out):
    """For each vertex the entropy; for each half-edge the weight with which sets have these shares.

    Weights are found by proportional fitting: each moves by part of what its log-odds lack. `tau` and `rest`, which is what
    they lack to one, are those of edges, none of them zero.
    """
    starts, edges, _ = graph
    n, most = 0, 0
    for i in range(len(b)):
        n, most = max(n, starts[i + 1] - starts[i]), max(most, b[i])
    prefix, suffix = np.empty((n + 1, most + 1)), np.empty((n + 1, most + 1))
    one, none = np.empty(n), np.empty(n)
    for i in range(len(b)):
        first, count = starts[i], starts[i + 1] - starts[i]
        own = theta[first : first + count]
        for k in range(count):
            own[k] = log(tau[edges[first + k]]) - log(rest[edges[first + k]])
        log_z = 0.0
        for _ in range(STEPS if b[i] > 0 else 0):
            log_z = symmetric_polynomials(own, count, b[i], single, prefix, suffix, one, none)
            change = 0.0
            for k in range(count):
                e = edges[first + k]
                lack = log(tau[e]) - log(rest[e]) - (own[k] + one[k] - none[k])
                if abs(lack) < np.inf:
                    change = max(change, abs(lack) * min(tau[e], rest[e]))
                    own[k] += PART * lack
            if change <= CLOSE:
                break
        out[i] = log_z
        for k in range(count):
            out[i] -= own[k] * tau[edges[first + k]]
