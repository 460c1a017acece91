"""Upper bounds of log Z of chains along a line, for any scores, -inf included: forward messages, and what they sum over."""

from __future__ import annotations

import math

import numpy as np

from ...numerics.jit import sum_kernel
from ...numerics.math import exp
from .forward_backward_padded import add_times, padded, times

#: Sums of terms of at most 1 from which nothing that underflowed can matter.
SAFE = 1e-100
#: Share of the squared distance that a variance is never below: what may have been lost to underflow.
LOST = 1e-200


@sum_kernel
def one_sided(b, s):
    """The least K with log E exp(t x) <= K t^2 / 2 for all t >= 0 and all x <= b with mean 0 and variance at most s.

    Of these, the x with two values, b and -s/b, has the largest E exp(t x) (Bennett, 1962). If s >= b^2 its upper value is
    the likelier one, tilting by t >= 0 only lowers its variance, and K = s. Else K is Kearns and Saul's (1998).
    """
    B = b * b
    if not s < B:
        return s
    s = max(s, LOST * B)
    r = math.log(B / s)
    if r < 1e-2:
        mean = s * (1.0 + r * (0.5 + r * (1.0 / 6.0 + r / 24.0)))
    else:
        mean = (B - s) / r
    return 0.5 * (1.0 + s / B) * mean


@sum_kernel
def within(b, s, radius):
    """The same for t <= radius only, by Bennett's inequality: s * 2 (e^x - 1 - x) / x^2 at x = b * radius."""
    x = b * radius
    if x < 1e-3:
        return s * (1.0 + x * (1.0 / 3.0 + x / 12.0))
    if x < 500.0:
        return s * 2.0 * (exp(x) - 1.0 - x) / (x * x)
    return np.inf


@sum_kernel
def _columns(A, dA, top, M, N, barrier):
    """M[u, v] = exp(A[u, v] - top[v]) with top[v] the largest of column v, N = M * dA; barrier is dA, or -inf where A is."""
    n = len(A)
    for v in range(n):
        top[v] = -np.inf
        for u in range(n):
            top[v] = max(top[v], A[u, v])
        for u in range(n):
            live = A[u, v] > -np.inf
            M[u, v] = exp(A[u, v] - top[v]) if live else 0.0
            N[u, v] = M[u, v] * dA[u, v]
            barrier[u, v] = dA[u, v] if live else -np.inf


@sum_kernel
def _largest(x, M, out):
    """out[v] = the largest x[u] + M[u, v]."""
    n = len(x)
    for v in range(n):
        out[v] = x[0] + M[0, v]
    for u in range(1, n):
        x_u, row = x[u], M[u]
        for v in range(n):
            y = x_u + row[v]
            out[v] = y if y > out[v] else out[v]


@sum_kernel
def _squares(e, M, F, dA, f, out):
    """out[v] += sum_u e[u] M[u, v] (F[u] + dA[u, v] - f[v])^2 over u with e[u] > 0, two at a time."""
    n = len(e)
    first = -1
    for u in range(n):
        if e[u] > 0.0:
            if first < 0:
                first = u
                continue
            a, b, F0, F1 = e[first], e[u], F[first], F[u]
            M0, M1, A0, A1 = M[first], M[u], dA[first], dA[u]
            for v in range(n):
                x = F0 + A0[v] - f[v]
                y = F1 + A1[v] - f[v]
                out[v] += a * M0[v] * (x * x) + b * M1[v] * (y * y)
            first = -1
    if first >= 0:
        a, F0, M0, A0 = e[first], F[first], M[first], dA[first]
        for v in range(n):
            x = F0 + A0[v] - f[v]
            out[v] += a * M0[v] * (x * x)


@sum_kernel
def _column(log_a, A, F, V, dA, v):
    """Log-sum-exp, mean, variance and mean of V for one label v, in the log domain: where all weights underflow."""
    n = len(log_a)
    best = -np.inf
    for u in range(n):
        best = max(best, log_a[u] + A[u, v])
    total, mean, inner, spread = 0.0, 0.0, 0.0, 0.0
    for u in range(n):
        w = exp(log_a[u] + A[u, v] - best)
        if w > 0.0:
            total += w
            mean += w * (F[u] + dA[u, v])
            inner += w * V[u]
    mean /= total
    for u in range(n):
        w = exp(log_a[u] + A[u, v] - best)
        if w > 0.0:
            spread += w * (F[u] + dA[u, v] - mean) ** 2
    return best + math.log(total), mean, spread / total, inner / total


@sum_kernel
def _weigh(log_a, e, V, F, X, g, h):
    """g = e F and h = e V; then F and X are -inf where there are no labellings."""
    for u in range(len(log_a)):
        g[u] = e[u] * F[u]
        h[u] = e[u] * V[u]
        if not log_a[u] > -np.inf:
            F[u] = -np.inf
            X[u] = -np.inf


