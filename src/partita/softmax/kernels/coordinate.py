"""Coordinate descent on a quadratic model plus an l1 penalty, over a working set of coordinates.

The model at x = theta is g'(x - theta) + (x - theta)' (A' S A + diag(l2)) (x - theta) / 2 + sum_a l1_a |x_a|. Coordinate a
is the weight of one column in one label. Two ways to the same minimum: `by_gram` holds the matrix, and a step costs as many
operations as there are coordinates; `by_columns` holds V = A (x - theta), and a step costs the entries of one column.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray
from ...numerics.jit import kernel, sum_kernel
from .columns import add, add_weighted, coupled_dot, curvature, dot
from .newton import cholesky_solve

#: Sweeps of `by_gram` between direct solves on the support.
SWEEPS = 5
#: Share of the diagonal added to the support's matrix, which collinear columns make singular.
RIDGE = 1e-11


class QuadraticModel(NamedTuple):
    """The smooth part of the model of m coordinates, with S V = C_k (V_k - sum_l P_l V_l) for label k.

    Attributes
    ----------
    theta : array (m,)
        Where it touches the objective.
    g : array (m,)
        The gradient there.
    C, P : arrays (labels, examples)
        The Hessian in the scores, or a bound above it. One label does not read P.
    """

    theta: FloatArray
    g: FloatArray
    C: FloatArray
    P: FloatArray


@kernel
def threshold(v, l1):
    """The minimiser of (x - v)^2 / 2 + l1 |x|."""
    if v > l1:
        return v - l1
    if v < -l1:
        return v + l1
    return 0.0


@kernel
def violation(x, g, l1):
    """The smallest absolute value of a subgradient g + l1 d|x|."""
    if x > 0.0:
        return abs(g + l1)
    if x < 0.0:
        return abs(g - l1)
    return max(0.0, abs(g) - l1)


@kernel
def best(x, z, h, l1):
    """Where coordinate x with gradient z and curvature h is best; a column without curvature keeps only its penalty."""
    if h > 0.0:
        return threshold(x - z / h, l1 / h)
    return 0.0 if l1 > 0.0 else x


@sum_kernel
def gram_sweep(H, z, x, l1):
    """One pass over the coordinates; returns the largest change of a gradient."""
    largest = 0.0
    m = len(x)
    for a in range(m):
        h = H[a]
        step = best(x[a], z[a], h[a], l1[a]) - x[a]
        if step != 0.0:
            largest = max(largest, abs(step) * h[a])
            x[a] = best(x[a], z[a], h[a], l1[a])
            for b in range(m):
                z[b] += step * h[b]
    return largest


@sum_kernel
def support_step(H, z, x, l1):
    """Solve for the coordinates that are not zero, signs kept: to the minimum, or to where the first sign would change."""
    m = len(x)
    support = np.empty(m, np.int64)
    s = 0
    for a in range(m):
        if (x[a] != 0.0 or l1[a] == 0.0) and H[a, a] > 0.0:
            support[s] = a
            s += 1
    B = np.empty((s, s))
    d = np.empty(s)
    for c in range(s):
        a = support[c]
        for e in range(c + 1):
            B[c, e] = H[a, support[e]]
        B[c, c] *= 1.0 + RIDGE
        d[c] = -(z[a] + l1[a] * np.sign(x[a]))
    if cholesky_solve(B, d) != 0:
        return
    t = 1.0
    hit = -1
    for c in range(s):
        a = support[c]
        if l1[a] > 0.0 and (x[a] + t * d[c]) * x[a] < 0.0:
            t = -x[a] / d[c]
            hit = a
    for c in range(s):
        a = support[c]
        step = t * d[c]
        x[a] += step
        h = H[a]
        for b in range(m):
            z[b] += step * h[b]
    if hit >= 0:
        x[hit] = 0.0


@sum_kernel
def by_gram(H, z, l1, target, limit, x):
    """Minimise with the matrix H at hand; z is the gradient at x, and follows it."""
    for sweep in range(limit):
        if gram_sweep(H, z, x, l1) <= target:
            return
        if sweep % SWEEPS == SWEEPS - 1:
            support_step(H, z, x, l1)


@sum_kernel
def column_sweep(working_set, model, which, h, V, mean, x):
    """One pass over the coordinates `which`, whose curvatures are h[which]; returns the largest change of a gradient.

    One label: V holds C A (x - theta). Several: V = A (x - theta) and mean = sum_k P_k V_k, so that
    S V = C_k (V_k - mean).
    """
    columns, label, column, _, l1, l2 = working_set
    theta, g, C, P = model
    single = C.shape[0] == 1
    largest = 0.0
    for c in range(len(which)):
        a = which[c]
        k, j = label[a], column[a]
        if single:
            z = dot(columns, j, V[0])
        else:
            z = coupled_dot(columns, j, C[k], V[k], mean)
        old = x[a]
        new = best(old, z + g[a] + l2[a] * (old - theta[a]), h[a], l1[a])
        step = new - old
        if step != 0.0:
            x[a] = new
            largest = max(largest, abs(step) * h[a])
            if single:
                add_weighted(columns, j, step, C[0], V[0])
            else:
                add(columns, j, step, V[k])
                add_weighted(columns, j, step, P[k], mean)
    return largest


@sum_kernel
def by_columns(working_set, model, target, limit, x):
    """Minimise with one column at a time, until a sweep changes no gradient by more than `target`."""
    columns, label, column, _, l1, l2 = working_set
    C, P = model.C, model.P
    m = len(x)
    V = np.zeros_like(C)
    mean = np.zeros(C.shape[1])
    h = np.empty(m)
    zeros = np.zeros(C.shape[1])
    for a in range(m):
        k = label[a]
        h[a] = curvature(columns, column[a], C[k], P[k] if C.shape[0] > 1 else zeros) + l2[a]
    everything = np.arange(m)
    support = np.empty(m, np.int64)
    sweeps = 0.0
    while sweeps < limit:
        sweeps += 1.0
        change = column_sweep(working_set, model, everything, h, V, mean, x)
        if change <= target:
            return
        count = 0
        for a in range(m):
            if x[a] != 0.0 or l1[a] == 0.0:
                support[count] = a
                count += 1
        while sweeps < limit and change > 0.5 * target:
            sweeps += (count + 1.0) / m
            change = column_sweep(working_set, model, support[:count], h, V, mean, x)
