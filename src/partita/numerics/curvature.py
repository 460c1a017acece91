"""Curvature of log Z in potential space: per example an n x n matrix S_i, held by O(n) numbers.

Two forms. *Rank one*: S = diag(D) - D D' / sum(D), with D = p for the Hessian, 1/2 for Böhning's bound, and the spec's
formulas for the symmetric bounds; ``top`` is the index of the largest D, which may be inf. *Sequential*: Algorithm 1's
visits, see `Visits`. Arrays are (examples x labels); ragged label sets go through
``values + offsets`` twins where they are needed.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..core.results import FloatArray, IntArray
from .jit import kernel, sum_kernel

HESSIAN, BOHNING, SYMMETRIC, SYMMETRIC_PROVED = 0, 1, 2, 3
DESCENDING, GIVEN, ASCENDING = 0, 1, 2


class Visits(NamedTuple):
    """The sequential form of curvatures: labels of each example in the order in which Algorithm 1 visits them.

    Each visit adds beta (e_k - mean)(e_k - mean)', where the mean of the labels before it then moves by the share kappa
    towards e_k. Arrays have an entry for each score; those of an example lie together.

    Attributes
    ----------
    order : int64 array
        The label k of each visit.
    beta, kappa : arrays
    """

    order: IntArray
    beta: FloatArray
    kappa: FloatArray


@kernel
def beta(r):
    """tanh(r/2) / (2 r), by its series near 0."""
    r = abs(r)
    if r < 1e-2:
        r2 = r * r
        return 0.25 - r2 / 48.0 + r2 * r2 / 480.0
    return np.tanh(0.5 * r) / (2.0 * r)


@kernel
def sigmoid(r):
    if r >= 0:
        return 1.0 / (1.0 + np.exp(-r))
    e = np.exp(r)
    return e / (1.0 + e)


@sum_kernel
def scalar_product(D, lo, hi, V):
    """V[i, 0] *= D[i, 0]: the binary case, where S is a number."""
    for i in range(lo, hi):
        V[i, 0] *= D[i, 0]


@kernel
def rank_one_product(D, top, lo, hi, V):
    """V[i] <- S_i V[i] in place. Differences are taken to the heaviest label, so that D[top] = inf is exact."""
    n = D.shape[1]
    for i in range(lo, hi):
        t = top[i]
        v = V[i]
        d = D[i]
        c = v[t]
        total = D.dtype.type(0.0)
        shift = D.dtype.type(0.0)
        for k in range(n):
            total += d[k]
            if k != t:
                shift += d[k] * (v[k] - c)
        if total > 0:
            shift /= total
        rest = D.dtype.type(0.0)
        for k in range(n):
            if k != t:
                r = d[k] * ((v[k] - c) - shift)
                v[k] = r
                rest += r
        v[t] = -rest


@kernel
def rank_one_weights(kind, c, u, offsets, w, lo, hi, D, top):
    """D and top of the rank-one forms, times the example weight, over ragged label sets (values + offsets)."""
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        m = -np.inf
        best = a
        for k in range(a, b):
            if u[k] > m:
                m = u[k]
                best = k
        z = 0.0
        others = 0.0
        for k in range(a, b):
            e = np.exp(u[k] - m)
            D[k] = e
            z += e
            if k != best:
                others += e
        for k in range(a, b):
            e = D[k]
            if kind == BOHNING:
                D[k] = 0.5 * w[i] if u[k] > -np.inf else 0.0
            elif kind == HESSIAN:
                D[k] = w[i] * e / z
            else:
                rest = others if k == best else z - e
                D[k] = w[i] * symmetric_weight(kind, c, u[k] - m, rest, z)
        top[i] = best - a


@kernel
def symmetric_weight(kind, c, log_e, rest, z):
    """d_k of the symmetric bounds from the log of its share, the sum of the other shares and the total."""
    if log_e == -np.inf:
        return 0.0
    if rest == 0.0:
        return np.inf
    q = rest / z
    if kind == SYMMETRIC:
        return c * beta(log_e - np.log(rest)) / q
    return proved_weight(log_e - np.log(z), q)


@kernel
def proved_weight(log_p, q):
    """d_k of the symmetric bound that is proved, from log p_k and q = 1 - p_k; at most 1."""
    if q < 1e-2:
        # -log(1-q) - q = q^2/2 + q^3/3 + ... : the series avoids a difference of nearly equal numbers
        tail = 0.5 + q * (1.0 / 3.0 + q * (0.25 + q * (0.2 + q * (1.0 / 6.0 + q / 7.0))))
        return 1.0 / (2.0 * tail)
    return q * q / (2.0 * (-log_p - q))


@kernel
def sequential_weights(ordering, u, offsets, w, lo, hi, visits):
    """Algorithm 1 in log space: write the visits of each example, with beta times its weight.

    Labels with u = -inf come last with beta = kappa = 0: they have no effect.
    """
    order, beta_out, kappa = visits
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        live = a
        for k in range(a, b):
            if u[k] > -np.inf:
                order[live] = k - a
                live += 1
        dead = live
        for k in range(a, b):
            if not u[k] > -np.inf:
                order[dead] = k - a
                dead += 1
        if ordering != GIVEN:
            for p in range(a + 1, live):
                label = order[p]
                key = u[a + label]
                q = p - 1
                while q >= a and (
                    (ordering == DESCENDING and u[a + order[q]] < key) or (ordering == ASCENDING and u[a + order[q]] > key)
                ):
                    order[q + 1] = order[q]
                    q -= 1
                order[q + 1] = label
        log_z = -np.inf
        for p in range(a, b):
            beta_out[p] = 0.0
            kappa[p] = 0.0
            if p == a and live > a:
                log_z = u[a + order[a]]
                kappa[a] = 1.0
            elif p < live:
                v = u[a + order[p]]
                r = v - log_z
                beta_out[p] = w[i] * beta(r)
                kappa[p] = sigmoid(r)
                log_z = max(log_z, v) + np.log1p(np.exp(-abs(r)))


@kernel
def sequential_product(visits, offsets, lo, hi, V):
    """V[i] <- S_i V[i] in place, O(labels): forward running mean, then backward accumulation."""
    order, beta_w, kappa = visits
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        mean = 0.0
        for p in range(a, b):
            q = a + order[p]
            diff = V[q] - mean
            V[q] = beta_w[p] * diff
            if kappa[p] > 0.0:
                mean += kappa[p] * diff
        c = 0.0
        for p in range(b - 1, a - 1, -1):
            q = a + order[p]
            t = V[q]
            V[q] = t - kappa[p] * c
            c = t + (1.0 - kappa[p]) * c


@kernel
def sequential_matrix(visits, S):
    """Write the n x n matrix S of one example, whose visits these are, in label order."""
    order, beta_w, kappa = visits
    n = order.shape[0]
    tail = 0.0
    for p in range(n - 1, -1, -1):
        k = order[p]
        S[k, k] = beta_w[p] + kappa[p] * kappa[p] * tail
        share = 1.0  # of an earlier label in the mean before visit p: kappa_j prod (1 - kappa_l)
        off = -beta_w[p] + kappa[p] * (1.0 - kappa[p]) * tail
        for q in range(p - 1, -1, -1):
            j = order[q]
            value = share * kappa[q] * off
            S[j, k] = value
            S[k, j] = value
            share *= 1.0 - kappa[q]
        tail = beta_w[p] + (1.0 - kappa[p]) ** 2 * tail


@kernel
def sequential_pairs(visits, n, lo, hi, pairs):
    """pairs[j (j+1)/2 + k, i] = S_i[j, k], k <= j, for examples with n labels each."""
    order, beta_w, kappa = visits
    S = np.empty((n, n))
    for i in range(lo, hi):
        a, b = i * n, i * n + n
        sequential_matrix(Visits(order[a:b], beta_w[a:b], kappa[a:b]), S)
        q = 0
        for j in range(n):
            for k in range(j + 1):
                pairs[q, i] = S[j, k]
                q += 1


@kernel
def rank_one_diagonal(D, top, lo, hi, out):
    """out[i, k] = S_i[k, k] = D_k (sum of the others) / sum(D)."""
    n = D.shape[1]
    for i in range(lo, hi):
        t = top[i]
        rest = 0.0
        for k in range(n):
            if k != t:
                rest += D[i, k]
        total = rest + D[i, t]
        for k in range(n):
            if k != t:
                share = D[i, k] / total if total > 0.0 else 0.0
                out[i, k] = D[i, k] * (1.0 - share)
        out[i, t] = rest * (1.0 - rest / total) if total > 0.0 else 0.0


@kernel
def rank_one_pairs(D, top, lo, hi, pairs):
    """pairs as in `sequential_pairs`; diagonals are minus the sum of the others in their row."""
    n = D.shape[1]
    share = np.empty(n)
    for i in range(lo, hi):
        total = 0.0
        for k in range(n):
            total += D[i, k]
        for k in range(n):
            share[k] = D[i, k] / total if total > 0.0 else 0.0
        if total == np.inf:
            share[top[i]] = 1.0
        q = 0
        for j in range(n):
            diagonal = 0.0
            for k in range(n):
                if k != j:
                    s = D[i, k] * share[j] if k != top[i] else D[i, j] * share[k]
                    diagonal += s
                    if k < j:
                        pairs[q, i] = -s
                        q += 1
            pairs[q, i] = diagonal
            q += 1


@sum_kernel
def algorithm_one(F, u, offsets, w, ordering, lo, hi, mean, sigma):
    """Algorithm 1 as printed, for arbitrary features F (sum of label sets x d): the reference for the forms above.

    Adds each example's weighted curvature to `sigma` and mean feature to `mean`; returns the weighted sum of log Z.
    """
    d = F.shape[1]
    mu = np.empty(d)
    step = np.empty(d)
    total = 0.0
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        order = np.empty(b - a, np.int64)
        beta_w = np.empty(b - a)
        kappa = np.empty(b - a)
        visits = Visits(order, beta_w, kappa)
        sequential_weights(ordering, u[a:b], np.array([0, b - a]), w[i : i + 1], 0, 1, visits)
        mu[:] = 0.0
        log_z = -np.inf
        for p in range(b - a):
            if kappa[p] == 0.0 and beta_w[p] == 0.0:
                continue
            f = F[a + order[p]]
            v = u[a + order[p]]
            log_z = v if p == 0 else max(log_z, v) + np.log1p(np.exp(-abs(v - log_z)))
            for j in range(d):
                step[j] = f[j] - mu[j]
                mu[j] += kappa[p] * step[j]
            for j in range(d):
                s = beta_w[p] * step[j]
                row = sigma[j]
                for l in range(d):  # noqa: E741
                    row[l] += s * step[l]
        for j in range(d):
            mean[j] += w[i] * mu[j]
        total += w[i] * log_z
    return total


@kernel
def ragged_rank_one_product(D, top, offsets, lo, hi, V):
    """As `rank_one_product`, for flat scores of label sets that differ."""
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        rank_one_product(D[a:b].reshape(1, b - a), top[i : i + 1], 0, 1, V[a:b].reshape(1, b - a))


@kernel
def rank_one_sequence(D, top, offsets, lo, hi, visits):
    """Rewrite diag(D) - D D' / sum(D) in the sequential form, from the heaviest label on (whose D may be inf).

    A weighted variance is a running one: beta_p = D_p T_{p-1} / T_p and kappa_p = D_p / T_p, T the running total.
    """
    order, beta_w, kappa = visits
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        t = a + top[i]
        total = D[t]
        order[a] = top[i]
        beta_w[a] = 0.0
        kappa[a] = 1.0
        p = a + 1
        for k in range(a, b):
            if k != t:
                before = total
                total += D[k]
                order[p] = k - a
                beta_w[p] = D[k] * (1.0 if before == np.inf else before / total) if total > 0.0 else 0.0
                kappa[p] = D[k] / total if total > 0.0 else 0.0
                p += 1


@kernel
def sequential_roots(visits, offsets, lo, hi, roots, examples):
    """Write rows a with S_i = sum a a', one per visit but the first: sqrt(beta) (e_k - running mean). Returns how many.

    `roots` is (visits x largest label set), zeros on entry.
    """
    order, beta_w, kappa = visits
    mean = np.zeros(roots.shape[1])
    row = 0
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        mean[:] = 0.0
        for p in range(a, b):
            k = order[p]
            if beta_w[p] > 0.0:
                scale = np.sqrt(beta_w[p])
                for j in range(b - a):
                    roots[row, j] = -scale * mean[j]
                roots[row, k] += scale
                examples[row] = i
                row += 1
            for j in range(b - a):
                mean[j] *= 1.0 - kappa[p]
            mean[k] += kappa[p]
    return row