@sum_kernel
def _normalise(top, z, log_z, f, inner):
    """From sums z of weights to their logarithms, and from sums f and inner to means; z gets 1 / z, 0 if that is lost."""
    for v in range(len(top)):
        if z[v] > SAFE:
            log_z[v] = top[v] + math.log(z[v])
            z[v] = 1.0 / z[v]
        else:
            log_z[v] = -np.inf
            z[v] = 0.0
        f[v] *= z[v]
        inner[v] *= z[v]


@sum_kernel
def _worst(log_z, f, v2, x_max, U, t, radius):
    """The largest curvature of the sums for the labels that are possible at t, for all steps and for those up to radius."""
    worst, worst_near = 0.0, 0.0
    for v in range(len(log_z)):
        b = x_max[v] - f[v]
        if log_z[v] > -np.inf and U[t, v] > -np.inf:
            c = one_sided(b, v2[v])
            worst = max(worst, c)
            if c > worst_near:
                worst_near = max(worst_near, min(c, within(b, v2[v], radius)))
    return worst, worst_near


@sum_kernel
def _conclude(log_a, F, V, X, e, K, K_near, radius):
    """Curvature, nearby, variance and above of a chain, from its last position and the curvatures of the sums before."""
    total, mean, spread, rest = 0.0, 0.0, 0.0, 0.0
    furthest, highest = -np.inf, -np.inf
    for v in range(len(log_a)):
        if log_a[v] > -np.inf:
            total += e[v]
            mean += e[v] * F[v]
            furthest = max(furthest, F[v])
            highest = max(highest, X[v])
    if not total > 0.0:
        return 0.0, 0.0, 0.0, 0.0
    mean /= total
    for v in range(len(log_a)):
        if log_a[v] > -np.inf:
            spread += e[v] * (F[v] - mean) ** 2
            rest += e[v] * V[v]
    spread /= total
    c = one_sided(furthest - mean, spread)
    K += c
    K_near += min(c, within(furthest - mean, spread, radius))
    variance = spread + rest / total
    above = highest - mean
    curvature = min(K, one_sided(above, variance))
    nearby = min(min(K_near, curvature), within(above, variance, radius))
    return curvature, nearby, variance, above


@sum_kernel
def line_bounds(scores, along, offsets, radius, lo, hi, bounds):
    """The `bounds` (`tuples.LineBounds`) of the chains lo..hi from `scores` on the half-line `along`; zeros for chains
    with log Z = -inf. Those nearby are for steps up to `radius`.

    By the label v of a position, log_a[v] is the forward message in the log domain, F[v] the mean score along the line up to
    there, V[v] its variance and X[v] the largest; F and X are kept up to a common constant. Sums over the label u before v
    are log_z, the means f of F + dA and inner of V, the variance v2, and the largest F + dA and X + dA.
    """
    (U, A), (dU, dA) = scores, along
    n = U.shape[1]
    width = padded(n)
    M, N, barrier, top = np.zeros((n, width)), np.zeros((n, width)), np.empty((n, n)), np.empty(n)
    log_a, e, F, V, X, g, h = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    z, f, inner = np.empty(width), np.empty(width), np.empty(width)
    log_z, v2, x_max, score_max = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    _columns(A, dA, top, M, N, barrier)
    for s in range(lo, hi):
        start, stop = offsets[s], offsets[s + 1]
        K, K_near = 0.0, 0.0
        for v in range(n):
            log_a[v] = U[start, v]
            F[v] = dU[start, v]
            X[v] = dU[start, v]
            V[v] = 0.0
        for t in range(start + 1, stop + 1):
            # Messages with a largest one of 1, scores less their mean; a kernel of its own would sum in another order.
            largest, shift, live = -np.inf, 0.0, 0
            for u in range(n):
                largest = max(largest, log_a[u])
            if not largest > -np.inf:
                break
            for u in range(n):
                log_a[u] -= largest
                e[u] = exp(log_a[u])
                if log_a[u] > -np.inf:
                    shift += F[u]
                    live += 1
            shift /= live
            for u in range(n):
                F[u] -= shift
                X[u] -= shift
            if t == stop:
                break
            _weigh(log_a, e, V, F, X, g, h)
            times(M, e, 0, z, 0)
            times(M, h, 0, inner, 0)
            times(M, g, 0, f, 0)
            add_times(N, e, 0, f, 0)
            _largest(F, barrier, x_max)
            _largest(X, barrier, score_max)
            _normalise(top, z, log_z, f, inner)
            v2[:] = 0.0
            _squares(e, M, F, dA, f, v2)
            for v in range(n):
                v2[v] *= z[v]
                if z[v] == 0.0 and x_max[v] > -np.inf:
                    log_z[v], f[v], v2[v], inner[v] = _column(log_a, A, F, V, dA, v)
            worst, worst_near = _worst(log_z, f, v2, x_max, U, t, radius)
            K += worst
            K_near += worst_near
            for v in range(n):
                log_a[v] = log_z[v] + U[t, v]
                F[v] = f[v] + dU[t, v]
                X[v] = score_max[v] + dU[t, v]
                V[v] = v2[v] + inner[v]
        found = _conclude(log_a, F, V, X, e, K, K_near, radius)
        bounds.curvature[s], bounds.nearby[s], bounds.variance[s], bounds.above[s] = found
