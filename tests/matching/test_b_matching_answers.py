"""The best few b-matchings, covariances of edges and standard errors, against lists of all; free energies of few."""

from __future__ import annotations

import numpy as np
import pytest

from partita import MatchingCRF, Status
from partita.matching.engines.b_bethe import b_matching_bethe
from partita.matching.structure.kbest import murty
from partita.structures import BipartiteMatching, BMatching

CASES = {
    "two sides": BMatching((3, 4), ([2, 1, 2], [1, 2, 1, 1])),
    "at most": BMatching((2, 4), ([3, 2], 1), perfect=False),
    "at most two": BMatching((3, 3), 2, perfect=False),
    "one kind": BMatching([(0, 1), (1, 2), (2, 3), (0, 3), (0, 2), (1, 3), (1, 4), (3, 4)], [2, 2, 1, 2, 1]),
    "complete": BMatching(5, 2),
    "no edges at one": BMatching((2, 3), ([2, 0], [1, 1, 0])),
}
cases = pytest.mark.parametrize("name", CASES)


def drawn(structure, seed, forbids, scale=2.0):
    """Weights, of which some are -inf, and all sets of edges."""
    rng, Y = np.random.default_rng(seed), structure.enumerate().reshape(-1, structure.n_edges)
    w = scale * rng.standard_normal((2, structure.n_edges))
    if forbids:
        w[(rng.random(w.shape) < 0.4) & (Y[rng.integers(len(Y), size=2)] == 0)] = -np.inf
    return w, Y


def scores_of(w, Y):
    return np.where(Y > 0, w, 0.0).sum(1)


@cases
@pytest.mark.parametrize("forbids", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_covariances_are_those_of_a_list(name, forbids, seed):
    structure = CASES[name]
    w, Y = drawn(structure, seed, forbids, 5.0)
    d = np.random.default_rng(seed).standard_normal(w.shape)
    for row, along, found in zip(w, d, structure.covariances(w, d), strict=True):
        p = np.exp(scores_of(row, Y) - structure.log_partition(structure.as_given(row[None])[0])[0])
        mean = p @ Y
        np.testing.assert_allclose(found, (Y * p[:, None]).T @ (Y @ along) - mean * (mean @ along), atol=1e-11)


@cases
@pytest.mark.parametrize("forbids", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_the_best_few_are_those_of_a_list(name, forbids, seed):
    structure = CASES[name]
    w, Y = drawn(structure, seed, forbids)
    for row in w:
        ((chosen, scores),) = structure.kbest(structure.as_given(row[None])[0], 12)
        expected = np.sort(scores_of(row, Y))[::-1]
        expected = expected[expected > -np.inf][:12]
        np.testing.assert_allclose(scores, expected, atol=1e-9)
        flat = chosen.reshape(len(chosen), -1)
        assert len(np.unique(flat, axis=0)) == len(flat)
        np.testing.assert_allclose(scores, structure.score_of(np.tile(row, (len(flat), 1)), chosen), atol=1e-12)


def test_equals_are_listed_once_each():
    ((chosen, scores),) = BMatching((3, 3), 2).kbest(np.zeros((3, 3)), 50)
    assert len(chosen) == 6
    assert len(np.unique(chosen.reshape(6, -1), axis=0)) == 6
    assert not scores.any()


def test_one_edge_each_as_by_murty(rng):
    w = rng.standard_normal((4, 4))
    ((chosen, scores),) = BMatching((4, 4), 1).kbest(w, 9)
    matchings, expected = murty(BipartiteMatching(4), w.ravel(), 9)
    np.testing.assert_array_equal(chosen.argmax(2), matchings)
    np.testing.assert_allclose(scores, expected)


def learned(rng, structure, count=30, **options):
    X = rng.standard_normal((count, 2, *structure.table))
    y = [structure.sample(x[0] - 0.5 * x[1], 1, rng)[0] for x in X]
    return X, y, MatchingCRF(b=(2, 1), allow_unmatched=True, **options).fit(X, y)


@pytest.mark.parametrize("method", ["sandwich", "information"])
def test_standard_errors_are_those_of_a_list(method, rng):
    structure = BMatching((2, 4), (2, 1), perfect=False)
    X, y, model = learned(rng, structure, l2=0.5)
    Y = structure.enumerate().reshape(-1, 8)
    theta = np.concatenate([model.parameters_, model.row_parameters_])
    H, K = 0.5 * np.eye(3), np.zeros((3, 3))
    for x, own in zip(X, y, strict=True):
        F = np.column_stack([Y @ x.reshape(2, 8).T, -Y.sum(1)])
        p = np.exp(F @ theta - (F @ theta).max())
        p /= p.sum()
        left = np.append(x.reshape(2, 8) @ own.ravel(), -own.sum()) - p @ F
        H, K = H + (F * p[:, None]).T @ F - np.outer(p @ F, p @ F), K + np.outer(left, left)
    inverse = np.linalg.inv(H)
    expected = np.sqrt(np.diag(inverse if method == "information" else inverse @ K @ inverse))
    np.testing.assert_allclose(model.standard_errors(method), expected, rtol=1e-8)
    assert "row alone[0]" in str(model.summary(method=method))


def test_newton_and_the_best_few_of_a_model(rng):
    structure = BMatching((2, 4), (2, 1), perfect=False)
    X, y, model = learned(rng, structure)
    newton = MatchingCRF(b=(2, 1), allow_unmatched=True, solver="newton").fit(X, y)
    np.testing.assert_allclose(newton.parameters_, model.parameters_, atol=1e-4)
    everything = model.kbest(X[:2], 10_000)
    for best, found in zip(model.predict(X[:2]), everything, strict=True):
        assert len(found) == len(structure.enumerate())
        np.testing.assert_array_equal(found[0][0], best)
        assert np.exp([log_p for _, log_p in found]).sum() == pytest.approx(1.0)
        np.testing.assert_allclose(
            [model.log_likelihood(X[:1], [y])[0] for y, _ in everything[0][:5]], [log_p for _, log_p in everything[0][:5]]
        )


@pytest.mark.parametrize("rho", [1.0, 0.7, 0.5, 0.3])
@pytest.mark.parametrize(("graph", "b"), [((3, 3), 2), ((4, 4), 3), (4, 2)])
def test_all_edges_but_one_at_each_vertex_are_what_a_matching_leaves(graph, b, rho, rng):
    structure, plain = BMatching(graph, b), BMatching(graph, b)
    assert structure.complement is not None
    plain.__dict__["complement"] = None  # by messages of b-matchings
    w = 0.7 * rng.standard_normal((4, structure.n_edges))
    one, two = (b_matching_bethe(s, w, rho, 1e-9) for s in (structure, plain))
    np.testing.assert_allclose(one.log_z, two.log_z, atol=2e-9)
    np.testing.assert_allclose(one.marginals, two.marginals, atol=1e-6)
    truth = structure.exact_sums(w, None)
    assert (one.lower <= truth).all()
    assert (truth <= one.upper).all()


def test_few_vertices_where_messages_creep_are_learned(rng):
    """A Bethe likelihood near where it freezes: messages of b-matchings take 5000 sweeps and do not end."""
    structure = BMatching((3, 3), 2)
    X = rng.standard_normal((40, 2, 3, 3))
    y = [structure.sample(x[0] - 0.5 * x[1], 1, rng)[0] for x in X]
    model = MatchingCRF("bethe", b=2).fit(X, y)
    assert model.gap_ <= 1e-8 * 6 * 40
    assert model.status_ is Status.CONVERGED
