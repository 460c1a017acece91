from __future__ import annotations

import numpy as np
import pytest
from numba import njit

from partita.numerics import curvature, math as _math, sparse
from partita.softmax.kernels import categorical, newton


@njit
def _exp(x, out):
    for i in range(len(x)):
        out[i] = _math.exp(x[i])


@njit
def _log1p(x, out):
    for i in range(len(x)):
        out[i] = _math.log1p_unit(x[i])


def test_exponential_is_right_to_the_last_place():
    rng = np.random.default_rng(0)
    x = np.concatenate([-40 * rng.random(200_000), 700 * rng.random(100_000), -707 * rng.random(100_000), [0.0, -1e-300]])
    out = np.empty_like(x)
    _exp(x, out)
    np.testing.assert_allclose(out, np.exp(x), rtol=4e-16)


def test_exponential_of_minus_infinity_is_zero():
    out = np.empty(3)
    _exp(np.array([-np.inf, -1e6, -709.0]), out)
    assert out.tolist() == [0.0, 0.0, 0.0]


def test_log1p_on_the_unit_interval():
    x = np.concatenate([np.linspace(0, 1, 100_001), 10.0 ** -np.arange(1, 300)])
    out = np.empty_like(x)
    _log1p(x, out)
    np.testing.assert_allclose(out, np.log1p(x), rtol=5e-16)


def test_loss_kernel_as_plain_python(rng):
    u, y, w = rng.standard_normal(12), np.array([0, 2, 1, 1]), np.array([1.0, 2.0, 0.0, 0.5])
    targets = categorical.Targets(y, w, np.arange(5) * 3)
    compiled = [np.empty(12), np.empty(12)]
    plain = [np.empty(12), np.empty(12)]
    a = categorical.loss(u, targets, 0, 4, *compiled)
    b = categorical.loss.py_func(u, targets, 0, 4, *plain)
    assert a == pytest.approx(b, rel=1e-14)
    np.testing.assert_allclose(compiled, plain, rtol=1e-13)


def test_sequential_kernel_as_plain_python(rng):
    u = rng.standard_normal(5)
    compiled, plain = (curvature.Visits(np.empty(5, np.int64), np.empty(5), np.empty(5)) for _ in range(2))
    for run, out in ((curvature.sequential_weights, compiled), (curvature.sequential_weights.py_func, plain)):
        run(0, u, np.array([0, 5]), np.ones(1), 0, 1, out)
    for one, other in zip(compiled, plain, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-14)


def test_beta_is_continuous_where_the_series_ends():
    inside, outside = curvature.beta(0.01 - 1e-12), curvature.beta(0.01 + 1e-12)
    assert inside == pytest.approx(outside, rel=1e-12)
    assert curvature.beta(0.0) == 0.25


@pytest.mark.parametrize("p", [1, 2, 3, 4, 5, 9, 16])
def test_small_gram_and_cholesky(rng, p):
    X, s = rng.standard_normal((23, p)), rng.random(23)
    H = np.zeros((p, p))
    newton.weighted_gram(np.ascontiguousarray(X.T), s, np.empty((2, 23)), H, 0, 0)
    exact = X.T @ (X * s[:, None])
    np.testing.assert_allclose(np.tril(H), np.tril(exact), rtol=1e-12, atol=1e-13)
    b = rng.standard_normal(p)
    x = b.copy()
    assert newton.cholesky_solve(H, x) == 0
    np.testing.assert_allclose(exact @ x, b, rtol=1e-9, atol=1e-10)


def test_small_cholesky_refuses_a_singular_matrix():
    H = np.ones((3, 3))
    assert newton.cholesky_solve(H, np.ones(3)) == 1


@pytest.mark.parametrize("n", [1, 2, 3, 4, 5, 7, 10, 11])
def test_sparse_products_for_any_number_of_outputs(rng, n):
    import scipy.sparse as sp

    X = sp.random(40, 30, 0.2, format="csr", random_state=0)
    T, b, U = rng.standard_normal((30, n)), rng.standard_normal(n), np.empty((40, n))
    arrays = (X.data, X.indices.astype(np.uint32), X.indptr.astype(np.uint64))
    sparse.rows_times_matrix(*arrays, T, b, 0, 40, U)
    np.testing.assert_allclose(U, X @ T + b, rtol=1e-12, atol=1e-12)
