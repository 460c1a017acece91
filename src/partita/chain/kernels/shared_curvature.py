"""A quadratic above log Z of chains, by its products: one curvature at each position for all labels that follow.

With F(u) the mean score along a direction up to a position, given its label u, and dA that of transitions, the sum over u
for a next label v adds ``|F + dA_v|^2`` in the norm of a matrix S_v that is above its curvature (see `chain.bounds`). What
is above that for all v at once is found by splitting dA_v into its mean over v and the rest: ``|x + y|^2 <= (1 + r) |x|^2 +
(1 + 1 / r) |y|^2``. The first part does not depend on v, and S_v = diag(d_v) - d_v d_v' / sum(d_v) grows with d_v: the
largest of each entry serves all v. The second is summed over v; dA is the same everywhere, and sums of such matrices are
below the one of the summed d.
"""

from __future__ import annotations

import math

import numpy as np

from ...numerics.curvature import proved_weight
from ...numerics.jit import sum_kernel
from ...numerics.math import exp

#: Sums of terms of at most 1 from which nothing that underflowed can matter.
SAFE = 1e-100


@sum_kernel
def _column(log_a, A, v, s, p):
    """Scores s and probabilities p of the labels before v; the logarithm of their sum, and how many are possible."""
    best, live = -np.inf, 0
    for u in range(len(s)):
        s[u] = log_a[u] + A[u, v]
        best = max(best, s[u])
        live += s[u] > -np.inf
    if not live:
        p[:] = 0.0
        return -np.inf, 0
    total = 0.0
    for u in range(len(s)):
        p[u] = exp(s[u] - best)
        total += p[u]
    for u in range(len(s)):
        p[u] /= total
    return best + math.log(total), live


@sum_kernel
def _shift(log_a):
    """Make the largest zero."""
    best = -np.inf
    for u in range(len(log_a)):
        best = max(best, log_a[u])
    if best > -np.inf:
        for u in range(len(log_a)):
            log_a[u] -= best


@sum_kernel
def _norm(uniform, s, log_z, p, d):
    """d of the norm that is above the curvature of a sum with these scores and probabilities."""
    top, others = 0, 0.0
    for u in range(len(p)):
        if p[u] > p[top]:
            top = u
    for u in range(len(p)):
        others += p[u] if u != top else 0.0
    for u in range(len(p)):
        if s[u] == -np.inf:
            d[u] = 0.0
        elif uniform:
            d[u] = 0.5
        else:
            d[u] = proved_weight(s[u] - log_z, others if u == top else 1.0 - p[u])


@sum_kernel
def _cap(d, w):
    """Where constant d of one half are smaller (Böhning's bound), take these; then times w."""
    total, live = 0.0, 0
    for u in range(len(d)):
        total += d[u]
        live += d[u] > 0.0
    for u in range(len(d)):
        d[u] = w * (0.5 if total > 0.5 * live and d[u] > 0.0 else d[u])


@sum_kernel
def norms(U, A, offsets, weights, uniform, lo, hi, log_a, within, last, D):
    """Norms for the chains lo..hi, weighted, and the forward messages that products take.

    ``within[t]`` is d of the sum over the labels at t - 1, for all labels at t; ``last[s]`` of the last sum of chain s. To
    D, (labels, labels), d of each sum for the label v is added in column v.
    """
    n = U.shape[1]
    s, p, d = np.empty(n), np.empty(n), np.empty(n)
    zero = np.zeros((n, 1))
    for c in range(lo, hi):
        start, stop, w = offsets[c], offsets[c + 1], weights[c]
        last[c] = 0.0
        if stop == start:
            continue
        log_a[start] = U[start]
        _shift(log_a[start])
        for t in range(start + 1, stop):
            within[t] = 0.0
            for v in range(n):
                log_z, live = _column(log_a[t - 1], A, v, s, p)
                log_a[t, v] = U[t, v] + log_z
                if live > 1 and U[t, v] > -np.inf:
                    _norm(uniform, s, log_z, p, d)
                    for u in range(n):
                        within[t, u] = max(within[t, u], d[u])
                        D[u, v] += w * d[u]
            _cap(within[t], w)
            _shift(log_a[t])
        log_z, live = _column(log_a[stop - 1], zero, 0, s, p)
        if live > 1:
            _norm(uniform, s, log_z, p, last[c])
            _cap(last[c], w)


