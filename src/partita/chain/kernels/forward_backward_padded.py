"""Forward-backward in scaled probabilities on rows that are padded to a multiple of four, four labels at a time.

Scores of the padding are -inf, so that its probabilities are zero. See `forward_backward` for the scaling and what it leaves
out, and `tuples` for what the arrays hold.
"""

from __future__ import annotations

import math

import numpy as np

from ...numerics.jit import sum_kernel
from ...numerics.simd import (
    LANES,
    MOST_ONE,
    MOST_TWO,
    add_outer_row,
    add_row,
    add_two_outer_rows,
    exponential,
    larger,
    largest,
    load,
    set_row,
    spread,
    store,
    total,
)
from .tuples import Messages, Workspace

#: The difference to the best score at a position from which a label is left out: a factor of 1e-140.
NEGLIGIBLE = -322.0
#: The contribution of a unit from which what was left out could matter.
DECISIVE = 1e100
#: Sums that have not underflowed.
SAFE = 1e-280


@sum_kernel
def padded(n):
    """The length of a row of n labels with its padding."""
    return (n + LANES - 1) // LANES * LANES


@sum_kernel
def workspace(rows, width):
    """Room for the scores and messages of so many positions."""
    U = np.full((rows, width), -np.inf)
    return Workspace(U, Messages(np.empty((rows, width)), np.empty((rows, width)), np.empty((rows, width))))


@sum_kernel
def add_times(M, x, place, out, target):
    """out[target : target + width] += x[place : place + rows] M, in flat places."""
    n, width = M.shape
    c = 0
    while c < width:
        vectors = min(MOST_ONE, (width - c) // LANES)
        add_row(M, c, n, width, x, place, out, target + c, vectors)
        c += vectors * LANES


@sum_kernel
def times(M, x, place, out, target):
    """As `add_times`, from zero."""
    n, width = M.shape
    c = 0
    while c < width:
        vectors = min(MOST_ONE, (width - c) // LANES)
        set_row(M, c, n, width, x, place, out, target + c, vectors)
        c += vectors * LANES


@sum_kernel
def add_outer(X, Y, start, stop, C):
    """C += sum_{start < t < stop} X[t - 1] Y[t]'."""
    n, width = C.shape
    first, rows, c = (start + 1) * width, stop - start - 1, 0
    while rows > 0 and c < width:
        vectors = min(MOST_TWO, (width - c) // LANES)
        u = 0
        while u + 2 <= n:
            add_two_outer_rows(Y, first + c, rows, width, X, start * width + u, C, u * width + c, vectors)
            u += 2
        if u < n:
            add_outer_row(Y, first + c, rows, width, X, start * width + u, C, u * width + c, vectors)
        c += vectors * LANES


@sum_kernel
def forward(U, M, shift, start, stop, alpha, B):
    """Forward messages of one chain; returns log Z, NaN if it is hard. B gets exp(U) up to a factor per position."""
    width = U.shape[1]
    log_z, part, scale = shift * (stop - start - 1), 0.0, 1.0  # small parts first: they lose fewer digits
    for t in range(start, stop):
        here = t * width
        best = load(U, here)
        for v in range(here + LANES, here + width, LANES):
            best = larger(load(U, v), best)
        top = largest(best)
        if t == start:
            for v in range(here, here + width, LANES):
                store(alpha, v, spread(1.0))
        else:
            times(M, alpha, here - width, alpha, here)
        sums = spread(0.0)
        for v in range(here, here + width, LANES):
            e = exponential(load(U, v) - spread(top), NEGLIGIBLE)
            a = e * load(alpha, v)
            store(B, v, e)
            store(alpha, v, a)
            sums = sums + a
        mass = total(sums)
        if not mass > SAFE:
            return np.nan
        part += top
        scale *= mass
        if scale < 1e-100 or scale > 1e100:
            log_z += part + math.log(scale)
            part, scale = 0.0, 1.0
        factor = spread(1.0 / mass)
        for v in range(here, here + width, LANES):
            store(alpha, v, factor * load(alpha, v))
    return log_z + (part + math.log(scale))


@sum_kernel
def backward(MT, weight, start, stop, x, y, z, alpha, B, P):
    """Backward messages and marginals of one chain after `forward`; returns False if it is hard.

    There is room for a row in each of x, the backward message of a position up to a factor, y and z.
    """
    width = P.shape[1]
    last = (stop - 1) * width
    for v in range(0, width, LANES):
        store(x, v, spread(1.0))
        store(P, last + v, spread(weight) * load(alpha, last + v))
    for t in range(stop - 1, start, -1):
        here, before = t * width, (t - 1) * width
        for v in range(0, width, LANES):
            store(y, v, load(B, here + v) * load(x, v))
        times(MT, y, 0, z, 0)
        sums, best = spread(0.0), spread(0.0)
        for v in range(0, width, LANES):
            unit = load(z, v)
            sums = sums + load(alpha, before + v) * unit
            best = larger(unit, best)
        mass = total(sums)
        if not mass > SAFE:
            return False
        mass = 1.0 / mass
        if not largest(best) * mass < DECISIVE:
            return False
        factor, scaled = spread(mass), spread(mass * weight)
        for v in range(0, width, LANES):  # the products of alpha and x now add up to 1
            unit = load(z, v)
            store(x, v, factor * unit)
            store(B, here + v, scaled * load(y, v))
            store(P, before + v, scaled * unit * load(alpha, before + v))
    return True


@sum_kernel
def padded_forward_backward(U, transitions, chains, messages, C, log_z):
    """As `kernels.forward_backward.forward_backward`, for padded arrays and all chains."""
    (M, MT, shift), (offsets, w), (alpha, B, P) = transitions, chains, messages
    x, y, z = np.empty(U.shape[1]), np.empty(U.shape[1]), np.empty(U.shape[1])
    hard = 0
    for s in range(len(w)):
        start, stop = offsets[s], offsets[s + 1]
        log_z[s] = forward(U, M, shift, start, stop, alpha, B)
        if np.isnan(log_z[s]) or not backward(MT, w[s], start, stop, x, y, z, alpha, B, P):
            log_z[s] = np.nan
            hard += 1
            alpha[start:stop] = 0.0
            B[start:stop] = 0.0
            P[start:stop] = 0.0
        else:
            add_outer(alpha, B, start, stop, C)
    return hard
