"""Columns of an example matrix one at a time, for coordinate descent on a working set.

`columns` is a tuple: ``(X,)`` holds column j of the data as the row X[j]; ``(data, indices, indptr)`` holds the columns of a
sparse matrix, with unsigned indices. Numba drops the branch that the length of the tuple rules out, so one text serves both.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from ...numerics.jit import kernel, sum_kernel
from .newton import weighted_gram


class WorkingSet(NamedTuple):
    """The coordinates that a descent may change, sorted by label: m weights, each of one column in one label.

    Attributes
    ----------
    columns : tuple
        The data, as above.
    label, column : unsigned arrays (m,)
        Of each coordinate; the column as its place in `columns`.
    first : int64 array (labels + 1,)
        Label k owns the coordinates first[k] to first[k + 1].
    l1, l2 : arrays (m,)
        Penalties of each coordinate.
    """

    columns: Any
    label: Any
    column: Any
    first: IntArray
    l1: FloatArray
    l2: FloatArray


@sum_kernel
def dot(columns, j, v):
    """x_j . v"""
    total = 0.0
    if len(columns) == 1:
        x = columns[0][j]
        for i in range(len(x)):
            total += x[i] * v[i]
    else:
        data, indices, indptr = columns
        for q in range(indptr[j], indptr[j + 1]):
            total += data[q] * v[indices[q]]
    return total


@sum_kernel
def curvature(columns, j, c, p):
    """sum_i x_ij^2 c_i (1 - p_i)"""
    total = 0.0
    if len(columns) == 1:
        x = columns[0][j]
        for i in range(len(x)):
            total += x[i] * x[i] * c[i] * (1.0 - p[i])
    else:
        data, indices, indptr = columns
        for q in range(indptr[j], indptr[j + 1]):
            i = indices[q]
            total += data[q] * data[q] * c[i] * (1.0 - p[i])
    return total


@sum_kernel
def coupled_dot(columns, j, c, v, mean):
    """sum_i x_ij c_i (v_i - mean_i)"""
    total = 0.0
    if len(columns) == 1:
        x = columns[0][j]
        for i in range(len(x)):
            total += x[i] * c[i] * (v[i] - mean[i])
    else:
        data, indices, indptr = columns
        for q in range(indptr[j], indptr[j + 1]):
            i = indices[q]
            total += data[q] * c[i] * (v[i] - mean[i])
    return total


@sum_kernel
def add(columns, j, step, v):
    """v += step x_j"""
    if len(columns) == 1:
        x = columns[0][j]
        for i in range(len(x)):
            v[i] += step * x[i]
    else:
        data, indices, indptr = columns
        for q in range(indptr[j], indptr[j + 1]):
            v[indices[q]] += step * data[q]


@sum_kernel
def add_weighted(columns, j, step, c, v):
    """v += step c x_j"""
    if len(columns) == 1:
        x = columns[0][j]
        for i in range(len(x)):
            v[i] += step * c[i] * x[i]
    else:
        data, indices, indptr = columns
        for q in range(indptr[j], indptr[j + 1]):
            i = indices[q]
            v[i] += step * c[i] * data[q]


@kernel
def by_label(labels, columns, slots, K):
    """Order coordinates by label; returns the order, their labels, their columns' places in `slots`, and label ranges."""
    first = np.zeros(K + 1, np.int64)
    for a in range(len(labels)):
        first[labels[a] + 1] += 1
    for k in range(K):
        first[k + 1] += first[k]
    fill = first.copy()
    order = np.empty(len(labels), np.int64)
    label = np.empty(len(labels), np.uint64)
    column = np.empty(len(labels), np.uint64)
    for a in range(len(labels)):
        place = fill[labels[a]]
        fill[labels[a]] += 1
        order[place] = a
        label[place] = labels[a]
        column[place] = slots[columns[a]]
    return order, label, column, first


@sum_kernel
def gram_dense(X, working_set, w, P, H):
    """H = A' S A over the working set, columns of the data being rows of X; the lower triangle at least.

    S is the Hessian in the scores at probabilities P (labels x examples). With one row of P, S = w p (1 - p).
    """
    label, column, first = working_set.label, working_set.column, working_set.first
    n = X.shape[1]
    K = P.shape[0]
    scaled = np.empty((2, n))
    s = np.empty(n)
    m = len(label)
    Z = np.empty((m, n))
    for a in range(m):
        x = X[column[a]]
        z = Z[a]
        for i in range(n):
            z[i] = x[i]
    if K == 1:
        p = P[0]
        for i in range(n):
            s[i] = w[i] * p[i] * (1.0 - p[i])
        weighted_gram(Z, s, scaled, H, 0, 0)
        return
    for k in range(K):
        a, b = first[k], first[k + 1]
        if a < b:
            p = P[k]
            for i in range(n):
                s[i] = w[i] * p[i]
            weighted_gram(Z[a:b], s, scaled, H, a, a)
            for c in range(a, b):
                z = Z[c]
                for i in range(n):
                    z[i] *= p[i]
    B = np.empty((m, m))
    weighted_gram(Z, w, scaled, B, 0, 0)
    for k in range(K):
        for a in range(first[k], first[k + 1]):
            for b in range(first[k]):
                H[a, b] = -B[a, b]
            for b in range(first[k], a + 1):
                H[a, b] -= B[a, b]


@kernel
def rows_of(columns, column, n):
    """The coordinates' entries by example: (entries before each example, coordinate, value)."""
    data, indices, indptr = columns
    start = np.zeros(n + 1, np.uint64)
    one = np.uint64(1)
    for a in range(len(column)):
        j = column[a]
        for q in range(indptr[j], indptr[j + 1]):
            start[indices[q] + one] += one
    for i in range(n):
        start[i + 1] += start[i]
    fill = start.copy()
    member = np.empty(start[n], np.uint32)
    value = np.empty(start[n])
    for a in range(len(column)):
        j = column[a]
        for q in range(indptr[j], indptr[j + 1]):
            i = indices[q]
            member[fill[i]] = a
            value[fill[i]] = data[q]
            fill[i] += one
    return start, member, value


@sum_kernel
def gram_sparse(rows, label, w, P, H):
    """As `gram_dense`, from the coordinates' entries by example."""
    start, member, value = rows
    H[:] = 0.0
    K = P.shape[0]
    for i in range(len(start) - 1):
        lo, hi = start[i], start[i + 1]
        if K == 1:
            d = w[i] * P[0, i] * (1.0 - P[0, i])
            for r in range(lo, hi):
                s = d * value[r]
                h = H[member[r]]
                for q in range(lo, r + np.uint64(1)):
                    h[member[q]] += s * value[q]
        else:
            for r in range(lo, hi):
                k = label[member[r]]
                s = w[i] * P[k, i] * value[r]
                h = H[member[r]]
                for q in range(lo, r + np.uint64(1)):
                    b = member[q]
                    share = (1.0 if label[b] == k else 0.0) - P[label[b], i]
                    h[b] += s * share * value[q]
