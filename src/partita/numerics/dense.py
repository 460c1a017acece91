"""Products with a dense example matrix ``X`` (examples x features), float32 or float64.

``T`` is (outputs x features), ``U``, ``R``, ``V`` are (examples x outputs). Loops are tiled by hand: for the few outputs
of a softmax they run 1.5 to 4 times as fast as a general matrix product, and forward and adjoint can share one read of X.
"""

from __future__ import annotations

from .curvature import rank_one_product, scalar_product
from .jit import sum_kernel


@sum_kernel
def forward(X, T, b, lo, hi, U):
    """U[i, k] = b[k] + sum_j X[i, j] T[k, j]."""
    d = X.shape[1]
    n = T.shape[0]
    i = lo
    while i + 2 <= hi:
        x0 = X[i]
        x1 = X[i + 1]
        k = 0
        while k + 4 <= n:
            t0 = T[k]
            t1 = T[k + 1]
            t2 = T[k + 2]
            t3 = T[k + 3]
            a0 = b[k]
            a1 = b[k + 1]
            a2 = b[k + 2]
            a3 = b[k + 3]
            c0 = a0
            c1 = a1
            c2 = a2
            c3 = a3
            for j in range(d):
                p = x0[j]
                q = x1[j]
                a0 += p * t0[j]
                a1 += p * t1[j]
                a2 += p * t2[j]
                a3 += p * t3[j]
                c0 += q * t0[j]
                c1 += q * t1[j]
                c2 += q * t2[j]
                c3 += q * t3[j]
            U[i, k] = a0
            U[i, k + 1] = a1
            U[i, k + 2] = a2
            U[i, k + 3] = a3
            U[i + 1, k] = c0
            U[i + 1, k + 1] = c1
            U[i + 1, k + 2] = c2
            U[i + 1, k + 3] = c3
            k += 4
        while k < n:
            t0 = T[k]
            a0 = b[k]
            c0 = a0
            for j in range(d):
                a0 += x0[j] * t0[j]
                c0 += x1[j] * t0[j]
            U[i, k] = a0
            U[i + 1, k] = c0
            k += 1
        i += 2
    while i < hi:
        x0 = X[i]
        for k in range(n):
            t0 = T[k]
            a0 = b[k]
            for j in range(d):
                a0 += x0[j] * t0[j]
            U[i, k] = a0
        i += 1


@sum_kernel
def adjoint(X, R, lo, hi, G, g):
    """Add sum_i R[i, k] X[i, j] to G[k, j] and sum_i R[i, k] to g[k], over examples lo..hi."""
    d = X.shape[1]
    n = R.shape[1]
    i = lo
    while i + 4 <= hi:
        x0 = X[i]
        x1 = X[i + 1]
        x2 = X[i + 2]
        x3 = X[i + 3]
        k = 0
        while k + 2 <= n:
            r0 = R[i, k]
            r1 = R[i + 1, k]
            r2 = R[i + 2, k]
            r3 = R[i + 3, k]
            s0 = R[i, k + 1]
            s1 = R[i + 1, k + 1]
            s2 = R[i + 2, k + 1]
            s3 = R[i + 3, k + 1]
            g[k] += (r0 + r1) + (r2 + r3)
            g[k + 1] += (s0 + s1) + (s2 + s3)
            row = G[k]
            next_row = G[k + 1]
            for j in range(d):
                a = x0[j]
                b = x1[j]
                c = x2[j]
                e = x3[j]
                row[j] += r0 * a + r1 * b + r2 * c + r3 * e
                next_row[j] += s0 * a + s1 * b + s2 * c + s3 * e
            k += 2
        while k < n:
            r0 = R[i, k]
            r1 = R[i + 1, k]
            r2 = R[i + 2, k]
            r3 = R[i + 3, k]
            g[k] += (r0 + r1) + (r2 + r3)
            row = G[k]
            for j in range(d):
                row[j] += r0 * x0[j] + r1 * x1[j] + r2 * x2[j] + r3 * x3[j]
            k += 1
        i += 4
    while i < hi:
        x0 = X[i]
        for k in range(n):
            r0 = R[i, k]
            g[k] += r0
            row = G[k]
            for j in range(d):
                row[j] += r0 * x0[j]
        i += 1


@sum_kernel
def curvature_product(X, D, top, T, b, lo, hi, V, G, g):
    """Add A' S(D) A (T, b) to (G, g), where A is the map of `forward`, reading X once.

    S is diag(D_i) - D_i D_i' / sum(D_i) per example, or the scalar D_i when there is one output. `V` is scratch of
    (rows x outputs): so many examples are done at a time.
    """
    start = lo
    while start < hi:
        stop = min(hi, start + V.shape[0])
        block = X[start:stop]
        size = stop - start
        forward(block, T, b, 0, size, V)
        if T.shape[0] == 1:
            scalar_product(D[start:stop], 0, size, V)
        else:
            rank_one_product(D[start:stop], top[start:stop], 0, size, V)
        adjoint(block, V, 0, size, G, g)
        start = stop


@sum_kernel
def mirror(M):
    """Copy the lower triangle to the upper."""
    for a in range(M.shape[0]):
        for b in range(a):
            M[b, a] = M[a, b]
