"""Forward-backward on chains in the log domain: slow, but exact whatever the potentials.

A sequence is the rows lo:hi of E (positions, labels). Pairwise potentials are A of shape (1, n, n), one matrix for all, or
(positions, n, n), where A[t] leads from t - 1 into t. -inf forbids. Forward and backward messages, log alpha and log beta,
are kept with a largest entry of zero in each row: differences within a row are all that marginals need, and they lose no
digits on long sequences.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp


@kernel
def _log_product(x, M, m, out):
    """A product by log-sum-exp, out[v] = log sum_u exp(x[u] + M[u, v]); m is scratch.

    Inner loops run over v: they vectorise without reordering.
    """
    n = len(x)
    for v in range(n):
        m[v] = -np.inf
        out[v] = 0.0
    for u in range(n):
        if x[u] > -np.inf:
            for v in range(n):
                z = x[u] + M[u, v]
                m[v] = z if z > m[v] else m[v]
    for v in range(n):
        m[v] = m[v] if m[v] > -np.inf else 0.0
    for u in range(n):
        if x[u] > -np.inf:
            for v in range(n):
                out[v] += exp(x[u] + M[u, v] - m[v])
    for v in range(n):
        out[v] = m[v] + np.log(out[v])


@kernel
def _shift(row):
    """Subtract the largest entry from a row and return it."""
    m = -np.inf
    for v in range(len(row)):
        m = max(m, row[v])
    if m > -np.inf:
        for v in range(len(row)):
            row[v] -= m
    return m


@kernel
def log_forward(E, A, lo, hi, alpha):
    """Forward messages of a sequence, log alpha up to a constant of the row; returns log Z, -inf if it is impossible.

    Of an impossible sequence, rows of alpha after the first impossible one are not written.
    """
    n = E.shape[1]
    scratch = np.empty(n)
    total = 0.0
    lost = 0.0  # what the sum of shifts rounds away
    for t in range(lo, hi):
        row = alpha[t - lo]
        if t == lo:
            row[:] = E[t]
        else:
            _log_product(alpha[t - lo - 1], A[0 if A.shape[0] == 1 else t], scratch, row)
            for v in range(n):
                row[v] += E[t, v]
        shift = _shift(row)
        if shift == -np.inf:
            return -np.inf
        new = total + shift
        lost += (total - new) + shift if abs(total) >= abs(shift) else (shift - new) + total
        total = new
    z = 0.0
    for v in range(n):
        z += exp(alpha[hi - lo - 1, v])
    return total + (lost + np.log(z))


@kernel
def log_backward(E, A, lo, hi, beta):
    """Backward messages of a sequence, log beta up to a constant of the row; the last row is zero."""
    n = E.shape[1]
    shared = A.shape[0] == 1
    scratch = np.empty(n)
    x = np.empty(n)
    M = np.empty((n, n))
    beta[hi - lo - 1] = 0.0
    for t in range(hi - 1, lo, -1):
        if t == hi - 1 or not shared:
            M[:] = A[0 if shared else t].T
        for v in range(n):
            x[v] = E[t, v] + beta[t - lo, v]
        _log_product(x, M, scratch, beta[t - lo - 1])
        _shift(beta[t - lo - 1])


@kernel
def log_marginals(E, A, lo, hi, alpha, beta, log_z, P):
    """Marginals, P[t] = the probability of each label at t; zero if the sequence is impossible."""
    n = E.shape[1]
    for t in range(lo, hi):
        row = P[t]
        if log_z == -np.inf:
            row[:] = 0.0
            continue
        for v in range(n):
            row[v] = alpha[t - lo, v] + beta[t - lo, v]
        _shift(row)
        z = 0.0
        for v in range(n):
            row[v] = exp(row[v])
        for v in range(n):
            z += row[v]
        for v in range(n):
            row[v] /= z


@kernel
def log_pairs(E, A, lo, hi, alpha, beta, log_z, factor, C):
    """Add factor p(y_{t-1} = u, y_t = v) to C[t, u, v], or for C of shape (1, n, n) its sum over t to C[0]."""
    if log_z == -np.inf:
        return
    n = E.shape[1]
    X = np.empty((n, n))
    w = np.empty(n)
    m = np.empty(n)
    for t in range(lo + 1, hi):
        M = A[0 if A.shape[0] == 1 else t]
        target = C[0 if C.shape[0] == 1 else t]
        for v in range(n):
            w[v] = E[t, v] + beta[t - lo, v]
            m[v] = -np.inf
        for u in range(n):
            a = alpha[t - lo - 1, u]
            for v in range(n):
                z = a + M[u, v] + w[v]
                X[u, v] = z
                m[v] = z if z > m[v] else m[v]
        top = -np.inf
        for v in range(n):
            top = max(top, m[v])
            w[v] = 0.0
        for u in range(n):
            for v in range(n):
                X[u, v] = exp(X[u, v] - top)
                w[v] += X[u, v]
        z = 0.0
        for v in range(n):
            z += w[v]
        scale = factor / z
        for u in range(n):
            for v in range(n):
                target[u, v] += scale * X[u, v]


@kernel
def longest(offsets, lo, hi):
    """The largest number of positions of sequences lo:hi."""
    length = 0
    for i in range(lo, hi):
        length = max(length, offsets[i + 1] - offsets[i])
    return length


@kernel
def log_partition(E, A, offsets, lo, hi, log_z):
    """log Z of sequences lo:hi by forward messages; -inf for an impossible one."""
    alpha = np.empty((longest(offsets, lo, hi), E.shape[1]))
    for i in range(lo, hi):
        log_z[i] = log_forward(E, A, offsets[i], offsets[i + 1], alpha)


@kernel
def infer(E, A, offsets, lo, hi, log_z, P, C):
    """Forward-backward: log Z and label marginals of sequences lo:hi; pair marginals are added to C as by `log_pairs`."""
    length = longest(offsets, lo, hi)
    alpha, beta = np.empty((length, E.shape[1])), np.empty((length, E.shape[1]))
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        z = log_forward(E, A, a, b, alpha)
        log_z[i] = z
        if z > -np.inf:
            log_backward(E, A, a, b, beta)
        log_marginals(E, A, a, b, alpha, beta, z, P)
        log_pairs(E, A, a, b, alpha, beta, z, 1.0, C)


@kernel
def _mixture(x, inner):
    """The log-sum-exp of x, and the mean of `inner` plus the entropy of p proportional to exp(x).

    The largest weight is kept apart from the rest: its -log p is then exact when p is close to one.
    """
    best = 0
    for u in range(1, len(x)):
        if x[u] > x[best]:
            best = u
    m = x[best]
    if m == -np.inf:
        return m, 0.0
    rest = 0.0
    moment = inner[best]
    for u in range(len(x)):
        e = exp(x[u] - m)
        if u != best and e > 0.0:
            rest += e
            moment += e * (inner[u] + (m - x[u]))
    return m + np.log1p(rest), moment / (1.0 + rest) + np.log1p(rest)


@kernel
def entropy(E, A, offsets, lo, hi, out):
    """Entropy of sequences lo:hi, NaN for an impossible one.

    One pass: h[v] is the entropy of all earlier labels given that the present one is v, a sum of terms that are never
    negative.
    """
    n = E.shape[1]
    x, alpha, above = np.empty(n), np.empty(n), np.empty(n)
    h, h_above = np.empty(n), np.empty(n)
    for i in range(lo, hi):
        for t in range(offsets[i], offsets[i + 1]):
            if t == offsets[i]:
                alpha[:] = E[t]
                h[:] = 0.0
            else:
                above[:] = alpha
                h_above[:] = h
                M = A[0 if A.shape[0] == 1 else t]
                for v in range(n):
                    for u in range(n):
                        x[u] = above[u] + M[u, v]
                    alpha[v], h[v] = _mixture(x, h_above)
                    alpha[v] += E[t, v]
            _shift(alpha)
        z, out[i] = _mixture(alpha, h)
        if z == -np.inf:
            out[i] = np.nan
