"""Gibbs sampling: the right shares, the same draws at any number of threads."""

from __future__ import annotations

import numpy as np
import pytest

from partita import Status
from partita.graph.engines.gibbs import colour_order
from partita.graph.engines.layout import layout
from partita.inference import gibbs, gibbs_states
from partita.structures import FactorGraph


def test_shares_are_right(rng):
    graph = FactorGraph([2, 3, 2, 3, 1, 2], [(0, 1), (1, 2, 3), (3, 4), (3, 0), (5,), (2, 5), ()])
    potentials = rng.standard_normal((2, graph.size))
    potentials[0, 1] = -np.inf
    exact = graph.infer(potentials)
    result = gibbs(graph, potentials, n_samples=20_000, n_chains=4, random_state=0)
    assert result.status is Status.SAMPLED
    assert np.isnan(result.log_z).all()
    # neighbouring draws are correlated: allow for ten times fewer independent ones
    assert np.abs(result.marginals - exact.marginals).max() < 4.0 * np.sqrt(0.25 / 8_000)
    assert result.marginals[0, 1] == 0.0


def test_same_draws_at_any_number_of_threads(rng):
    graphs = [FactorGraph.grid(6, 6, 3, n_jobs=jobs) for jobs in (1, 2)]
    potentials = rng.standard_normal((2, graphs[0].size))
    a, b = (gibbs(graph, potentials, n_samples=50, random_state=3).marginals for graph in graphs)
    np.testing.assert_array_equal(a, b)
    assert np.any(a != gibbs(graphs[0], potentials, n_samples=50, random_state=4).marginals)


def test_last_states_of_many_chains(rng):
    graph = FactorGraph.grid(2, 2)
    potentials = rng.standard_normal(graph.size)
    y = gibbs_states(graph, potentials, n_chains=4000, burn_in=50, random_state=0)
    assert y.shape == (1, 4000, 4)
    expected = [p[1] for p in graph.variable_marginals(graph.infer(potentials).marginals)]
    assert np.abs(y[0].mean(0) - expected).max() < 4.0 * np.sqrt(0.25 / 4000)


def test_neighbours_have_different_colours():
    graph = FactorGraph.grid(5, 6)
    order = colour_order(layout(graph))
    assert sorted(order.tolist()) == list(range(30))
    parity = (order // 6 + order % 6) % 2
    assert np.abs(np.diff(parity)).sum() == 1  # two colours: one change on the way


def test_impossible_models_are_refused():
    graph = FactorGraph.complete(4, 3)
    tables = [np.zeros(3)] * 4 + [np.where(np.eye(3, dtype=bool), -np.inf, 0.0)] * 6
    with pytest.raises(ValueError, match="no configuration"):
        gibbs(graph, graph.potentials(tables))


def test_impossible_constants_are_refused_as_by_other_engines():
    graph = FactorGraph([1, 2], [(0,), (1,)])
    for engine in ("gibbs", "bp", "mean_field", "exact"):
        with pytest.raises(ValueError, match="forbid every configuration"):
            graph.infer([-np.inf, 0.0, 0.0], engine=engine)
