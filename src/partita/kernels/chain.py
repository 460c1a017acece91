"""Sums over the labellings of chains, for training: in probabilities, rescaled at every position, without logarithms.

A chain occupies rows ``offsets[s] : offsets[s + 1]`` of the scores U (positions x labels). All chains share the transition
scores; `M` holds ``exp(A - shift)`` and `MT` its transpose, both with rows padded by zeros to a multiple of four.
What a gradient needs is kept for Hessian products: `alpha` (each row sums to 1), `P` (probabilities of labels), and `B`: the
probability of labels u, v at t-1, t is ``alpha[t-1, u] M[u, v] B[t, v]``. `B` and `P` carry the weight of their chain.

Labels that are `NEGLIGIBLE` at their position are left out, which also keeps clear of subnormal numbers (they are many times
slower). They may matter after all where likely labels lead nowhere. The backward sums tell: what one unit of label v at t
would have contributed. Where that is `DECISIVE`, the chain is counted as `hard` and done again with logarithms.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import inlined, sum_kernel
from ._math import exp

#: The difference to the best score at a position from which a label is left out: a factor of 1e-140.
NEGLIGIBLE = -322.0
#: The contribution of a unit from which what was left out could matter.
DECISIVE = 1e100
#: Sums that have not underflowed.
SAFE = 1e-280


@sum_kernel
def _times(M, x, out):
    """out = x M, four rows at a time."""
    n, width = M.shape
    for v in range(width):
        out[v] = 0.0
    u = 0
    while u + 4 <= n:
        a, b, c, d = x[u], x[u + 1], x[u + 2], x[u + 3]
        M0, M1, M2, M3 = M[u], M[u + 1], M[u + 2], M[u + 3]
        for v in range(width):
            out[v] += a * M0[v] + b * M1[v] + c * M2[v] + d * M3[v]
        u += 4
    while u < n:
        a = x[u]
        for v in range(width):
            out[v] += a * M[u, v]
        u += 1


@sum_kernel
def _times_two(M, x, N, y, out):
    """out = x M + y N, two rows of each at a time."""
    n, width = M.shape
    for v in range(width):
        out[v] = 0.0
    u = 0
    while u + 2 <= n:
        a, b, c, d = x[u], x[u + 1], y[u], y[u + 1]
        M0, M1, N0, N1 = M[u], M[u + 1], N[u], N[u + 1]
        for v in range(width):
            out[v] += a * M0[v] + b * M1[v] + c * N0[v] + d * N1[v]
        u += 2
    while u < n:
        a, c = x[u], y[u]
        for v in range(width):
            out[v] += a * M[u, v] + c * N[u, v]
        u += 1


@sum_kernel
def _add_outer(X, Y, length, C):
    """C += sum_{0 < t < length} X[t - 1] Y[t]', four positions at a time."""
    n = C.shape[0]
    t = 1
    while t + 4 <= length:
        Y0, Y1, Y2, Y3 = Y[t], Y[t + 1], Y[t + 2], Y[t + 3]
        for u in range(n):
            a, b, c, d = X[t - 1, u], X[t, u], X[t + 1, u], X[t + 2, u]
            row = C[u]
            for v in range(n):
                row[v] += a * Y0[v] + b * Y1[v] + c * Y2[v] + d * Y3[v]
        t += 4
    while t < length:
        for u in range(n):
            a = X[t - 1, u]
            for v in range(n):
                C[u, v] += a * Y[t, v]
        t += 1


@inlined
def forward(U, M, shift, start, stop, tmp, alpha, B):
    """Forward sums of one chain; returns log Z, NaN if it is hard. B gets exp(U) up to a factor per position."""
    n = U.shape[1]
    log_z, part, scale = shift * (stop - start - 1), 0.0, 1.0  # small parts first: they lose fewer digits
    for t in range(start, stop):
        u, e, a = U[t], B[t], alpha[t]
        top = u[0]
        for v in range(1, n):
            top = max(top, u[v])
        for v in range(n):
            below = u[v] - top
            e[v] = exp(below) if below > NEGLIGIBLE else 0.0
        if t == start:
            for v in range(n):
                a[v] = e[v]
        else:
            _times(M, alpha[t - 1], tmp)
            for v in range(n):
                a[v] = tmp[v] * e[v]
        total = 0.0
        for v in range(n):
            total += a[v]
        if not total > SAFE:
            return np.nan
        part += top
        scale *= total
        if scale < 1e-100 or scale > 1e100:
            log_z += part + math.log(scale)
            part, scale = 0.0, 1.0
        total = 1.0 / total
        for v in range(n):
            a[v] *= total
    return log_z + (part + math.log(scale))


