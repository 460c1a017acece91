"""Matchings of sides of any sizes: exact sums, covariances, the k best, draws; against lists of all matchings."""

from __future__ import annotations

import numpy as np
import pytest

from partita import TooLargeError
from partita.structures import BipartiteMatching, Matching

SHAPES = [
    (1, 1, False),
    (1, 4, False),
    (4, 4, False),
    (3, 5, False),
    (5, 2, False),
    (1, 1, True),
    (4, 4, True),
    (2, 5, True),
]
GRAPHS = [Matching(6), Matching([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)], perfect=False, n_vertices=5)]
ALL = [*(BipartiteMatching(*shape) for shape in SHAPES), *GRAPHS]
NAMES = [*(str(shape) for shape in SHAPES), "complete", "edges"]


def listed(structure, W):
    """Zeros and ones of all matchings, and their probabilities."""
    Y = structure.indicators(structure.enumerate())
    with np.errstate(invalid="ignore"):
        scores = np.where(Y > 0.0, W, 0.0).sum(1)
    top = scores.max()
    p = np.exp(scores - top)
    return Y, scores, p / p.sum(), top + np.log(p.sum())


def weights(structure, rng, scale=1.0, forbidden=0.0):
    W = scale * rng.standard_normal(structure.n_edges)
    keep = structure.indicators(structure.enumerate()[rng.integers(len(structure.enumerate()))])[0] > 0.0
    return np.where((rng.random(W.shape) < forbidden) & ~keep, -np.inf, W)


@pytest.mark.parametrize("structure", ALL, ids=NAMES)
@pytest.mark.parametrize(("scale", "forbidden"), [(1.0, 0.0), (5.0, 0.4), (200.0, 0.0), (1000.0, 0.3)])
def test_log_z_and_marginals_to_ten_digits(structure, scale, forbidden, rng):
    W = weights(structure, rng, scale, forbidden)
    Y, _, p, log_z = listed(structure, W)
    found = structure.free_energy(W[None])
    assert found.log_z[0] == pytest.approx(log_z, rel=1e-12, abs=1e-12)
    np.testing.assert_allclose(found.marginals[0], p @ Y, atol=1e-10)


@pytest.mark.parametrize("structure", ALL[: len(SHAPES)], ids=NAMES[: len(SHAPES)])
@pytest.mark.parametrize("scale", [1e-300, 1e8, 1e50, 1e99])
def test_weights_of_any_size(structure, scale, rng):
    """Where duals are rounded by more than one, the best matching is all that counts, and counts."""
    for _ in range(10):
        W = weights(structure, rng, scale, 0.3)
        _, scores, _, log_z = listed(structure, W)
        found = structure.free_energy(W[None])
        assert found.log_z[0] == pytest.approx(log_z, rel=1e-11, abs=1e-11)
        drawn = structure.draws(W[None], 3, rng)
        assert (structure.score_of(W[None], drawn) > -np.inf).all()
        if scale > 1e40:
            np.testing.assert_allclose(found.marginals[0], structure.indicators(structure.best(W[None]))[0], atol=1e-9)
            assert scores.max() == pytest.approx(structure.score_of(W[None], drawn)[0], rel=1e-11)


@pytest.mark.parametrize("structure", ALL, ids=NAMES)
@pytest.mark.parametrize("forbidden", [0.0, 0.4])
def test_covariances_of_edges(structure, forbidden, rng):
    W, D = weights(structure, rng, 1.0, forbidden), rng.standard_normal(structure.n_edges)
    Y, _, p, _ = listed(structure, W)
    mean = p @ Y
    expected = ((p * (Y @ D)) @ Y) - (mean @ D) * mean
    for scale in (1.0, 1e12, 0.0):
        found = structure.covariances(np.stack([W, W]), scale * np.stack([D, D]))
        np.testing.assert_allclose(found[1], scale * expected, atol=1e-13 * max(scale, 1.0))


