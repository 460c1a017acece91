"""The map from parameters to potentials of edges, and its adjoint."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita.tree import DependencyTrees, PairFeatures


def made(rng, n_features=13, lengths=(3, 1, 6, 2, 9)):
    trees = DependencyTrees(lengths)
    shape = (trees.n_pairs, n_features)
    return trees, np.where(rng.random(shape) < 0.4, rng.standard_normal(shape), 0.0)


KINDS = {
    "dense": lambda F: F,
    "single precision": lambda F: F.astype(np.float32),
    "columns first": np.asfortranarray,
    "csr": sp.csr_matrix,
    "csc array": sp.csc_array,
    "coo": sp.coo_matrix,
}


@pytest.mark.parametrize("kind", KINDS)
def test_forward_and_adjoint(kind, rng):
    trees, F = made(rng)
    given = KINDS[kind](F)
    F = F.astype(np.float32).astype(np.float64) if kind == "single precision" else F
    features = PairFeatures(given, trees.offsets)
    assert (features.size, features.n_examples, features.n_pairs) == (13, 5, trees.n_pairs)
    theta, mu = rng.standard_normal(13), rng.standard_normal(trees.n_pairs)
    np.testing.assert_allclose(features.forward(theta), F @ theta, atol=1e-13)
    np.testing.assert_allclose(features.adjoint(mu), F.T @ mu, atol=1e-13)
    rounding = 1e-6 if kind == "single precision" else 1e-13  # squares are rounded, too
    np.testing.assert_allclose(features.squares(mu), (F * F).T @ mu, atol=rounding)
    assert features.forward(theta) @ mu == pytest.approx(theta @ features.adjoint(mu), rel=1e-12)


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("part", [(0, 2), (1, 4), (3, 5), (2, 2)])
def test_ranges_of_examples(kind, part, rng):
    trees, F = made(rng)
    features, (lo, hi) = PairFeatures(KINDS[kind](F), trees.offsets), part
    own = slice(trees.offsets[lo], trees.offsets[hi])
    theta, mu = rng.standard_normal(13), rng.standard_normal(own.stop - own.start)
    np.testing.assert_allclose(features.forward(theta, lo, hi), F[own] @ theta, atol=1e-13)
    np.testing.assert_allclose(features.adjoint(mu, lo, hi), F[own].T @ mu, atol=1e-13)
    np.testing.assert_allclose(features.squares(mu, lo, hi), (F[own] ** 2).T @ mu, atol=1e-13)


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_bits_do_not_depend_on_threads(kind, rng):
    trees, F = made(rng, 60, rng.integers(1, 40, 60))
    theta, mu = rng.standard_normal(60), rng.standard_normal(trees.n_pairs)
    one, three = (PairFeatures(KINDS[kind](F), trees.offsets, n_jobs=n) for n in (1, 3))
    np.testing.assert_array_equal(one.forward(theta), three.forward(theta))
    np.testing.assert_array_equal(one.adjoint(mu), three.adjoint(mu))
    assert len(one._chunks(0, one.n_examples)) > 1


def test_the_callers_matrix_stays_as_it_is(rng):
    trees, _ = made(rng, lengths=(2,))
    twice = sp.csr_matrix((np.ones(3), np.array([1, 0, 1]), np.array([0, 3, 3, 3, 3])), shape=(4, 2))
    features = PairFeatures(twice, trees.offsets)
    np.testing.assert_array_equal(features.forward(np.array([1.0, 10.0])), [21.0, 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(features.squares(np.ones(4)), [1.0, 4.0])
    np.testing.assert_array_equal(twice.indices, [1, 0, 1])


def test_the_gradient_of_a_likelihood(rng):
    """What an objective will do: minus the features of the tree plus those expected, against finite differences."""
    trees, F = made(rng, 4)
    features, y = PairFeatures(F, trees.offsets), None
    theta = rng.standard_normal(4)
    y = trees.sample(features.forward(theta), 1, random_state=0)[0]

    def loss(t):
        s = features.forward(t)
        return float((trees.log_partition(s) - trees.score(s, y)).sum())

    observed = np.zeros(trees.n_pairs)
    observed[trees.chosen(y)] = 1.0
    s = features.forward(theta)
    gradient = features.adjoint(trees.infer(s).marginals - observed)
    v, step = rng.standard_normal(4), 1e-4
    around = [loss(theta + k * step * v) for k in (-2, -1, 0, 1, 2)]
    assert gradient @ v == pytest.approx(np.dot([1, -8, 0, 8, -1], around) / (12 * step), rel=1e-9)
    curvature = v @ features.adjoint(trees.covariance_product(s, features.forward(v)))
    assert curvature == pytest.approx(np.dot([-1, 16, -30, 16, -1], around) / (12 * step**2), rel=1e-5)


def test_features_that_are_none(rng):
    trees, F = made(rng)
    bad = F.copy()
    bad[2, 3] = np.nan
    for given in (bad, sp.csr_matrix(bad)):
        with pytest.raises(ValueError, match="features must be finite"):
            PairFeatures(given, trees.offsets)
    with pytest.raises(ValueError, match=r"features must be numbers of shape \(edges, features\); got \(3,\)"):
        PairFeatures(np.zeros(3), [0, 3])
    with pytest.raises(ValueError, match="features must be numbers"):
        PairFeatures(np.array([["a"]]), [0, 1])
    broken = sp.csr_matrix(F)
    broken.indices[0] = 99
    with pytest.raises(ValueError, match="features is a broken sparse matrix"):
        PairFeatures(broken, trees.offsets)
    for offsets in ([0, 5], [0, 9, 4, trees.n_pairs], [1, trees.n_pairs]):
        with pytest.raises(ValueError, match=f"offsets must rise from 0 to {trees.n_pairs}"):
            PairFeatures(F, offsets)
    with pytest.raises(ValueError, match="offsets must be integers"):
        PairFeatures(F, [0.0, 3.0])
    features = PairFeatures(F, trees.offsets)
    with pytest.raises(ValueError, match=r"theta must have shape \(13,\)"):
        features.forward(np.zeros(12))
    with pytest.raises(ValueError, match=r"values must have shape \(131,\)"):
        features.adjoint(np.zeros(12))
    with pytest.raises(ValueError, match=r"range within 0\.\.5; got 3\.\.9"):
        features.forward(np.zeros(13), 3, 9)
