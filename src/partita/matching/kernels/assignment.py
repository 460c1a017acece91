"""Dual numbers of assignments."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel


@kernel
def duals(weights, columns, slack, u, v):
    """Numbers of rows and columns whose sums are at least the weights and, up to `slack`, equal to those of the best
    assignment: rows are gone through again when the number of their column has risen. Returns whether that ended."""
    n = len(weights)
    owner = np.empty(n, np.int64)
    for i in range(n):
        owner[columns[i]] = i
    v[:] = 0.0
    waiting = np.arange(n)
    queued = np.ones(n, np.bool_)
    first, count, turns = 0, n, 0
    while count > 0 and turns < 200 * n:
        i = waiting[first]
        first = (first + 1) % n
        count -= 1
        turns += 1
        queued[i] = False
        base = weights[i, columns[i]] - v[columns[i]]
        for j in range(n):
            above = weights[i, j] - base
            if above > v[j] + slack:
                v[j] = above
                r = owner[j]
                if not queued[r] and r != i:
                    queued[r] = True
                    waiting[(first + count) % n] = r
                    count += 1
    for i in range(n):
        top = -np.inf
        for j in range(n):
            top = max(top, weights[i, j] - v[j])
        u[i] = top
    return count == 0


@kernel
def cheapest(weights, half, low, lo, hi, near):
    """For the rows lo..hi of a symmetric matrix, the columns where ``half_i + half_j - weights_ij`` is smallest, but the
    diagonal and entries up to `low`; -1 where there are not enough."""
    kept = near.shape[1]
    gains = np.empty(kept)
    for i in range(lo, hi):
        gains[:] = -np.inf
        near[i] = -1
        for j in range(len(half)):
            gain = weights[i, j] - half[j]
            if gain <= gains[kept - 1] or weights[i, j] <= low or j == i:
                continue
            k = kept - 1
            while k > 0 and gains[k - 1] < gain:
                gains[k], near[i, k] = gains[k - 1], near[i, k - 1]
                k -= 1
            gains[k], near[i, k] = gain, j


@kernel
def left_out(weights, half, low, limit, seen, lo, hi):
    """How many pairs of the rows lo..hi cost less than `limit`, are above `low`, and not `seen`."""
    count = 0
    for i in range(lo, hi):
        for j in range(i):
            if half[i] + half[j] - weights[i, j] < limit and weights[i, j] > low and not seen[i, j]:
                count += 1
    return count
