"""Stochastic gradient steps on single chains, with updates of the weights in use only.

Weights are stored divided by a common factor, so that l2 shrinks all of them at once. The layout of attributes is that of
`kernels.attributes`: a table of rows for common ones, in which `mask` is 1 where there is a weight, and single weights for
rare ones.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import sum_kernel
from ...numerics.math import exp
from .attributes import common_scores, rare_scores
from .forward_backward_padded import add_outer, backward, forward, padded

#: The factor below which the weights are multiplied by it.
SMALL = 1e-9


@sum_kernel
def descend(
    common, rare, label, mask, allowed, starts, ends, offsets, y, weights, order, lam, eta0, t0, table, theta, A, first, last
):
    """One step per chain in `order`, with rates ``eta0 / (1 + lam eta0 t)`` for t = t0, t0 + 1, ...

    Returns the sum of the losses met and the number of chains left out because their sums lost digits.
    """
    n = A.shape[0]
    longest = 0
    for s in order:
        longest = max(longest, offsets[s + 1] - offsets[s])
    total = np.int64(offsets[-1])
    width = padded(n)
    M, MT = np.zeros((n, width)), np.zeros((n, width))
    U, alpha, B = np.full((total, width), -np.inf), np.empty((longest, width)), np.empty((longest, width))
    R, C = np.empty((longest, width)), np.empty((n, width))
    x, row, z = np.empty(width), np.empty(width), np.empty(width)
    factor, loss, hard, t = 1.0, 0.0, 0, t0
    common_values, common_indices, common_indptr = common
    rare_values, rare_indices, rare_indptr = rare
    for s in order:
        start, stop = offsets[s], offsets[s + 1]
        length = stop - start
        rows = U[start:stop]
        common_scores(common_values, common_indices, common_indptr, table, start, stop, U)
        rare_scores(rare_values, rare_indices, rare_indptr, label, theta, start, stop, U)
        if starts:
            for v in range(n):
                rows[0, v] += first[v]
        if ends:
            for v in range(n):
                rows[length - 1, v] += last[v]
        for i in range(length):
            for v in range(n):
                rows[i, v] *= factor
        shift = 0.0
        for u in range(n):
            for v in range(n):
                shift = max(shift, factor * A[u, v])
        for u in range(n):
            for v in range(n):
                M[u, v] = exp(factor * A[u, v] - shift)
        for u in range(n):
            for v in range(n):
                MT[v, u] = M[u, v]
        log_z = forward(rows, M, shift, 0, length, alpha, B)
        if np.isnan(log_z) or not backward(MT, 1.0, 0, length, x, row, z, alpha, B, R):
            hard += 1
            continue
        C[:] = 0.0
        add_outer(alpha, B, 0, length, C)
        score = 0.0
        for i in range(length):
            score += rows[i, y[start + i]]
            if i > 0:
                score += factor * A[y[start + i - 1], y[start + i]]
        loss += weights[s] * (log_z - score)
        eta = eta0 / (1.0 + lam * eta0 * t)
        t += 1.0
        factor *= 1.0 - eta * lam
        step = eta * weights[s] / factor
        for u in range(n):
            for v in range(n):
                A[u, v] -= step * allowed[u, v] * C[u, v] * M[u, v]
        for i in range(length):
            here = y[start + i]
            if i > 0:
                A[y[start + i - 1], here] += step * allowed[y[start + i - 1], here]
            R[i, here] -= 1.0
            for v in range(n):
                R[i, v] *= step
        if starts:
            for v in range(n):
                first[v] -= R[0, v]
        if ends:
            for v in range(n):
                last[v] -= R[length - 1, v]
        _subtract(common, rare, label, mask, R, start, stop, table, theta)
        if factor < SMALL:
            _rescale(factor, table, theta, A, first, last)
            factor = 1.0
    _rescale(factor, table, theta, A, first, last)
    return loss, hard


@sum_kernel
def _subtract(common, rare, label, mask, R, start, stop, table, theta):
    values, indices, indptr = common
    n = R.shape[1]
    for i in range(start, stop):
        row = R[i - start]
        for q in range(indptr[i], indptr[i + 1]):
            w = 1.0 if len(values) == 0 else values[q]
            a, m = table[indices[q]], mask[indices[q]]
            for k in range(n):
                a[k] -= w * m[k] * row[k]
    values, indices, indptr = rare
    for i in range(start, stop):
        row = R[i - start]
        for q in range(indptr[i], indptr[i + 1]):
            f = indices[q]
            theta[f] -= row[label[f]] if len(values) == 0 else values[q] * row[label[f]]


@sum_kernel
def _rescale(factor, table, theta, A, first, last):
    for row in range(table.shape[0]):
        for k in range(table.shape[1]):
            table[row, k] *= factor
    for k in range(len(theta)):
        theta[k] *= factor
    for u in range(A.shape[0]):
        for v in range(A.shape[1]):
            A[u, v] *= factor
    for k in range(len(first)):
        first[k] *= factor
    for k in range(len(last)):
        last[k] *= factor
