"""Distributions over matchings: gradients, certificates, recovery, inputs, files."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

from partita import MatchingCRF, TooLargeError
from partita.matching.features import EdgeFeatures, NodePairs
from partita.matching.objective.exact import ExactMatchingLikelihood
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.structures import BipartiteMatching, Matching


def generated(rng, n=6, m=60, theta=(1.0, -0.5), symmetric=False):
    """Features and matchings drawn from the model itself."""
    X, y = [], []
    for _ in range(m):
        F = rng.standard_normal((len(theta), n, n))
        if symmetric:
            F = F + F.transpose(0, 2, 1)
        W = np.tensordot(theta, F, 1)
        s = Matching(n) if symmetric else BipartiteMatching(n)
        X.append(F)
        y.append(s.sample(W, 1, rng)[0])
    return X, y


@pytest.mark.parametrize("rho", [None, 0.5, 0.8, 1.0])
@pytest.mark.parametrize("kind", ["bipartite", "general", "free"])
def test_gradients_against_differences(rho, kind, rng):
    B, n, K = 3, 4, 3
    s = BipartiteMatching(n) if kind == "bipartite" else Matching(n, perfect=kind == "general")
    features = EdgeFeatures(rng.standard_normal((K, B, s.n_edges)))
    y = [s.sample(np.zeros((n, n)), 1, rng)[0] for _ in range(B)]
    group = Group(s, features, s.indicators(y), np.array([1.0, 2.0, 0.5]))
    if rho is None:
        objective = ExactMatchingLikelihood([group], 0.7)
    else:
        objective = MatchingLikelihood([group], 0.7, rho, tol=1e-12, max_iter=100000)
    theta = rng.standard_normal(K)
    point = objective.at(theta)
    for k in range(K):
        step = np.eye(K)[k] * 1e-5
        slope = (objective.at(theta + step).value - objective.at(theta - step).value) / 2e-5
        assert point.gradient[k] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("symmetric", [False, True])
def test_vertex_features_are_edge_features(symmetric, rng):
    n, p = 5, 3
    L = rng.standard_normal((2, n + symmetric, p))
    R = L if symmetric else rng.standard_normal((2, n, 2))
    ends = Matching(n + 1).ends if symmetric else None
    pairs = NodePairs(L, R, ends)
    theta = rng.standard_normal(pairs.size)
    F = np.einsum("bip,bjq->pqbij", L, R).reshape(pairs.size, 2, L.shape[1], -1)
    if symmetric:
        F = 0.5 * (F + F.transpose(0, 1, 3, 2))[:, :, ends[:, 0], ends[:, 1]]
    full = EdgeFeatures(F.reshape(pairs.size, 2, -1))
    np.testing.assert_allclose(pairs.forward(theta), full.forward(theta), atol=1e-12)
    V = rng.standard_normal(pairs.forward(theta).shape)
    np.testing.assert_allclose(pairs.adjoint(V), full.adjoint(V), atol=1e-12)


@pytest.mark.parametrize("likelihood", ["full", "bethe"])
@pytest.mark.parametrize("symmetric", [False, True])
def test_training_is_certified_and_finds_the_weights(symmetric, likelihood, rng):
    X, y = generated(rng, m=300, symmetric=symmetric)
    model = MatchingCRF(likelihood, bipartite=not symmetric, l2=0.1).fit(X, y)
    assert model.likelihood_ == likelihood
    assert model.gap_ <= 1e-8 * 300 * 12
    np.testing.assert_allclose(model.parameters_, (1.0, -0.5), atol=0.25)
    assert model.trace_.gap[-1] == model.gap_
    assert model.score(X, y) > 0.3
    # The gap is above the distance to the optimum at every iterate.
    excess = model.trace_.objective - model.trace_.objective.min()
    assert (model.trace_.gap >= excess - 1e-9 * abs(excess).max()).all()


def test_bounds_on_the_likelihood_hold(rng):
    X, y = generated(rng, m=30)
    model = MatchingCRF("bethe").fit(X, y)
    value, lower, upper = model.log_likelihood(X, y, bounds=True)
    s = BipartiteMatching(6)
    W = np.array([np.tensordot(model.parameters_, x, 1) for x in X])
    exact = s.score(W, np.array(y)) - s.log_partition(W, "exact")
    assert (lower <= exact + 1e-9).all()
    assert (exact <= upper + 1e-9).all()
    assert (lower <= value + 1e-6).all()
    for tau in model.predict_marginals(X[:2]):
        np.testing.assert_allclose(tau.sum(0), 1.0, atol=1e-6)


def test_sizes_may_differ(rng):
    small, large = generated(rng, n=4, m=10), generated(rng, n=5, m=10)
    X, y = [*small[0], *large[0]], [*small[1], *large[1]]
    order = rng.permutation(20)
    a = MatchingCRF().fit(X, y)
    b = MatchingCRF().fit([X[i] for i in order], [y[i] for i in order])
    np.testing.assert_allclose(a.parameters_, b.parameters_, atol=1e-5)
    for i, k in enumerate(order):
        np.testing.assert_array_equal(b.predict([X[i] for i in order])[i], a.predict(X)[k])


def test_edges_and_pairs_are_read(rng):
    edges = np.array([(i, j) for i in range(6) for j in range(i + 1, 6) if (i, j) not in ((0, 5), (1, 4))])
    X = [{"edges": edges, "features": rng.standard_normal((13, 2))} for _ in range(8)]
    y = [np.array([(0, 1), (2, 3), (4, 5)])] * 4 + [[3, 2, 1, 0, 5, 4]] * 4
    model = MatchingCRF(bipartite=False).fit(X, y)
    assert model.predict(X)[0].shape == (6,)
    assert model.predict_marginals(X)[0].shape == (13,)
    loose = MatchingCRF(bipartite=False, allow_unmatched=True).fit(X, [np.array([(0, 1)])] * 8)
    assert loose.predict_marginals(X)[0].sum() < 3.0
    more = MatchingCRF(bipartite=False, allow_unmatched=True).fit(
        [{**x, "n_vertices": 8} for x in X], [np.array([(0, 1)])] * 8
    )
    assert more.predict([{**X[0], "n_vertices": 8}])[0].shape == (8,)
    np.testing.assert_allclose(more.parameters_, loose.parameters_, atol=1e-5)


def test_files_clones_and_warm_starts(rng, tmp_path):
    X, y = generated(rng, m=20)
    model = MatchingCRF(l2=0.5).fit(X, y)
    model.save(tmp_path / "m.partita")
    again = MatchingCRF.load(tmp_path / "m.partita")
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert clone(model).get_params() == model.get_params()
    warm = model.set_params(warm_start=True).fit(X, y)
    assert warm.n_iter_ <= 2


@pytest.mark.parametrize(
    ("options", "change", "message"),
    [
        ({"l2": 0.0, "likelihood": "bethe"}, None, "l2 must be above zero"),
        ({"l2": 0.0, "rho": 0.5}, None, r"l2 must be above zero .*rho and solver ask for it.* likelihood='full'"),
        ({"likelihood": "full", "rho": 0.5}, None, "rho=0.5 is for likelihood='bethe'"),
        ({"likelihood": "full", "solver": "block_frank_wolfe"}, None, "for likelihood='bethe' only"),
        ({"likelihood": "exact"}, None, "likelihood must be one of 'auto', 'full', 'bethe'"),
        ({"rho": 0.0}, None, "rho must be above 0 and up to 1"),
        ({"bipartite": False}, None, "symmetric"),
        ({}, lambda X, y: (X[:3], y), "matching for each"),
        (
            {},
            lambda X, y: (X, [[0, 0, 1, 2]] * 4),
            r"^y: example 0: y must be a permutation of 0\.\.3: rows 0 and 1 have column 0$",
        ),
        (
            {"bipartite": False},
            lambda X, y: ([{"edges": [(0, 1)], "features": [[1.0]], "n_vertices": 1}], y[:1]),
            "n_vertices",
        ),
        ({}, lambda X, y: (X, [[(0, 1), (0, 0), (1, 1), (2, 2), (3, 3)]] * 4), "a row is in two"),
        ({}, lambda X, y: ([x * np.nan for x in X], y), "NaN"),
        ({}, lambda X, y: ([*X[:3], X[3][:1]], y), "different numbers of features"),
        ({}, lambda X, y: ([{"nodes": np.zeros((4, 2))}] * 4, y), "rows"),
        ({"bipartite": False}, lambda X, y: ([{"nodes": np.zeros((5, 2))}] * 4, y), "even number"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(options, change, message, rng):
    X, y = generated(rng, n=4, m=4)
    model = MatchingCRF(**options)
    if change is not None:
        X, y = change(X, y)
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not hasattr(model, "parameters_")


@pytest.mark.parametrize(
    ("model", "X", "y", "message"),
    [
        (MatchingCRF(bipartite=False), [np.ones((2, 4, 5))], [[0, 1, 2, 3]], r"got \(2, 4, 5\) \(or set bipartite=True"),
        (MatchingCRF(), [np.ones((5, 5))], [[0]], r"one feature alone is x\[None\], of shape \(1, 5, 5\)"),
        (MatchingCRF(), [[["a"]]], [[0]], "must be an array of numbers with 3 axes"),
        (MatchingCRF(), [np.ones((1, 3, 3))], [[0, 1, -1]], r"leaves row 2 without a column \(-1\).* allow_unmatched=True"),
        (
            MatchingCRF(bipartite=False),
            [{"edges": [[0, 1], [2, 3], [1, 0]], "features": np.ones((3, 1))}],
            [[1, 0, 3, 2]],
            r"example 0: graph has an edge twice, \[0, 1\] in row 0 and \[1, 0\] in row 2",
        ),
        (
            MatchingCRF(bipartite=False),
            [{"edges": [[0, 1], [2, 2]], "features": np.ones((2, 1))}],
            [[1, 0, 3, 2]],
            "from vertex 2 to itself: leave it out",
        ),
    ],
)
def test_shapes_pads_and_doubled_edges_are_refused_with_the_cure(model, X, y, message):
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)


def test_graphs_that_no_memory_holds_are_refused_at_once():
    for make in (
        lambda: Matching(10**7),
        lambda: BipartiteMatching(10**7),
        lambda: Matching([(0, 2**40)], perfect=False),
        lambda: Matching([(0, 1)], perfect=False, n_vertices=2**40),
        lambda: MatchingCRF(bipartite=False).fit([{"edges": [[0, 2**40]], "features": [[1.0]]}], [[1, 0]]),
    ):
        with pytest.raises(TooLargeError, match="are free"):
            make()
