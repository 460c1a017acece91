"""Products with a sparse example matrix: its CSR rows for the forward map, the CSR rows of its transpose for the adjoint.

Parameters are (features x outputs), so that one feature's weights lie together. Each row is summed in the order of its
entries: results do not depend on how rows are split over threads. `indices` and `indptr` are unsigned integers: signed
ones make every access test for negative indices, which halves the speed.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel, sum_kernel


@sum_kernel
def rows_times_vector(data, indices, indptr, t, b, lo, hi, u):
    """u[i] = b + sum_j X[i, j] t[j]."""
    for i in range(lo, hi):
        s = b
        for q in range(indptr[i], indptr[i + 1]):
            s += data[q] * t[indices[q]]
        u[i] = s


@sum_kernel
def rows_times_matrix(data, indices, indptr, T, b, lo, hi, U):
    """U[i, k] = b[k] + sum_j X[i, j] T[j, k], with five, three or one sums in registers at a time."""
    n = T.shape[1]
    for i in range(lo, hi):
        start, stop = indptr[i], indptr[i + 1]
        k = 0
        while k < n:
            if k + 5 <= n:
                a0 = b[k]
                a1 = b[k + 1]
                a2 = b[k + 2]
                a3 = b[k + 3]
                a4 = b[k + 4]
                for q in range(start, stop):
                    x = data[q]
                    t = T[indices[q]]
                    a0 += x * t[k]
                    a1 += x * t[k + 1]
                    a2 += x * t[k + 2]
                    a3 += x * t[k + 3]
                    a4 += x * t[k + 4]
                U[i, k] = a0
                U[i, k + 1] = a1
                U[i, k + 2] = a2
                U[i, k + 3] = a3
                U[i, k + 4] = a4
                k += 5
            elif k + 3 <= n:
                a0 = b[k]
                a1 = b[k + 1]
                a2 = b[k + 2]
                for q in range(start, stop):
                    x = data[q]
                    t = T[indices[q]]
                    a0 += x * t[k]
                    a1 += x * t[k + 1]
                    a2 += x * t[k + 2]
                U[i, k] = a0
                U[i, k + 1] = a1
                U[i, k + 2] = a2
                k += 3
            else:
                a0 = b[k]
                for q in range(start, stop):
                    a0 += data[q] * T[indices[q], k]
                U[i, k] = a0
                k += 1


@sum_kernel
def add_rows_times_wide(data, indices, indptr, T, lo, hi, U):
    """U[i, k] += sum_j X[i, j] T[j, k] for many k: a row of T at a time."""
    n = T.shape[1]
    for i in range(lo, hi):
        u = U[i]
        for q in range(indptr[i], indptr[i + 1]):
            x, t = data[q], T[indices[q]]
            for k in range(n):
                u[k] += x * t[k]


@sum_kernel
def remove_row_means(M):
    """Subtract the mean of each row, in place."""
    n = M.shape[1]
    for i in range(M.shape[0]):
        mean = 0.0
        for k in range(n):
            mean += M[i, k]
        mean /= n
        for k in range(n):
            M[i, k] -= mean


@kernel
def transpose(data, indices, indptr, t_data, t_indices, t_indptr):
    """CSR of the transpose; `t_indptr` starts as zeros, one entry more than there are columns."""
    one = np.uint64(1)
    for q in range(indices.shape[0]):
        t_indptr[indices[q] + one] += one
    for j in range(t_indptr.shape[0] - 1):
        t_indptr[j + 1] += t_indptr[j]
    fill = t_indptr[:-1].copy()
    for i in range(indptr.shape[0] - 1):
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            place = fill[j]
            t_data[place] = data[q]
            t_indices[place] = i
            fill[j] = place + one


@sum_kernel
def gram(data, indices, indptr, w, lo, hi, intercept, G):
    """Add the lower triangle of sum_i w_i x_i x_i' to G (indices sorted within a row)."""
    d = G.shape[0] - intercept
    for i in range(lo, hi):
        wi = w[i]
        if wi == 0.0:
            continue
        start, stop = indptr[i], indptr[i + 1]
        for a in range(start, stop):
            s = wi * data[a]
            row = G[indices[a]]
            for q in range(start, a):
                row[indices[q]] += s * data[q]
            row[indices[a]] += s * data[a]
            if intercept:
                G[d, indices[a]] += s
        if intercept:
            G[d, d] += wi


@sum_kernel
def scatter(data, indices, indptr, R, lo, hi, G):
    """Add sum_i X[i, j] R[i, k] to G[j, k] row by row: the adjoint for a few rows, without a transposed copy."""
    n = R.shape[1]
    for i in range(lo, hi):
        for q in range(indptr[i], indptr[i + 1]):
            x = data[q]
            row = G[indices[q]]
            for k in range(n):
                row[k] += x * R[i, k]
