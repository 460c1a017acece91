"""A whole Newton step of softmax regression in one call, for problems so small that calls cost more than arithmetic.

Labels share the gauge "add a constant to every label", so the step is solved for differences to the last label, with one
label less: theta_k = phi_k - mean(phi), and ||theta||^2 = phi' (I - 11'/n) phi. Two labels hold one vector and need none
of this.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray
from ...numerics.jit import sum_kernel
from . import categorical


class SmallProblem(NamedTuple):
    """A softmax regression with an l2 penalty.

    Attributes
    ----------
    XT : array (columns, examples)
        The transpose of the data, with a row of ones last if there are intercepts.
    targets : Targets
    penalty : array (columns,)
        The l2 of a column, the same for all labels.
    """

    XT: FloatArray
    targets: categorical.Targets
    penalty: FloatArray


class Iterate(NamedTuple):
    """Weights and what the likelihood is there. Two classes have one label, whose score is the log-odds.

    Attributes
    ----------
    theta : array (labels, columns)
    g : array (labels, columns)
        The gradient in theta.
    U : array (examples, labels)
        Scores.
    P : array (examples, labels)
        Probabilities.
    R : array (examples, labels)
        Residuals w (P - e_y), the gradient in U.
    """

    theta: FloatArray
    g: FloatArray
    U: FloatArray
    P: FloatArray
    R: FloatArray


@sum_kernel
def weighted_gram(XT, s, scaled, H, row, column):
    """H at (row, column) = sum_i s_i x_i x_i', from the transpose of X; the lower triangle at least if row == column.

    `scaled` is scratch of (2 x examples). Tiles of two rows by four columns: eight sums for six loads.
    """
    p, N = XT.shape
    s0 = scaled[0]
    s1 = scaled[1]
    a = 0
    while a < p:
        pair = a + 1 < p
        x = XT[a]
        z = XT[a + 1] if pair else x
        for i in range(N):
            s0[i] = s[i] * x[i]
            s1[i] = s[i] * z[i]
        stop = min(p, a + 2) if row == column else p
        b = 0
        while b < stop:
            # past the end the last column is taken again: its sums are written last, and are right
            b0, b1, b2, b3 = b, min(b + 1, p - 1), min(b + 2, p - 1), min(b + 3, p - 1)
            x0 = XT[b0]
            x1 = XT[b1]
            x2 = XT[b2]
            x3 = XT[b3]
            c0 = c1 = c2 = c3 = d0 = d1 = d2 = d3 = 0.0
            for i in range(N):
                u = s0[i]
                v = s1[i]
                c0 += u * x0[i]
                c1 += u * x1[i]
                c2 += u * x2[i]
                c3 += u * x3[i]
                d0 += v * x0[i]
                d1 += v * x1[i]
                d2 += v * x2[i]
                d3 += v * x3[i]
            h = H[row + a]
            h[column + b0] = c0
            h[column + b1] = c1
            h[column + b2] = c2
            h[column + b3] = c3
            if pair:
                h = H[row + a + 1]
                h[column + b0] = d0
                h[column + b1] = d1
                h[column + b2] = d2
                h[column + b3] = d3
            b += 4
        a += 2


@sum_kernel
def cholesky_solve(H, b):
    """Factor the lower triangle of H in place and solve for b in place; returns 0, or 1 if H is not positive definite."""
    q = H.shape[0]
    for i in range(q):
        r = H[i]
        for j in range(i):
            c = H[j]
            v = r[j]
            for k in range(j):
                v -= r[k] * c[k]
            r[j] = v / c[j]
        v = r[i]
        threshold = 1e-14 * v
        for k in range(i):
            v -= r[k] * r[k]
        if not v > threshold:
            return 1
        r[i] = np.sqrt(v)
    for i in range(q):
        v = b[i]
        for k in range(i):
            v -= H[i, k] * b[k]
        b[i] = v / H[i, i]
    for i in range(q - 1, -1, -1):
        v = b[i] / H[i, i]
        b[i] = v
        for k in range(i):
            b[k] -= H[i, k] * v
    return 0


@sum_kernel
def direction(problem, here, D):
    """Newton direction D (labels x columns) from an iterate. Returns a status."""
    XT, w, penalty = problem.XT, problem.targets.w, problem.penalty
    T, G, P = here.theta, here.g, here.P
    n, p = T.shape
    N = XT.shape[1]
    scaled = np.empty((2, N))
    m = max(1, n - 1)
    s = np.empty(N)
    H = np.zeros((m * p, m * p))
    b = np.empty(m * p)
    for j in range(m):
        for k in range(j + 1):
            if n == 1:
                for i in range(N):
                    s[i] = w[i] * P[i, 0] * (1.0 - P[i, 0])
            elif j == k:
                for i in range(N):
                    s[i] = w[i] * P[i, j] * (1.0 - P[i, j])
            else:
                for i in range(N):
                    s[i] = -w[i] * P[i, j] * P[i, k]
            weighted_gram(XT, s, scaled, H, j * p, k * p)
            share = 1.0 if n == 1 else ((1.0 if j == k else 0.0) - 1.0 / n)
            for a in range(p):
                H[j * p + a, k * p + a] += share * penalty[a]
    for a in range(p):
        mean = 0.0
        if n > 1:
            for k in range(n):
                mean += G[k, a] / n
        for j in range(m):
            b[j * p + a] = mean - G[j, a]
    if cholesky_solve(H, b) != 0:
        return 1
    for a in range(p):
        mean = 0.0
        shift = 0.0
        if n > 1:
            for j in range(m):
                mean += b[j * p + a] / n
            if penalty[a] > 0.0:
                for k in range(n):
                    shift += T[k, a] / n
        for k in range(n):
            D[k, a] = (b[k * p + a] if k < m else 0.0) - mean - shift
    return 0


@sum_kernel
def combine(XT, t, out):
    """out = sum_a t[a] XT[a], four columns of X at a time."""
    p, N = XT.shape
    out[:] = 0.0
    a = 0
    while a + 4 <= p:
        x0 = XT[a]
        x1 = XT[a + 1]
        x2 = XT[a + 2]
        x3 = XT[a + 3]
        for i in range(N):
            out[i] += t[a] * x0[i] + t[a + 1] * x1[i] + t[a + 2] * x2[i] + t[a + 3] * x3[i]
        a += 4
    while a < p:
        x0 = XT[a]
        for i in range(N):
            out[i] += t[a] * x0[i]
        a += 1


@sum_kernel
def add_products(XT, r, g):
    """Add XT[a] . r to g[a]."""
    p, N = XT.shape
    a = 0
    while a < p:
        x0 = XT[a]
        x1 = XT[min(a + 1, p - 1)]
        x2 = XT[min(a + 2, p - 1)]
        x3 = XT[min(a + 3, p - 1)]
        c0 = c1 = c2 = c3 = 0.0
        for i in range(N):
            v = r[i]
            c0 += v * x0[i]
            c1 += v * x1[i]
            c2 += v * x2[i]
            c3 += v * x3[i]
        g[a] += c0
        if a + 1 < p:
            g[a + 1] += c1
        if a + 2 < p:
            g[a + 2] += c2
        if a + 3 < p:
            g[a + 3] += c3
        a += 4


@sum_kernel
def line_minimum(targets, U, image, first, linear, quadratic, scratch):
    """A step t whose slope is at most a tenth of the `first`, by safeguarded Newton steps from t = 1.

    The penalty's slope at t is linear + t quadratic.
    """
    N, n = U.shape
    u = U.ravel()
    du = image.ravel()
    low = 0.0
    high = np.inf
    t = 1.0
    for _ in range(12):
        if n == 1:
            slope, bend = categorical.binary_slope(u, du, t, targets, 0, N)
        else:
            slope, bend = categorical.slope(u, du, t, targets, 0, N, scratch)
        slope += linear + t * quadratic
        bend += quadratic
        if abs(slope) <= 0.1 * abs(first):
            return t
        if slope < 0.0:
            low = t
        else:
            high = t
        ceiling = min(high, 4.0 * t)
        move = t - slope / bend if bend > 0.0 else ceiling
        t = move if low < move < ceiling else (0.5 * (low + high) if high < np.inf else ceiling)
    return t


@sum_kernel
def trial(problem, here, D, image, there):
    """The Newton direction D (labels x columns) and the iterate at the best step along it.

    `image` (examples x labels) becomes the change of scores along D. Returns (status, step, value, slope).
    """
    XT, targets, penalty = problem
    T, G, U = here.theta, here.g, here.U
    T1, G1, U1, P1, R1 = there
    n, p = T.shape
    N = XT.shape[1]
    if direction(problem, here, D) != 0:
        return 1, 0.0, 0.0, 0.0
    column = np.empty(N)
    for k in range(n):
        combine(XT, D[k], column)
        for i in range(N):
            image[i, k] = column[i]
    linear = 0.0
    quadratic = 0.0
    for k in range(n):
        for a in range(p):
            linear += penalty[a] * T[k, a] * D[k, a]
            quadratic += penalty[a] * D[k, a] * D[k, a]
    first = 0.0
    for k in range(n):
        for a in range(p):
            first += G[k, a] * D[k, a]
    step = line_minimum(targets, U, image, first, linear, quadratic, P1.ravel())
    for i in range(N):
        for k in range(n):
            U1[i, k] = U[i, k] + step * image[i, k]
    if n == 1:
        value = categorical.binary_loss(U1.ravel(), targets, 0, N, P1.ravel(), R1.ravel())
    else:
        value = categorical.loss(U1.ravel(), targets, 0, N, P1.ravel(), R1.ravel())
    slope = 0.0
    for k in range(n):
        for a in range(p):
            T1[k, a] = T[k, a] + step * D[k, a]
            value += 0.5 * penalty[a] * T1[k, a] * T1[k, a]
            G1[k, a] = 0.0
    for k in range(n):
        for i in range(N):
            column[i] = R1[i, k]
        add_products(XT, column, G1[k])
    for a in range(p):
        mean = 0.0  # residuals sum to zero over the labels; rounding must not say otherwise
        if n > 1:
            for k in range(n):
                mean += G1[k, a] / n
        for k in range(n):
            G1[k, a] += penalty[a] * T1[k, a] - mean
            slope += G1[k, a] * D[k, a]
    return 0, step, value, slope
