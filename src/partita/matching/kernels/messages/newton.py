"""Newton's steps on the messages of matchings: where belief propagation creeps, a few of them end it.

At a fixed point, messages are minus the logarithms of leave-one-out sums, ``m_ij = -log sum_{k != j} exp(w_ik + m_ki)``.
With the probabilities p that vertex i sees, ``dm_ij = (p_ij dm_ji - a_i) / (1 - p_ij)``, where ``a_i = sum_k p_ik dm_ki``.
The two messages of an edge follow from the numbers a of its ends, which are the unknowns of a linear system, one for each
vertex. In logarithms small shares change by factors, and probabilities close to one keep the digits of what is left.
"""

from __future__ import annotations

import numpy as np

from ....numerics.jit import kernel, sum_kernel
from ....numerics.math import exp

#: Pivots below this are zeros, in a matrix whose largest entries are one, of perfect matchings and of others. Constants may
#: move from one side of a perfect matching to the other; so may those of parts that hardly share anything with the rest.
SMALLEST, SMALLEST_SINGLE = 1e-11, 1e-15


@sum_kernel
def _eliminate(factor, pivot, row, first):
    """row - factor * pivot, from a place on."""
    for k in range(first, len(row)):
        row[k] -= factor * pivot[k]


@kernel
def _balanced(matrix, right):
    """Make the largest entry of every row and then of every column one. Returns what columns were divided by."""
    n = len(right)
    scales = np.zeros(n)
    for i in range(n):
        top = 1e-300
        for k in range(n):
            top = max(top, abs(matrix[i, k]))
        right[i] /= top
        for k in range(n):
            matrix[i, k] /= top
            scales[k] = max(scales[k], abs(matrix[i, k]))
    for k in range(n):
        scales[k] = max(scales[k], 1e-300)
    for i in range(n):
        for k in range(n):
            matrix[i, k] /= scales[k]
    return scales


@kernel
def solve(matrix, right, smallest):
    """Put the solution of a linear system in place of its right side; unknowns that nothing determines are zero."""
    n = len(right)
    scales = _balanced(matrix, right)
    for k in range(n):
        best = k
        for i in range(k + 1, n):
            if abs(matrix[i, k]) > abs(matrix[best, k]):
                best = i
        if not abs(matrix[best, k]) > smallest:
            matrix[k:, k] = 0.0
            matrix[k, k:] = 0.0
            matrix[k, k], right[k] = 1.0, 0.0
            continue
        if best != k:
            for c in range(k, n):
                matrix[k, c], matrix[best, c] = matrix[best, c], matrix[k, c]
            right[k], right[best] = right[best], right[k]
        for i in range(k + 1, n):
            if matrix[i, k] != 0.0:
                factor = matrix[i, k] / matrix[k, k]
                _eliminate(factor, matrix[k], matrix[i], k + 1)
                right[i] -= factor * right[k]
    for k in range(n - 1, -1, -1):
        total = right[k]
        for c in range(k + 1, n):
            total -= matrix[k, c] * right[c]
        right[k] = total / matrix[k, k]
    for k in range(n):
        right[k] /= scales[k]


@kernel
def _determinant(p, p_rest, q, q_rest):
    """1 - p - q without loss of digits, and never zero."""
    if p < 0.5:
        out = 1.0 - p - q if q < 0.5 else q_rest - p
    else:
        out = p_rest - q if q < 0.5 else p_rest + q_rest - 1.0
    return out if abs(out) > 1e-8 else 1e-8 if out >= 0.0 else -1e-8


@kernel
def _add_edge(i, j, p, p_rest, q, q_rest, residual, large, matrix, right):
    """The part of one edge in the equations of its ends. `large` has the vertices with an edge of more than half, whose
    entry on the diagonal is formed without the one that it would cancel."""
    det = _determinant(p, p_rest, q, q_rest)
    both, beside = p * q / det, p_rest * q_rest / det
    for vertex in (i, j):
        if det < 0.0 and not large[vertex]:
            large[vertex] = True
            matrix[vertex, vertex] += beside
        else:
            matrix[vertex, vertex] += both
    matrix[i, j] += p * p_rest / det
    matrix[j, i] += q * q_rest / det
    right[i] += p * p_rest * q * residual / det
    right[j] += q * q_rest * p_rest * residual / det


@kernel
def _system(graph, seen, log_tau, log_rest, matrix, right):
    """The equations of all vertices. `seen` has for every edge the logarithms of p and 1 - p of its first end, and what its
    next message from there differs by; log_tau and log_rest are those of its second end."""
    ends, V = graph[3], len(right)
    large = np.zeros(V, np.bool_)
    matrix[:] = 0.0
    right[:] = 0.0
    for e in range(len(log_tau)):
        p, p_rest, q, q_rest = exp(seen[0, e]), exp(seen[1, e]), exp(log_tau[e]), exp(log_rest[e])
        _add_edge(ends[e, 0], ends[e, 1], p, p_rest, q, q_rest, seen[2, e], large, matrix, right)
    for i in range(V):
        if not large[i]:
            matrix[i, i] += 1.0


@kernel
def changes(graph, single, seen, log_tau, log_rest, move):
    """Newton's step of the messages of the second ends of edges; the first ends send theirs anew thereafter. Returns the
    largest change."""
    starts, edges, ends, left = graph[0], graph[1], graph[3], graph[4]
    V, largest = len(starts) - 1, 0.0
    matrix, right = np.empty((V, V)), np.empty(V)
    _system(graph, seen, log_tau, log_rest, matrix, right)
    solve(matrix, right, SMALLEST_SINGLE if single else SMALLEST)
    move[:] = 0.0
    for h in range(starts[left], starts[V]):
        e = edges[h]
        p, p_rest, q, q_rest = exp(seen[0, e]), exp(seen[1, e]), exp(log_tau[e]), exp(log_rest[e])
        change = p_rest * q * seen[2, e] - q * right[ends[e, 0]] - p_rest * right[ends[e, 1]]
        change /= _determinant(p, p_rest, q, q_rest)
        if abs(change) < 1e100:
            move[h] = change
            largest = max(largest, abs(change))
    return largest
