"""Forward-backward on chains, for training: in probabilities, rescaled at every position, without logarithms.

All chains share the scores of transitions, as factors (`tuples.Transitions`). What a gradient needs is kept for
Hessian products (`tuples.Messages`).

Labels that are `NEGLIGIBLE` at their position are left out, which also keeps clear of subnormal numbers (they are many times
slower). They may matter after all where likely labels lead nowhere. The backward messages tell: what one unit of label v at
t would have contributed. Where that is `DECISIVE`, the chain is counted as `hard` and done again in the log domain.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import sum_kernel
from ...numerics.simd import LANES, load, spread, store
from .blocks import WIDTH
from .forward_backward_padded import add_times, padded_forward_backward, times, workspace
from .tuples import Chains


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


@sum_kernel
def forward_backward(U, transitions, chains, lo, hi, messages, C, log_z):
    """log Z and messages of the chains lo..hi at scores U; C += weighted counts of transitions, up to the factor M.

    Returns how many chains are hard; their log_z is NaN and their messages are zero.
    """
    (offsets, w), (alpha, B, P) = chains, messages
    n, width = U.shape[1], transitions.M.shape[1]
    longest = 0
    for s in range(lo, hi):
        longest = max(longest, offsets[s + 1] - offsets[s])
    u, room = workspace(longest, width)
    a, b, p = room
    whole, hard = np.zeros(2, np.int64), 0
    for s in range(lo, hi):
        start, length = offsets[s], offsets[s + 1] - offsets[s]
        whole[1] = length
        for t in range(length):
            for v in range(n):
                u[t, v] = U[start + t, v]
        hard += padded_forward_backward(u, transitions, Chains(whole, w[s : s + 1]), room, C, log_z[s : s + 1])
        for t in range(length):
            for v in range(n):
                alpha[start + t, v] = a[t, v]
            for v in range(n):
                B[start + t, v] = b[t, v]
            for v in range(n):
                P[start + t, v] = p[t, v]
    return hard


@sum_kernel
def hessian_product(transitions, change, messages, dU, offsets, lo, hi, R, C):
    """Derivative of the marginals (R) and, up to the factor M, of expected transitions along (dU, dA): forward-backward of
    expected scores.

    `change` are the transitions times dA, N and NT. C gets all but ``dA`` times the expected counts, which the caller adds.
    With the expected score of the past up to t given label v at t, F, and of the future after t, x, the derivative of the
    probability of labels u, v at t-1, t is ``alpha(u) M(u, v) B(v) (F(u) + dA(u, v) + dU(v) + x(v) - mean)``.
    """
    (M, MT, _), (N, NT, _), (alpha, B, P) = transitions, change, messages
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
                times(M, past, (t - 1) * n, tmp, 0)
                add_times(N, a, (t - 1) * n, tmp, 0)
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
                times(MT, future, t * n, tmp, 0)
                add_times(NT, b, t * n, tmp, 0)
                for v in range(n):
                    x[v] = tmp[v] * a[t - 1, v] / p[t - 1, v] if p[t - 1, v] > 0.0 else zero
                for v in range(n):
                    g[v] -= b[t, v] * mean
        _add_outer(past, b, length, C)
        _add_outer(a, future, length, C)


@sum_kernel
def residual_counts(M, messages, chains, y, lo, hi, out):
    """out[s - lo]: the transitions of chain s less their expected number, weighted."""
    (alpha, B, _), (offsets, w) = messages, chains
    n = M.shape[0]
    for s in range(lo, hi):
        C, rows = out[s - lo], slice(offsets[s], offsets[s + 1])
        C[:] = 0.0
        _add_outer(alpha[rows], B[rows], offsets[s + 1] - offsets[s], C)
        for u in range(n):
            for v in range(n):
                C[u, v] *= -M[u, v]
        for t in range(offsets[s] + 1, offsets[s + 1]):
            C[y[t - 1], y[t]] += w[s]


@sum_kernel
def signed_counts(M, messages, chains, y, signs, lo, hi, out):
    """out[u n + v] += signs[s] times what `residual_counts` has for chain s; `signs` is a block."""
    n = M.shape[0]
    C = np.empty((1, n, n))
    for s in range(lo, hi):
        residual_counts(M, messages, chains, y, s, s + 1, C)
        a, b, place = load(signs, s * WIDTH), load(signs, s * WIDTH + LANES), 0
        for u in range(n):
            for v in range(n):
                c = spread(C[0, u, v])
                store(out, place, load(out, place) + c * a)
                store(out, place + LANES, load(out, place + LANES) + c * b)
                place += WIDTH


@sum_kernel
def variances(P, chains, lo, hi, out):
    """w p (1 - p) of the labels of the chains lo..hi, where P holds w p."""
    offsets, w = chains
    for s in range(lo, hi):
        for t in range(offsets[s], offsets[s + 1]):
            for v in range(P.shape[1]):
                out[t, v] = P[t, v] * (1.0 - P[t, v] / w[s]) if w[s] > 0.0 else 0.0