@sum_kernel
def _in_norm(d, x, out):
    """out = (diag(d) - d d' / sum(d)) x."""
    total, mean = 0.0, 0.0
    for u in range(len(d)):
        total += d[u]
        mean += d[u] * x[u]
    mean = mean / total if total > 0.0 else 0.0
    for u in range(len(d)):
        out[u] = d[u] * (x[u] - mean)


@sum_kernel
def _forward(e, M, N, F, z, f):
    """Sums z(v) of e(u) M(u, v), and f(v) of e(u) (M(u, v) F(u) + N(u, v))."""
    n = len(e)
    z[:] = 0.0
    f[:] = 0.0
    for u in range(n):
        a, b, row, other = e[u], e[u] * F[u], M[u], N[u]
        for v in range(n):
            z[v] += a * row[v]
            f[v] += b * row[v] + a * other[v]


@sum_kernel
def _backward(e, M, r, h, counts):
    """h(u) = e(u) sum_v M(u, v) r(v), and counts += e r'."""
    n = len(e)
    for u in range(n):
        a, row, count, total = e[u], M[u], counts[u], 0.0
        for v in range(n):
            total += row[v] * r[v]
            count[v] += a * r[v]
        h[u] = a * total


@sum_kernel
def _means(log_a, A, M, N, dU, dA, start, stop, F, work):
    """Mean scores along the direction up to each position, given its label."""
    e, z, f, s, p = work
    n = len(e)
    F[start] = dU[start]
    for t in range(start + 1, stop):
        for u in range(n):
            e[u] = exp(log_a[t - 1, u])
        _forward(e, M, N, F[t - 1], z, f)
        for v in range(n):
            if z[v] > SAFE:
                F[t, v] = dU[t, v] + f[v] / z[v]
            else:  # all of it underflowed
                _column(log_a[t - 1], A, v, s, p)
                F[t, v] = dU[t, v]
                for u in range(n):
                    if p[u] > 0.0:
                        F[t, v] += p[u] * (F[t - 1, u] + dA[u, v])


@sum_kernel
def product(log_a, within, last, A, M, offsets, dU, dA, middle, ratio, lo, hi, out, out_A, out_middle):
    """The curvature of the chains lo..hi times (dU, dA): in `out`, and added to `out_A` and, for what goes through the mean
    transition score `middle` of each label, to `out_middle`. M holds exp(A), each column divided by its largest."""
    n = dU.shape[1]
    e, z, f, s, p, r = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    g, h, x, y = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    N, counts, nothing = M * dA, np.zeros((n, n)), np.zeros((n, n))
    for c in range(lo, hi):
        start, stop = offsets[c], offsets[c + 1]
        if stop == start:
            continue
        _means(log_a, A, M, N, dU, dA, start, stop, out, (e, z, f, s, p))
        _in_norm(last[c], out[stop - 1], g)
        for t in range(stop - 1, start, -1):
            for u in range(n):
                e[u] = exp(log_a[t - 1, u])
                x[u] = out[t - 1, u] + middle[u]
            _forward(e, M, nothing, x, z, f)
            for v in range(n):
                r[v] = g[v] / z[v] if z[v] > SAFE else 0.0
            _backward(e, M, r, h, counts)
            for v in range(n):
                if not z[v] > SAFE and g[v] != 0.0:
                    _column(log_a[t - 1], A, v, s, p)
                    for u in range(n):
                        h[u] += g[v] * p[u]
                        out_A[u, v] += g[v] * p[u]
            _in_norm(within[t], x, y)
            out[t] = g
            for u in range(n):
                out_middle[u] += ratio * y[u]
                g[u] = h[u] + ratio * y[u]
        out[start] = g
    for u in range(n):
        for v in range(n):
            out_A[u, v] += counts[u, v] * M[u, v]