@pytest.mark.parametrize("structure", ALL, ids=NAMES)
def test_the_k_best(structure, rng):
    for forbidden in (0.0, 0.4):
        W = weights(structure, rng, 1.0, forbidden)
        _, scores, _, _ = listed(structure, W)
        possible = np.sort(scores[scores > -np.inf])[::-1]
        for k in (1, 3, len(scores) + 5):
            ((found, values),) = structure.kbest(W if W.ndim > 1 else structure_shape(structure, W), k)
            np.testing.assert_allclose(values, possible[:k], rtol=1e-12, atol=1e-12)
            assert len(np.unique(found, axis=0)) == len(found)
            np.testing.assert_allclose(structure.score_of(W[None], found), values, atol=1e-12)


def structure_shape(structure, W):
    return W.reshape(structure.n, structure.m) if isinstance(structure, BipartiteMatching) else W


@pytest.mark.parametrize("shape", [(3, 3, True), (2, 4, False), (4, 2, False), (2, 4, True)])
def test_markov_chains_come_close(shape, rng):
    s = BipartiteMatching(*shape)
    W = rng.standard_normal(shape[:2])
    drawn = s.sample(W, 4000, random_state=0, thinning=2)
    assert drawn.shape == (4000, shape[0])
    np.testing.assert_allclose(s.indicators(drawn).mean(0), s.infer(W).marginals.ravel(), atol=0.04)


def test_bethe_of_a_star_is_exact_and_bounds_hold_on_edges_of_two_sides(rng):
    W = rng.standard_normal((1, 5))
    star = BipartiteMatching(1, 5, allow_unmatched=True)
    np.testing.assert_allclose(star.log_partition(W, "bethe"), star.log_partition(W, "exact"), atol=1e-7)
    edges = np.array([(i, 3 + j) for i in range(3) for j in range(3)])[rng.permutation(9)]
    for perfect in (True, False):
        graph = Matching(edges, perfect=perfect)
        assert graph.two_sided
        w = rng.standard_normal(9)
        exact, bethe = graph.log_partition(w, "exact")[0], graph.infer(w, "bethe")
        assert bethe.lower[0] > -np.inf
        assert bethe.lower[0] <= exact <= bethe.upper[0]
        assert exact <= graph.infer(w, "bethe", rho=0.5).upper[0]
    assert not Matching(4).two_sided


def test_large_sides_are_summed_over_the_smaller(rng):
    W = rng.standard_normal((3, 300))
    s, t = BipartiteMatching(3, 300), BipartiteMatching(300, 3)
    np.testing.assert_allclose(s.log_partition(W), t.log_partition(W.T), rtol=1e-13)
    w = np.exp(W)
    p1, p2, p3 = w.sum(1), w @ w.T, (w[0] * w[1] * w[2]).sum()
    total = p1.prod() - p1[0] * p2[1, 2] - p1[1] * p2[0, 2] - p1[2] * p2[0, 1] + 2.0 * p3
    assert s.log_partition(W)[0] == pytest.approx(np.log(total), rel=1e-12)
    with pytest.raises(TooLargeError, match="Choose engine='bethe'"):
        BipartiteMatching(23, 100).infer(np.zeros((23, 100)), "exact")


@pytest.mark.parametrize(
    ("shape", "y", "message"),
    [
        ((3, 3, False), [0, 0, 1], r"permutation of 0\.\.2: rows 0 and 1 have column 0"),
        ((3, 3, False), [0, 1, 3], "row 2 has column 3, not one from 0 to 2"),
        ((3, 3, False), [0, 1, -1], r"leaves row 2 without a column \(-1\)"),
        ((2, 3, False), [0, -1], "leaves row 1 without a column"),
        ((3, 2, False), [0, -1, -1], "leaves column 1 without a row"),
        ((3, 2, True), [1, -1, 1], "each column to one row at most: rows 0 and 2 have column 1"),
        ((3, 2, True), [1, -2, 0], "row 1 has column -2"),
        ((3, 2, True), [1, 0], "3 integers, a column for each row"),
    ],
)
def test_matchings_that_are_none(shape, y, message):
    with pytest.raises(ValueError, match=message):
        BipartiteMatching(*shape).score(np.zeros(shape[:2]), y)
