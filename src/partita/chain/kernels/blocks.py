"""Arithmetic on blocks: matrices of `WIDTH` columns, a vector of some problem each, whose rows are one line of the cache."""

from __future__ import annotations

from ...numerics.jit import sum_kernel
from ...numerics.simd import LANES, load, spread, store

#: Columns of a block: two vectors.
WIDTH = 2 * LANES


@sum_kernel
def rows_times_block(values, indices, indptr, V, lo, hi, out):
    """out[i] = sum_q values[q] V[indices[q]], where every value is 1 if `values` is empty."""
    ones = len(values) == 0
    for i in range(lo, hi):
        a, b = spread(0.0), spread(0.0)
        if ones:
            for q in range(indptr[i], indptr[i + 1]):
                j = int(indices[q]) * WIDTH
                a = a + load(V, j)
                b = b + load(V, j + LANES)
        else:
            for q in range(indptr[i], indptr[i + 1]):
                j, x = int(indices[q]) * WIDTH, spread(values[q])
                a = a + x * load(V, j)
                b = b + x * load(V, j + LANES)
        store(out, i * WIDTH, a)
        store(out, i * WIDTH + LANES, b)


@sum_kernel
def add_scaled(V, scale, lo, hi, out, dots):
    """out[i] += scale[i] V[i]; then dots[:] = sum_i V[i] out[i], of each column."""
    a, b = spread(0.0), spread(0.0)
    for i in range(lo, hi):
        j, x = i * WIDTH, spread(scale[i])
        v, w = load(V, j), load(V, j + LANES)
        p, q = load(out, j) + x * v, load(out, j + LANES) + x * w
        store(out, j, p)
        store(out, j + LANES, q)
        a = a + v * p
        b = b + w * q
    store(dots, 0, a)
    store(dots, LANES, b)


@sum_kernel
def cg_step(alpha, P, HP, inverse, lo, hi, X, R, squares):
    """X += alpha P and R -= alpha HP; then squares[:] = sum_i inverse[i] R[i]^2, of each column."""
    a, b = spread(0.0), spread(0.0)
    s, t = load(alpha, 0), load(alpha, LANES)
    for i in range(lo, hi):
        j, x = i * WIDTH, spread(inverse[i])
        store(X, j, load(X, j) + s * load(P, j))
        store(X, j + LANES, load(X, j + LANES) + t * load(P, j + LANES))
        p, q = load(R, j) - s * load(HP, j), load(R, j + LANES) - t * load(HP, j + LANES)
        store(R, j, p)
        store(R, j + LANES, q)
        a = a + x * (p * p)
        b = b + x * (q * q)
    store(squares, 0, a)
    store(squares, LANES, b)


@sum_kernel
def cg_direction(beta, R, inverse, lo, hi, P):
    """P = inverse R + beta P."""
    s, t = load(beta, 0), load(beta, LANES)
    for i in range(lo, hi):
        j, x = i * WIDTH, spread(inverse[i])
        store(P, j, x * load(R, j) + s * load(P, j))
        store(P, j + LANES, x * load(R, j + LANES) + t * load(P, j + LANES))
