"""Products with a sparse example matrix: CSR rows for the forward map, CSC columns for the adjoint.

Parameters are (features x outputs), so that one feature's weights lie together. The adjoint sums each column in the order
of the examples: the result does not depend on how columns are split over threads.
"""

from __future__ import annotations

from ._jit import kernel, sum_kernel


@kernel
def forward(data, indices, indptr, T, b, lo, hi, U):
    """U[i, k] = b[k] + sum_j X[i, j] T[j, k]."""
    n = T.shape[1]
    if n == 1:
        for i in range(lo, hi):
            s = b[0]
            for q in range(indptr[i], indptr[i + 1]):
                s += data[q] * T[indices[q], 0]
            U[i, 0] = s
        return
    for i in range(lo, hi):
        u = U[i]
        for k in range(n):
            u[k] = b[k]
        for q in range(indptr[i], indptr[i + 1]):
            x = data[q]
            t = T[indices[q]]
            for k in range(n):
                u[k] += x * t[k]


@kernel
def adjoint(data, indices, indptr, R, lo, hi, G):
    """G[j, k] = sum_i X[i, j] R[i, k] for columns lo..hi of a CSC matrix."""
    n = R.shape[1]
    if n == 1:
        for j in range(lo, hi):
            s = R.dtype.type(0.0)
            for q in range(indptr[j], indptr[j + 1]):
                s += data[q] * R[indices[q], 0]
            G[j, 0] = s
        return
    for j in range(lo, hi):
        g = G[j]
        for k in range(n):
            g[k] = 0.0
        for q in range(indptr[j], indptr[j + 1]):
            x = data[q]
            r = R[indices[q]]
            for k in range(n):
                g[k] += x * r[k]


@kernel
def transpose(data, indices, indptr, t_data, t_indices, t_indptr):
    """CSR to CSC (or back); `t_indptr` has one entry more than there are columns."""
    n_columns = t_indptr.shape[0] - 1
    for q in range(indices.shape[0]):
        t_indptr[indices[q] + 1] += 1
    for j in range(n_columns):
        t_indptr[j + 1] += t_indptr[j]
    fill = t_indptr[:-1].copy()
    for i in range(indptr.shape[0] - 1):
        for q in range(indptr[i], indptr[i + 1]):
            j = indices[q]
            t_data[fill[j]] = data[q]
            t_indices[fill[j]] = i
            fill[j] += 1


@sum_kernel
def gram(data, indices, indptr, w, lo, hi, intercept, G):
    """Add the lower triangle of sum_i w_i x_i x_i' to G (indices sorted within a row)."""
    d = G.shape[0] - intercept
    for i in range(lo, hi):
        wi = w[i]
        if wi == 0.0:
            continue
        for a in range(indptr[i], indptr[i + 1]):
            s = wi * data[a]
            row = G[indices[a]]
            for q in range(indptr[i], a + 1):
                row[indices[q]] += s * data[q]
            if intercept:
                G[d, indices[a]] += s
        if intercept:
            G[d, d] += wi
