"""Products with the covariance of entries against enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.structure import junction_layout
from partita.graph.structure.covariance import EntryCovariance
from partita.structures import FactorGraph


@pytest.mark.parametrize("block", [1024, 2])
@pytest.mark.parametrize("seed", range(8))
def test_products_against_enumeration(seed, block, monkeypatch):
    monkeypatch.setattr(junction_layout, "BLOCK", block)
    rng = np.random.default_rng(seed)
    n = int(rng.integers(1, 6))
    counts = rng.integers(1, 4, n)
    scopes = [tuple(rng.choice(n, min(n, int(rng.integers(0, 4))), replace=False).tolist()) for _ in range(5)]
    graph = FactorGraph(counts, scopes)
    potentials = rng.standard_normal(graph.size)
    if seed % 2:
        forbidden = np.flatnonzero(np.diff(graph.offsets) > 1)
        if len(forbidden):
            potentials[graph.offsets[forbidden[0]]] = -np.inf
    states = graph.enumerate()
    entries = np.zeros((len(states), graph.size))
    for k, scope in enumerate(scopes):
        shape = tuple(counts[list(scope)])
        place = np.ravel_multi_index(tuple(states[:, v] for v in scope), shape) if scope else np.zeros(len(states), int)
        entries[np.arange(len(states)), graph.offsets[k] + place] = 1.0
    p = np.exp(graph.score(potentials, states))
    p /= p.sum()
    centred = entries - p @ entries
    v = rng.standard_normal(graph.size)
    found = EntryCovariance(graph, potentials).product(v)
    np.testing.assert_allclose(found, (p[:, None] * centred).T @ (centred @ v), atol=1e-12)


def test_a_shared_message_against_differences(rng):
    graph = FactorGraph([2] * 7, [(v, 5, 6) for v in range(5)])  # five cliques send to (5, 6)
    potentials, v = rng.standard_normal(graph.size), rng.standard_normal(graph.size)
    moved = [graph.infer(potentials + step * v).marginals for step in (1e-5, -1e-5)]
    np.testing.assert_allclose(EntryCovariance(graph, potentials).product(v), (moved[0] - moved[1]) / 2e-5, atol=1e-9)


def test_threads_do_not_matter(rng):
    graphs = [FactorGraph.grid(4, 5, 3, n_jobs=jobs) for jobs in (1, 2)]
    found = []
    for graph in graphs:
        union = FactorGraph.union([graph] * 30, n_jobs=graph.n_jobs)
        r = np.random.default_rng(3)
        found.append(EntryCovariance(union, r.standard_normal(union.size)).product(r.standard_normal(union.size)))
    np.testing.assert_array_equal(*found)
