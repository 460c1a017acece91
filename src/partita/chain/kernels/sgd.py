"""Stochastic gradient steps on single chains, with updates of the weights in use only.

Weights are stored divided by a common factor, so that l2 shrinks all of them at once. Gradients are by forward-backward in
scaled probabilities (`kernels.forward_backward_padded`).
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
def descend(attributes, chains, y, mask, order, lam, eta0, t0, weights):
    """One step per chain in `order`, with rates ``eta0 / (1 + lam eta0 t)`` for t = t0, t0 + 1, ...

    `mask` is 1 where there is a weight. Returns the sum of the losses met and the number of chains left out because their
    sums lost digits.
    """
    offsets, A = chains.offsets, weights.transitions
    n = A.shape[0]
    longest = 0
    for s in order:
        longest = max(longest, offsets[s + 1] - offsets[s])
    width = padded(n)
    M, MT = np.zeros((n, width)), np.zeros((n, width))
    U = np.full((np.int64(offsets[-1]), width), -np.inf)
    alpha, B, R = np.empty((longest, width)), np.empty((longest, width)), np.empty((longest, width))
    C, x, row, z = np.empty((n, width)), np.empty(width), np.empty(width), np.empty(width)
    factor, loss, hard, t = 1.0, 0.0, 0, t0
    for s in order:
        start, stop = offsets[s], offsets[s + 1]
        length, rows, labels = stop - start, U[start:stop], y[start:stop]
        _score(attributes, weights, factor, start, stop, U)
        log_z = forward(rows, M, _exponentiate(A, factor, M, MT), 0, length, alpha, B)
        if np.isnan(log_z) or not backward(MT, 1.0, 0, length, x, row, z, alpha, B, R):
            hard += 1
            continue
        C[:] = 0.0
        add_outer(alpha, B, 0, length, C)
        loss += chains.weights[s] * (log_z - _labelling_score(rows, A, factor, labels))
        eta = eta0 / (1.0 + lam * eta0 * t)
        t += 1.0
        factor *= 1.0 - eta * lam
        step = eta * chains.weights[s] / factor
        _step_transitions(step, mask.transitions, C, M, labels, A)
        _scale_residual(step, labels, n, R)
        _step_attributes(attributes, mask.table, R, start, stop, weights)
        if factor < SMALL:
            _rescale(factor, weights)
            factor = 1.0
    _rescale(factor, weights)
    return loss, hard


@sum_kernel
def _score(attributes, weights, factor, start, stop, U):
    """Scores of the labels of one chain."""
    n = len(weights.transitions)
    common_scores(attributes.common, weights.table, start, stop, U)
    rare_scores(attributes.rare, attributes.label, weights.rare, start, stop, U)
    for v in range(len(weights.first)):
        U[start, v] += weights.first[v]
    for v in range(len(weights.last)):
        U[stop - 1, v] += weights.last[v]
    for i in range(start, stop):
        for v in range(n):
            U[i, v] *= factor


@sum_kernel
def _exponentiate(A, factor, M, MT):
    """M = exp(factor A - shift) and its transpose; returns the shift."""
    n, shift = A.shape[0], 0.0
    for u in range(n):
        for v in range(n):
            shift = max(shift, factor * A[u, v])
    for u in range(n):
        for v in range(n):
            M[u, v] = exp(factor * A[u, v] - shift)
    for u in range(n):
        for v in range(n):
            MT[v, u] = M[u, v]
    return shift


@sum_kernel
def _labelling_score(U, A, factor, y):
    """The score of the labels y of one chain."""
    score = 0.0
    for i in range(len(y)):
        score += U[i, y[i]]
        if i > 0:
            score += factor * A[y[i - 1], y[i]]
    return score


@sum_kernel
def _step_transitions(step, allowed, C, M, y, A):
    """A step against the gradient: expected transitions, C times M, less those of the labels y."""
    n = A.shape[0]
    for u in range(n):
        for v in range(n):
            A[u, v] -= step * allowed[u, v] * C[u, v] * M[u, v]
    for i in range(1, len(y)):
        A[y[i - 1], y[i]] += step * allowed[y[i - 1], y[i]]


@sum_kernel
def _scale_residual(step, y, n, R):
    """From marginals to the gradient in the scores of labels, times the step."""
    for i in range(len(y)):
        R[i, y[i]] -= 1.0
        for v in range(n):
            R[i, v] *= step


@sum_kernel
def _step_attributes(attributes, mask, R, start, stop, weights):
    """A step against the gradient in the weights of attributes, starts and ends."""
    table, theta = weights.table, weights.rare
    for v in range(len(weights.first)):
        weights.first[v] -= R[0, v]
    for v in range(len(weights.last)):
        weights.last[v] -= R[stop - start - 1, v]
    values, indices, indptr = attributes.common
    n = table.shape[1]
    for i in range(start, stop):
        row = R[i - start]
        for q in range(indptr[i], indptr[i + 1]):
            w = 1.0 if len(values) == 0 else values[q]
            a, m = table[indices[q]], mask[indices[q]]
            for k in range(n):
                a[k] -= w * m[k] * row[k]
    (values, indices, indptr), label = attributes.rare, attributes.label
    for i in range(start, stop):
        row = R[i - start]
        for q in range(indptr[i], indptr[i + 1]):
            f = indices[q]
            theta[f] -= row[label[f]] if len(values) == 0 else values[q] * row[label[f]]


@sum_kernel
def _rescale(factor, weights):
    """Multiply all weights by the factor that they are stored divided by."""
    table, theta, A, first, last = weights
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
