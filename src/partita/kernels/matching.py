"""Messages and scalings on graphs whose edges are in a matching or not.

A graph has for each vertex i the half-edges ``starts[i]:starts[i + 1]``; half-edge h belongs to edge ``edges[h]`` and its
other half is ``others[h]``. Weights of edges are logarithms, -inf for those that are not allowed.
"""

from __future__ import annotations

import numpy as np

from ._jit import sum_kernel
from ._math import exp, log


@sum_kernel
def _leave_one_out(x, n, single, out):
    """out[h] = log sum of exp of all x but x[h], and of 0 if `single`; returns the log of the whole sum."""
    top, second, best = (0.0 if single else -np.inf), -np.inf, -1
    for h in range(n):
        if x[h] > top:
            second, top, best = top, x[h], h
        elif x[h] > second:
            second = x[h]
    if second == -np.inf:  # one choice at most
        for h in range(n):
            out[h] = top
        if best >= 0:
            out[best] = -np.inf
        return top
    rest = 1.0 if single and best >= 0 else 0.0
    rest *= exp(-second) if second > -708.0 else 0.0
    for h in range(n):
        out[h] = exp(min(x[h] - second, 0.0))
    if best >= 0:
        out[best] = 0.0
    for h in range(n):
        rest += out[h]
    share = exp(second - top)
    for h in range(n):
        out[h] = top + log(1.0 + share * max(rest - out[h], 0.0))
    if best >= 0:
        out[best] = second + log(rest)
    return top + log(1.0 + share * rest)
