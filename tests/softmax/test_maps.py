from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita.core import Workers
from partita.features import DenseLinear, LabelFeatures, SparseLinear, linear_map, row_space


def maps(rng, n_outputs, intercept):
    X = np.where(rng.random((37, 11)) < 0.5, rng.standard_normal((37, 11)), 0.0)
    return X, [linear_map(X, n_outputs, intercept), linear_map(sp.csr_matrix(X), n_outputs, intercept)]


@pytest.mark.parametrize("n_outputs", [1, 2, 3, 5, 7])
@pytest.mark.parametrize("intercept", [True, False])
def test_forward_adjoint_and_layout(rng, n_outputs, intercept):
    X, both = maps(rng, n_outputs, intercept)
    coef, bias = rng.standard_normal((n_outputs, 11)), rng.standard_normal(n_outputs) * intercept
    r = rng.standard_normal((37, n_outputs))
    for features in both:
        theta = features.pack(coef, bias)
        assert theta.shape == (features.size,)
        np.testing.assert_array_equal(features.unpack(theta)[0], coef)
        np.testing.assert_array_equal(features.unpack(theta)[1], bias)
        np.testing.assert_allclose(features.forward(theta), X @ coef.T + bias, atol=1e-12)
        # the adjoint identity <A theta, r> = <theta, A' r>
        assert np.vdot(features.forward(theta), r) == pytest.approx(theta @ features.adjoint(r), rel=1e-11)
        by_column = features.unpack(features.squared(r))[0]
        np.testing.assert_allclose(by_column, r.T @ X**2, atol=1e-11)


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("intercept", [True, False])
def test_curvature_matrix_against_the_definition(rng, n_outputs, intercept):
    _, both = maps(rng, n_outputs, intercept)
    S = rng.standard_normal((37, n_outputs, n_outputs))
    S = S @ S.transpose(0, 2, 1) - 0.5
    pairs = np.array([S[:, j, k] for j in range(n_outputs) for k in range(j + 1)])
    for features in both:
        matrix = features.curvature_matrix(pairs)
        v = rng.standard_normal(features.size)
        product = features.adjoint(np.einsum("ijk,ik->ij", S, features.forward(v)))
        np.testing.assert_allclose(matrix @ v, product, atol=1e-10)
        np.testing.assert_array_equal(matrix, matrix.T)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_bits_do_not_depend_on_threads(rng, kind):
    X = sp.random(30_000, 60, 0.3, format="csr", random_state=1)
    X = X if kind == "sparse" else X.toarray()
    theta, r, w = rng.standard_normal(4 * 61), rng.standard_normal((30_000, 4)), rng.random(30_000)
    results = []
    for threads in (1, 2, 5):
        features = linear_map(X, 4, True, Workers(threads))
        results.append((features.forward(theta), features.adjoint(r), features.gram(w)))
    for other in results[1:]:
        for a, b in zip(results[0], other, strict=True):
            assert np.array_equal(a, b)


def test_fused_product_in_both_precisions(rng):
    X = rng.standard_normal((500, 20))
    D, top = rng.random((500, 3)), np.zeros(500, np.int64)
    features = DenseLinear(X, 3, True)
    v = rng.standard_normal(features.size)
    V = features.forward(v)
    SV = D * V - D * (np.sum(D * V, 1) / D.sum(1))[:, None]
    exact = features.adjoint(SV)
    np.testing.assert_allclose(features.curvature_product(D, top, v), exact, rtol=1e-10, atol=1e-10)
    single = features.single().curvature_product(D.astype(np.float32), top, v)
    np.testing.assert_allclose(single, exact, rtol=1e-3, atol=1e-3)


def test_sparse_input_in_any_order(rng):
    X = sp.random(50, 20, 0.3, format="csr", random_state=3)
    shuffled = X.copy()
    for i in range(50):
        part = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        order = rng.permutation(part.stop - part.start)
        shuffled.indices[part] = shuffled.indices[part][order]
        shuffled.data[part] = shuffled.data[part][order]
    shuffled.has_sorted_indices = False
    before = shuffled.indices.copy()
    w = rng.random(50)
    np.testing.assert_allclose(linear_map(shuffled, 1, True).gram(w), linear_map(X, 1, True).gram(w))
    assert np.array_equal(shuffled.indices, before), "the user's matrix must not change"


def test_rows_can_be_taken(rng):
    _, both = maps(rng, 2, True)
    rows = np.array([3, 5, 30])
    for features in both:
        taken = features.take(rows)
        theta = features.pack(rng.standard_normal((2, 11)), np.ones(2))
        np.testing.assert_allclose(taken.forward(theta), features.forward(theta)[rows])
    assert isinstance(both[1], SparseLinear)


def test_row_space_keeps_products(rng):
    X = rng.standard_normal((6, 40))
    L, Q = row_space(X)
    assert L.shape == (6, 6)
    np.testing.assert_allclose(L @ Q.T, X, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(6), atol=1e-12)


def test_label_features_ragged_and_regular(rng):
    F = rng.standard_normal((4, 3, 6))
    regular, ragged = LabelFeatures(F), LabelFeatures(F.reshape(12, 6), counts=[3, 3, 3, 3])
    theta, r = rng.standard_normal(6), rng.standard_normal(12)
    np.testing.assert_array_equal(regular.forward(theta), ragged.forward(theta))
    assert regular.forward(theta) @ r == pytest.approx(theta @ regular.adjoint(r))
    with pytest.raises(ValueError, match=r"\(examples, labels, d\)"):
        LabelFeatures(F[0])
    with pytest.raises(ValueError, match=r"counts.sum\(\)"):
        LabelFeatures(F[0], counts=[2])
    with pytest.raises(ValueError, match="NaN"):
        LabelFeatures(F * np.nan)


def test_row_space_leaves_out_directions_that_only_rounding_makes(rng):
    X = rng.standard_normal((10, 40))
    X[3] = X[1]
    X -= X.mean(axis=0)
    L, Q = row_space(X)
    assert L.shape == (10, 8)
    assert Q.shape == (40, 8)
    np.testing.assert_allclose(L @ Q.T, X, atol=1e-12)
    np.testing.assert_allclose(Q.T @ Q, np.eye(8), atol=1e-12)
    assert row_space(np.zeros((2, 5)))[0].shape == (2, 1)
