"""Scores of labels from the attributes of a position, and back.

A position has two lists of attributes. *Common* ones occur with many labels and have a whole row of weights in a small
table, which stays in the cache. *Rare* ones have a weight only for the labels they were seen with: those of attribute j are
``first[j] : first[j + 1]`` of the weights, for the labels `label`. Where `values` is empty every attribute has the value 1.
"""

from __future__ import annotations

import numpy as np

from ._jit import sum_kernel

_1, _2, _3, _4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@sum_kernel
def common_scores(values, indices, indptr, table, lo, hi, U):
    """U[i] = sum_q values[q] table[indices[q]]."""
    n = table.shape[1]
    ones = len(values) == 0
    for i in range(lo, hi):
        row = U[i]
        for k in range(n):
            row[k] = 0.0
        q, stop = indptr[i], indptr[i + 1]
        if ones:
            while q + _4 <= stop:
                a, b, c, d = table[indices[q]], table[indices[q + _1]], table[indices[q + _2]], table[indices[q + _3]]
                for k in range(n):
                    row[k] += a[k] + b[k] + c[k] + d[k]
                q += _4
        while q < stop:
            x = 1.0 if ones else values[q]
            a = table[indices[q]]
            for k in range(n):
                row[k] += x * a[k]
            q += _1


@sum_kernel
def rare_scores(values, indices, indptr, label, theta, lo, hi, U):
    """U[i, label[f]] += values[q] theta[f] for the weights f = indices[q] of i."""
    ones = len(values) == 0
    for i in range(lo, hi):
        row = U[i]
        for q in range(indptr[i], indptr[i + 1]):
            f = indices[q]
            row[label[f]] += theta[f] if ones else values[q] * theta[f]


@sum_kernel
def common_sums(values, indices, indptr, R, lo, hi, table):
    """table[indices[q]] += values[q] R[i]."""
    n = table.shape[1]
    ones = len(values) == 0
    for i in range(lo, hi):
        row = R[i]
        for q in range(indptr[i], indptr[i + 1]):
            x = 1.0 if ones else values[q]
            a = table[indices[q]]
            for k in range(n):
                a[k] += x * row[k]


@sum_kernel
def rare_sums(values, indices, indptr, label, R, lo, hi, G):
    """G[f] += values[q] R[i, label[f]] for the weights f = indices[q] of i."""
    ones = len(values) == 0
    for i in range(lo, hi):
        row = R[i]
        for q in range(indptr[i], indptr[i + 1]):
            f = indices[q]
            G[f] += row[label[f]] if ones else values[q] * row[label[f]]
