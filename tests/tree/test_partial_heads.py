"""Heads that are unknown, or of which a set is known."""

from __future__ import annotations

import numpy as np
import pytest

from partita import DependencyCRF, Status
from partita.structures import DependencyTrees
from partita.tree import PairFeatures, TreeLikelihood
from partita.tree.data import read_known_heads

LENGTHS = [3, 2, 4]
Y = [[2, None, {1, 2}], [None, None], [0, {0, 1, 3}, None, 3]]


@pytest.fixture
def trees():
    return DependencyTrees(LENGTHS)


def agrees(heads, known):
    return all(k is None or (h in k if isinstance(k, set) else h == k) for h, k in zip(heads, known, strict=True))


def every_tree(n):
    """All trees of n words, by trying all heads."""
    one = DependencyTrees([n])
    found = []
    for code in np.ndindex(*[n + 1] * n):
        try:
            found.append(one.trees(np.array(code)))
        except ValueError:
            continue
    return found


def test_the_likelihood_is_that_of_all_trees_that_agree(trees, rng):
    features = PairFeatures(rng.standard_normal((trees.n_pairs, 3)), trees.offsets)
    known = read_known_heads(Y, trees)
    weights = np.array([1.0, 0.5, 2.0])
    objective = TreeLikelihood(features, trees, None, allowed=known.allowed, weights=weights, penalty=0.3)
    theta = rng.standard_normal(3)
    scores = features.forward(theta)
    expected = 0.15 * float(theta @ theta)
    for i, (n, given) in enumerate(zip(LENGTHS, Y, strict=True)):
        own = scores[trees.offsets[i] : trees.offsets[i + 1]]
        one = DependencyTrees([n])
        values = {tuple(y.tolist()): one.score(own, y)[0] for y in every_tree(n)}
        some = [value for y, value in values.items() if agrees(y, given)]
        assert 0 < len(some) < len(values) or i == 1
        expected += weights[i] * (np.logaddexp.reduce(list(values.values())) - np.logaddexp.reduce(some))
    point = objective.at(theta)
    assert point.value == pytest.approx(expected, rel=1e-12)
    steps = 1e-6 * np.eye(3)
    slopes = [(objective.at(theta + e).value - objective.at(theta - e).value) / 2e-6 for e in steps]
    np.testing.assert_allclose(point.gradient, slopes, rtol=1e-6, atol=1e-7)
    H = np.array([point.hessian_product()(e) for e in np.eye(3)])
    slopes = [(objective.at(theta + e).gradient - objective.at(theta - e).gradient) / 2e-6 for e in steps]
    np.testing.assert_allclose(H, slopes, rtol=1e-5, atol=1e-6)
    assert point.gap == np.inf


def test_known_heads_written_as_sets_change_nothing(rng):
    X = [rng.standard_normal((n * n, 2)) for n in (3, 4, 2, 5)]
    y = [[2, 0, 2], [0, 1, 1, 3], [2, 0], [0, 1, 2, 3, 4]]
    plain = DependencyCRF(tol=1e-9).fit(X, y)
    sets = DependencyCRF(tol=1e-9).fit(X, [[{h} for h in heads] for heads in y])
    np.testing.assert_allclose(plain.parameters_, sets.parameters_, atol=1e-6)
    np.testing.assert_allclose(sets.log_likelihood(X, y), plain.log_likelihood(X, y), atol=1e-6)
    assert sets.score(X, [[{h} for h in heads] for heads in y]) == plain.score(X, y)


def test_unknown_heads_of_tokens_are_learned_from():
    X = [["the", "cat", "sat"], ["a", "cat", "saw", "a", "dog"]] * 5
    y = [[2, None, 0], [2, 3, None, {5, 3}, 3]] * 5
    model = DependencyCRF(l2=0.1).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.predict(X[:2])[1].tolist() == [2, 3, 0, 5, 3]
    assert model.score(X, y) == 1.0
    assert (model.log_likelihood(X, y) > model.log_likelihood(X, [[2, 3, 0], [2, 3, 0, 5, 3]] * 5) - 1e-12).all()


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([[2, None, 7], [0, 1], [0, 1, 1, 1]], "sentence 0 of y has 7 for word 3: heads are integers from 0"),
        ([[2, None, {3}], [0, 1], [0, 1, 1, 1]], "sentence 0 of y has 3 for word 3"),
        ([[2, None, set()], [0, 1], [0, 1, 1, 1]], "y has a set without a head"),
        ([[2, 1, None], [0, 1], [0, 1, 1, 1]], "y allows no tree: its heads forbid every tree"),
        ([[2, None], [0, 1], [0, 1, 1, 1]], "sentence 0 of y must have 3 heads"),
        ([[2, "x", None], [0, 1], [0, 1, 1, 1]], "sentence 0 of y has 'x' for word 2"),
    ],
)
def test_heads_that_cannot_be_are_named(trees, y, message):
    with pytest.raises(ValueError, match=message):
        read_known_heads(y, trees)


def test_a_score_needs_a_head():
    X, y = [["a", "b"]] * 2, [[0, 1]] * 2
    model = DependencyCRF().fit(X, y)
    with pytest.raises(ValueError, match="y holds no head at all"):
        model.score(X, [[None, None]] * 2)
