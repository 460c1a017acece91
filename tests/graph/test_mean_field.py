"""Mean field: a lower bound that rises, also where tables forbid."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.engines.layout import layout
from partita.graph.engines.mean_field import configuration
from partita.inference import mean_field
from partita.structures import FactorGraph


def test_independent_variables_are_exact(rng):
    graph = FactorGraph([2, 3, 1, 4], [(0,), (1,), (2,), (), (1,)])
    potentials = rng.standard_normal((3, graph.size))
    result, exact = mean_field(graph, potentials), graph.infer(potentials)
    np.testing.assert_allclose(result.log_z, exact.log_z, atol=1e-12)
    np.testing.assert_allclose(result.marginals, exact.marginals, atol=1e-12)


def test_a_stationary_point_of_the_bound(rng):
    graph = FactorGraph([2, 3, 2, 2], [(0, 1, 2), (2, 3), (3, 0), (1,)])
    potentials = rng.standard_normal((1, graph.size))
    result = mean_field(graph, potentials, tol=1e-12, max_iter=5000)
    q = graph.variable_marginals(result.marginals[0])
    for v in range(4):
        score = np.zeros(graph.cardinalities[v])
        for scope, table in zip(graph.factors, graph.tables(potentials[0]), strict=True):
            if v in scope:
                weight = table
                for axis in range(len(scope)):
                    if scope[axis] != v:
                        shape = [1] * len(scope)
                        shape[axis] = -1
                        weight = weight * q[scope[axis]].reshape(shape)
                score += weight.sum(axis=tuple(a for a in range(len(scope)) if scope[a] != v))
        np.testing.assert_allclose(q[v], np.exp(score) / np.exp(score).sum(), atol=1e-8)


def test_more_starts_are_never_worse(rng):
    graph = FactorGraph.union([FactorGraph.complete(8), FactorGraph.grid(3, 3)])
    potentials = 3.0 * rng.standard_normal((2, graph.size))
    values = [mean_field(graph, potentials, n_starts=k).lower for k in (1, 5, 20)]
    assert np.all(values[1] >= values[0])
    assert np.all(values[2] >= values[1])
    assert np.any(values[2] > values[0])
    assert np.all(values[2] <= graph.log_partition(potentials))


def test_forbidden_entries_leave_a_finite_bound():
    """A permutation of four: tables forbid equal neighbours everywhere, so that most products of supports are forbidden."""
    graph = FactorGraph.complete(4, 4)
    tables = [np.zeros(4)] * 4 + [np.where(np.eye(4, dtype=bool), -np.inf, 0.0)] * 6
    result = mean_field(graph, graph.potentials(tables))
    assert 0.0 <= result.lower[0] <= np.log(24.0)


def test_impossible_models_are_refused():
    graph = FactorGraph([2, 2], [(0, 1), (0,), (1,)])
    tables = [np.array([[0.0, -np.inf], [-np.inf, 0.0]]), np.array([0.0, -np.inf]), np.array([-np.inf, 0.0])]
    with pytest.raises(ValueError, match="forbid every configuration"):
        mean_field(graph, graph.potentials(tables))
    # three states cannot be given to four variables that all differ: no single table says so
    graph = FactorGraph.complete(4, 3)
    tables = [np.zeros(3)] * 4 + [np.where(np.eye(3, dtype=bool), -np.inf, 0.0)] * 6
    found = mean_field(graph, graph.potentials(tables))
    assert found.lower[0] == -np.inf
    assert np.isnan(found.log_z[0])
    assert not found.knows_log_z


@pytest.mark.parametrize("seed", range(60))
def test_search_finds_what_is_allowed(seed):
    rng = np.random.default_rng(seed)
    graph = FactorGraph([3] * 6, [tuple(rng.choice(6, rng.integers(2, 4), replace=False).tolist()) for _ in range(9)])
    potentials = np.where(rng.random((1, graph.size)) < 0.5, -np.inf, 0.0)
    states = graph.enumerate()
    possible = bool((graph.score(potentials[0], states) > -np.inf).any())
    inner = layout(graph)
    scores, tables = inner.scores(potentials)
    if not inner.prune(scores, tables):
        assert not possible
        return
    y = configuration(inner, scores[0], tables[0], rng.random(inner.n_states))
    assert (y is not None) == possible
    if y is not None:
        assert graph.score(potentials[0], y)[0] == 0.0
