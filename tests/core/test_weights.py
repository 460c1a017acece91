"""Weights without what a few examples have too much of, and the tolerance that is relative to them."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

from partita import BayesianNetwork, ChainCRF, GraphCRF, MarkovNetwork, MatchingCRF, SoftmaxRegression, Status
from partita.chain.features.chain import ChainFeatures
from partita.chain.objective.boltzmann import BoltzmannChainLikelihood
from partita.core.arrays.weights import held_down
from partita.features import TableType, TiedTables
from partita.matching.features import EdgeFeatures
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.objectives import ChainLikelihood, GraphLikelihood
from partita.softmax.estimators.softmax_regression import softmax_objective
from partita.structures import BipartiteMatching, FactorGraph

N = 40


def test_equal_and_similar_weights_stay_as_they_are(rng):
    for weights in (np.ones(N), np.full(N, 1e-30), rng.uniform(1.0, 9.9, N), np.ones(1), np.array([3.0])):
        assert held_down(weights) is weights


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e12])
def test_a_heavy_row_counts_as_ten_others_in_any_units(unit):
    weights = np.full(N, unit)
    weights[7] = 1e9 * unit
    assert held_down(weights).sum() == pytest.approx((N - 1 + 10) * unit)
    assert held_down(weights[[0, 7]]).sum() == pytest.approx(11 * unit)
    assert held_down(weights[7:8]).sum() == weights[7]


def test_examples_that_hardly_count_do_not_make_the_tolerance_absurd():
    weights = np.full(N, 1e-12)
    weights[:6] = 1.0
    assert held_down(weights).sum() == pytest.approx(6.0)
    weights[:34] = 0.0
    weights[39] = 1.0
    assert held_down(weights).sum() == pytest.approx(1e-12 * 5 + 1e-11)


def test_long_tails_keep_most_of_their_weight():
    weights = 1e4 / np.arange(1.0, 1e4)
    assert 0.5 * weights.sum() < held_down(weights).sum() < weights.sum()


def chains(weights):
    offsets = np.arange(0, 3 * N + 1, 3)
    X = sp.random(3 * N, 4, 0.5, format="csr", random_state=0)
    pairs = np.repeat(np.arange(4), 2), np.tile(np.arange(2), 4)
    features = ChainFeatures(X, offsets, 2, *pairs, np.argwhere(np.ones((2, 2))))
    return ChainLikelihood(features, np.arange(3 * N) % 2, weights=weights), 3 * N


def boltzmann(weights):
    offsets = np.arange(0, 3 * N + 1, 3)
    codes = np.arange(3 * N) % 2
    return BoltzmannChainLikelihood(codes, codes, offsets, np.ones(2), 2, weights=weights), 3 * N


def graphs(weights):
    graph = FactorGraph.union([FactorGraph([2, 2], [(0,), (1,), (0, 1)])] * N)
    features = TiedTables(graph, [TableType(np.arange(graph.n_factors)[2::3])])
    return GraphLikelihood(features, np.arange(2 * N) % 2, weights=weights), 2 * N


def matchings(weights):
    s = BipartiteMatching(2)
    rows = s.indicators([np.array([0, 1])] * N)
    F = np.random.default_rng(0).standard_normal((1, N, s.n_edges))
    halves = [slice(0, N // 2), slice(N // 2, N)]
    groups = [Group(s, EdgeFeatures(F[:, part]), rows[part], weights[part]) for part in halves]
    return MatchingLikelihood(groups, 1.0), 4 * N


def softmax(weights):
    X = np.random.default_rng(0).standard_normal((N, 2))
    return softmax_objective(X, np.arange(N) % 2, weights=weights), N


@pytest.mark.parametrize("make", [softmax, chains, boltzmann, graphs, matchings])
def test_every_family_has_a_scale_that_one_example_cannot_hide_behind(make):
    objective, units = make(np.ones(N))
    assert objective.scale == units
    assert make(np.full(N, 0.25))[0].scale == 0.25 * units
    heavy = np.ones(N)
    heavy[N - 3] = 1e9
    assert make(heavy)[0].scale == pytest.approx(units * (N + 9) / N)


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
@pytest.mark.parametrize("data", ["digits", "wine"])
def test_a_row_of_weight_1e9_does_not_hide_the_others(data, solver):
    X, y = load_digits(return_X_y=True) if data == "digits" else load_wine(return_X_y=True)
    X = X / 16.0 if data == "digits" else scale(X)
    weights = np.ones(len(y))
    weights[3] = 1e9
    model = SoftmaxRegression(solver=solver).fit(X, y, sample_weight=weights)
    best = SoftmaxRegression(tol=1e-12, max_iter=5000).fit(X, y, sample_weight=weights)
    assert model.status_ is Status.CONVERGED
    assert model.trace_.objective[-1] == pytest.approx(best.trace_.objective[-1], rel=1e-4)


@pytest.mark.filterwarnings("ignore::partita.ConvergenceWarning")  # of the strict fits, which may end at rounding
def test_other_estimators_learn_beside_a_heavy_example(rng):
    """As from the same data without it, nearly: its own weight says nothing against the others."""
    weights = np.ones(30)
    weights[4] = 1e9
    X = (rng.random((30, 3)) < 0.5).astype(int)
    fits = {
        "markov": [
            MarkovNetwork.ising([(0, 1), (1, 2)], l2=1.0, tol=t).fit(X, sample_weight=weights) for t in (1e-7, 1e-10)
        ],
        "chain": [
            ChainCRF(l2=1.0, tol=t).fit([[[f"w{v}"] for v in row] for row in X], X[:, ::-1].tolist(), sample_weight=weights)
            for t in (1e-6, 1e-10)
        ],
        "graph": [
            GraphCRF(l2=1.0, tol=t).fit(
                [(row[:, None] * 1.0, [[0, 1], [1, 2]]) for row in X], list(X), sample_weight=weights
            )
            for t in (1e-7, 1e-10)
        ],
    }
    for name, (usual, strict) in fits.items():
        assert usual.trace_.objective[-1] == pytest.approx(strict.trace_.objective[-1], abs=1e-3), name


def test_scaling_all_weights_of_matchings_and_networks_scales_the_tolerance(rng):
    X = [rng.standard_normal((1, 3, 3)) for _ in range(8)]
    y = [np.arange(3)] * 8
    for factor in (1e-3, 1e3):
        fit = MatchingCRF(l2=factor).fit(X, y, sample_weight=np.full(8, factor))
        plain = MatchingCRF(l2=1.0).fit(X, y)
        np.testing.assert_allclose(fit.parameters_, plain.parameters_, rtol=1e-3)
        assert fit.status_ is plain.status_ is Status.CONVERGED
    rows = (rng.random((50, 2)) < 0.4).astype(int)
    network = BayesianNetwork([(0, 1)]).fit(rows, sample_weight=np.full(50, 4.0))
    assert network.status_.ok
