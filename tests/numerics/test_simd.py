"""Vectors of four numbers do what numpy does."""

from __future__ import annotations

import numpy as np
import pytest

from partita.chain.kernels.forward_backward_padded import add_outer, add_times, padded, times
from partita.numerics.jit import sum_kernel
from partita.numerics.simd import LANES, exponential, larger, largest, load, store, total


@sum_kernel
def exponentials(x, least, out):
    for i in range(0, len(x), LANES):
        store(out, i, exponential(load(x, i), least))


@sum_kernel
def combined(x, y, out):
    a, b = load(x, 0), load(y, 0)
    store(out, 0, a * b + a - b)
    store(out, LANES, larger(a, b))
    return total(a), largest(b)


def test_exponential():
    x = np.concatenate([np.linspace(-700.0, 700.0, 100_001), [-np.inf, -701.0, np.nan]])
    out = np.empty_like(x)
    exponentials(x, -700.5, out)
    np.testing.assert_allclose(out[:-3], np.exp(x[:-3]), rtol=4e-16)
    np.testing.assert_array_equal(out[-3:], 0.0)


def test_arithmetic(rng):
    x, y, out = rng.standard_normal(4), rng.standard_normal(4), np.empty(8)
    assert combined(x, y, out) == (pytest.approx(x.sum()), y.max())
    np.testing.assert_allclose(out, np.concatenate([x * y + x - y, np.maximum(x, y)]), rtol=1e-14)


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 9, 22, 31, 33, 49, 70])
def test_products_and_outer_products(n, rng):
    width = padded(n)
    M, x, out = np.zeros((n, width)), rng.standard_normal(n + 3), np.ones(width + 5)
    M[:, :n] = rng.standard_normal((n, n))
    expected = x[3:] @ M
    times(M, x, 3, out, 2)
    np.testing.assert_allclose(out[2:-3], expected, rtol=1e-12, atol=1e-12)
    add_times(M, x, 3, out, 2)
    np.testing.assert_allclose(out[2:-3], 2.0 * expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_array_equal(out[[0, 1, -3, -2, -1]], 1.0)
    X, Y, C = rng.standard_normal((9, width)), rng.standard_normal((9, width)), np.ones((n, width))
    add_outer(X, Y, 2, 8, C)
    np.testing.assert_allclose(C, 1.0 + X[2:7, :n].T @ Y[3:8], rtol=1e-12, atol=1e-12)
    add_outer(X, Y, 2, 3, C)
    np.testing.assert_allclose(C, 1.0 + X[2:7, :n].T @ Y[3:8], rtol=1e-12, atol=1e-12)