@inlined
def backward(MT, weight, start, stop, tmp, x, y, alpha, B, P):
    """Backward sums of one chain after `forward`; returns False if it is hard."""
    n = P.shape[1]
    a, p = alpha[stop - 1], P[stop - 1]
    for v in range(n):
        x[v] = 1.0
        p[v] = weight * a[v]
    for t in range(stop - 1, start, -1):
        b, before, p = B[t], alpha[t - 1], P[t - 1]
        for v in range(n):
            y[v] = b[v] * x[v]
        _times(MT, y, tmp)
        total = 0.0
        for v in range(n):
            total += before[v] * tmp[v]
        if not total > SAFE:
            return False
        total = 1.0 / total
        largest = 0.0
        for v in range(n):
            largest = max(largest, tmp[v])
        if not largest * total < DECISIVE:
            return False
        scaled = total * weight
        for v in range(n):  # the products of alpha and x now add up to 1
            x[v] = tmp[v] * total
            b[v] = y[v] * scaled
            p[v] = before[v] * tmp[v] * scaled
    return True


@sum_kernel
def sums(U, M, MT, shift, offsets, w, lo, hi, alpha, B, P, C, log_z):
    """log Z of the chains lo..hi and what Hessian products need; C += weighted counts of transitions, up to the factor M.

    Returns how many chains are hard; their log_z is NaN and their rows of alpha, B and P are zero.
    """
    n = U.shape[1]
    tmp, x, y = np.empty(M.shape[1]), np.empty(n), np.empty(n)
    hard = 0
    for s in range(lo, hi):
        start, stop = offsets[s], offsets[s + 1]
        log_z[s] = forward(U, M, shift, start, stop, tmp, alpha, B)
        if np.isnan(log_z[s]) or not backward(MT, w[s], start, stop, tmp, x, y, alpha, B, P):
            log_z[s] = np.nan
            hard += 1
            alpha[start:stop] = 0.0
            B[start:stop] = 0.0
            P[start:stop] = 0.0
        else:
            _add_outer(alpha[start:stop], B[start:stop], stop - start, C)
    return hard


@sum_kernel
def hessian_product(M, MT, N, NT, alpha, B, P, dU, offsets, lo, hi, R, C):
    """Derivative of the weighted probabilities of labels (R) and, up to the factor M, of transitions along (dU, dA).

    N and NT are ``M * dA`` and its transpose. C gets all but ``dA`` times the expected counts, which the caller adds. With
    the expected score of the past up to t given label v at t, F, and of the future after t, x, the derivative of the
    probability of labels u, v at t-1, t is ``alpha(u) M(u, v) B(v) (F(u) + dA(u, v) + dU(v) + x(v) - mean)``.
    """
    n = dU.shape[1]
    longest = 0
    for s in range(lo, hi):
        longest = max(longest, offsets[s + 1] - offsets[s])
    past, future = np.empty((longest, n)), np.empty((longest, n))
    tmp, x, zero = np.empty(M.shape[1]), np.empty(n), 0.0
    for s in range(lo, hi):
        start, length = offsets[s], offsets[s + 1] - offsets[s]
        rows = slice(start, offsets[s + 1])
        a, b, p, du, r = alpha[rows], B[rows], P[rows], dU[rows], R[rows]
        for t in range(length):
            F, f = r[t], past[t]
            if t == 0:
                for v in range(n):
                    F[v] = du[0, v]
            else:
                _times_two(M, past[t - 1], N, a[t - 1], tmp)
                for v in range(n):
                    F[v] = du[t, v] + (tmp[v] * b[t, v] / p[t, v] if p[t, v] > 0.0 else zero)
            for v in range(n):
                f[v] = a[t, v] * F[v]
        mean, total = 0.0, 0.0
        for v in range(n):
            mean += p[length - 1, v] * r[length - 1, v]
            total += p[length - 1, v]
        mean = mean / total if total > 0.0 else zero
        for v in range(n):
            x[v] = 0.0
        for t in range(length - 1, -1, -1):
            g = future[t]
            for v in range(n):
                r[t, v] = p[t, v] * (r[t, v] + x[v] - mean)
            if t > 0:
                for v in range(n):
                    g[v] = b[t, v] * (du[t, v] + x[v])
                _times_two(MT, g, NT, b[t], tmp)
                for v in range(n):
                    x[v] = tmp[v] * a[t - 1, v] / p[t - 1, v] if p[t - 1, v] > 0.0 else zero
                for v in range(n):
                    g[v] -= b[t, v] * mean
        _add_outer(past, b, length, C)
        _add_outer(a, future, length, C)


@sum_kernel
def variances(P, offsets, w, lo, hi, out):
    """w p (1 - p) of the labels of the chains lo..hi, where P holds w p."""
    for s in range(lo, hi):
        for t in range(offsets[s], offsets[s + 1]):
            for v in range(P.shape[1]):
                out[t, v] = P[t, v] * (1.0 - P[t, v] / w[s]) if w[s] > 0.0 else 0.0
