"""Objects that are drawn anew in every pass: unbiased, and as cheap as their probability says."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
import zoo

from partita import SGD, ChainCRF, CompositeLikelihood, GraphCRF, MarkovNetwork, StochasticBound
from partita.chain.features.chain import ChainFeatures
from partita.graph.objective.composite import GraphComposite
from partita.objectives import ChainComposite
from partita.objectives.composite.draws import DrawnBatches
from partita.objectives.information import dense_hessian

SOME = CompositeLikelihood({1: 0.5, 2: 0.2}, weights={1: 1.0, 2: 0.7})
ONE = CompositeLikelihood({1: 0.6, 2: 0.4}, policy="multinomial")


def rows_of_one_graph(composite):
    features = MarkovNetwork.ising([(0, 1), (1, 2), (2, 3)]).feature_map()
    states = np.random.default_rng(0).integers(0, 2, (12, 4))
    return GraphComposite(features, states, composite, weights=1.0 + np.arange(12) % 2)


def union_of_graphs(composite):
    objective = GraphCRF(l2=0.0, fit_intercept=False, likelihood=composite).fit(zoo.GRAPHS, zoo.NODES)._point.objective
    return GraphComposite(objective.features, objective.states, composite, weights=1.0 + np.arange(objective.n_examples) % 2)


def chains(composite):
    rng = np.random.default_rng(0)
    offsets = np.concatenate(([0], np.cumsum(rng.integers(1, 6, 12))))
    n, pairs = int(offsets[-1]), np.argwhere(np.ones((4, 2)))
    X = (rng.random((n, 4)) < 0.5) * rng.normal(size=(n, 4))
    transitions = np.argwhere(np.ones((2, 2)))
    features = ChainFeatures(sp.csr_matrix(X), offsets, 2, pairs[:, 0], pairs[:, 1], transitions)
    return ChainComposite(features, rng.integers(0, 2, n), composite, weights=1.0 + np.arange(12) % 2)


CASES = [rows_of_one_graph, union_of_graphs, chains]


@pytest.mark.parametrize("composite", [SOME, ONE])
@pytest.mark.parametrize("make", CASES)
def test_parts_are_the_sum_and_draws_are_unbiased(make, composite):
    objective = make(composite)
    n, rng = objective.n_examples, np.random.default_rng(1)
    theta = 0.5 * rng.normal(size=objective.size)
    point = objective.at(theta)
    gradient = point.gradient - objective.penalty * theta
    value = point.value - 0.5 * float(objective.penalty @ theta**2)
    parts = [objective.drawn_part(np.sort(rows)) for rows in np.array_split(rng.permutation(n), 3)]
    expected = [part.evaluate(theta, None) for part in parts]
    assert sum(v for v, _ in expected) == pytest.approx(value, rel=1e-10)
    np.testing.assert_allclose(sum(g for _, g in expected), gradient, rtol=1e-8, atol=1e-9)
    assert objective.masses.sum() == pytest.approx(objective.scale, rel=1e-10)  # no row is held down here
    diagonals, products = zip(*(part.curvature(theta) for part in parts), strict=True)
    H = dense_hessian(point.hessian_product(), objective.size) - np.diag(objective.penalty)
    np.testing.assert_allclose(sum(dense_hessian(p, objective.size) for p in products), H, rtol=1e-7, atol=1e-9)
    assert all((d >= 0.0).all() for d in diagonals)
    draws = [np.append(g, v) for v, g in (parts[0].evaluate(theta, rng) for _ in range(400))]
    mean, error = np.mean(draws, axis=0), np.std(draws, axis=0) / np.sqrt(400)
    assert (np.abs(mean - np.append(expected[0][1], expected[0][0])) <= 4.5 * error + 1e-9).all()
    assert error.max() > 0.0


@pytest.mark.parametrize("make", CASES)
def test_a_pass_computes_what_it_draws(make, monkeypatch):
    """Items of graphs, windows of chains: a tenth of them, for probabilities of a tenth."""
    rare, whole = make(CompositeLikelihood({1: 0.1})), make(CompositeLikelihood({1: 1.0}))
    assert isinstance(rare.batches(0), DrawnBatches)
    assert not isinstance(whole.batches(0), DrawnBatches)
    part, rng = rare.drawn_part(np.arange(rare.n_examples)), np.random.default_rng(0)
    theta, counts = np.zeros(rare.size), []
    for _ in range(100):
        if make is chains:
            found = part._sums(theta, rng)
            counts.append(0 if found is None else len(found[1]))
        else:
            counts.append(part.sets.with_shares(part._shares(rng)).n_items)
    every = len(whole.windows) if make is chains else whole.sets.n_items
    share = np.mean(counts) / every
    # Rows of one graph that agree around a variable are one item, which is drawn if any of them is.
    assert 0.08 < share < (0.45 if make is rows_of_one_graph else 0.12)


@pytest.mark.filterwarnings("ignore::partita.ConvergenceWarning")  # steps that noise has the last word in
@pytest.mark.parametrize("solver", [SGD(batch_size=20, method="averaged"), StochasticBound(batch_size=20, step="4/t")])
def test_what_is_drawn_anew_leads_to_the_weighted_optimum(solver):
    rng = np.random.default_rng(0)
    net = MarkovNetwork.boltzmann(4)
    features = net.feature_map()
    rows = features.graph.sample(features.forward(rng.normal(size=6)), 600, rng)
    half = CompositeLikelihood({1: 0.5, 2: 0.25})
    exact = MarkovNetwork.boltzmann(4, l2=1.0, likelihood=half).fit(rows)
    drawn = MarkovNetwork.boltzmann(4, l2=1.0, likelihood=half, solver=solver, max_iter=60).fit(rows)
    start = exact._point.objective.at(np.zeros(6)).value
    best, found = exact.trace_.objective[-1], exact._point.objective.at(drawn.parameters_).value
    assert found - best < 0.01 * (start - best)
    chain = ChainCRF(l2=1.0, likelihood=half, solver=solver, max_iter=60).fit(zoo.ATTRIBUTES, zoo.TAGS)
    assert np.isfinite(chain.parameters_).all()
