"""Quadratics above log Z of factor graphs: they touch, lie above everywhere tried, and are compared in tightness."""

from __future__ import annotations

import numpy as np
import pytest

from partita.bounds import graph_bound
from partita.structures import FactorGraph


def problem(rng, d=3):
    n = int(rng.integers(1, 6))
    cardinalities = rng.integers(1, 4, n)
    scopes = [tuple(rng.choice(n, min(n, int(rng.integers(0, 4))), replace=False).tolist()) for _ in range(5)]
    graph = FactorGraph(cardinalities, scopes)
    features = rng.standard_normal((graph.size, d)) * 10.0 ** rng.uniform(-1.0, 0.5)
    base = np.where(rng.random(graph.size) < 0.1, -np.inf, rng.standard_normal(graph.size))
    return graph, features, base


@pytest.mark.parametrize("options", [{}, {"upper": "positive"}, {"recursion": "printed"}, {"rank": 2}, {"bound": "bohning"}])
def test_the_bound_touches_and_lies_above(options, rng):
    tried = 0
    while tried < 60:
        graph, features, base = problem(rng)
        theta = rng.standard_normal(3)
        try:
            log_z = graph.log_partition(base + features @ theta)[0]
        except ValueError:
            continue
        tried += 1
        found = graph_bound(graph, features, theta, base=base, **options)
        assert found.value(theta) == pytest.approx(log_z, rel=1e-10, abs=1e-10)
        marginals = graph.infer(base + features @ theta).marginals
        gradient = found.mean if hasattr(found, "mean") else found.gradient0
        np.testing.assert_allclose(gradient, features.T @ marginals, rtol=1e-8, atol=1e-8)
        for _ in range(10):
            other = theta + rng.standard_normal(3) * 10.0 ** rng.uniform(-2.0, 1.5)
            value = graph.log_partition(base + features @ other)[0]
            assert found.value(other) >= value - 1e-9 * (1.0 + abs(value))


def test_shared_curvature_does_not_grow_with_depth(rng):
    ratios = {}
    for length in (4, 16):
        graph = FactorGraph([2] * length, [(t, t + 1) for t in range(length - 1)])
        features = rng.standard_normal((graph.size, 4))
        shared = np.trace(graph_bound(graph, features, np.zeros(4), upper="positive").matrix())
        printed = np.trace(graph_bound(graph, features, np.zeros(4), recursion="printed").matrix())
        ratios[length] = printed / shared
    assert ratios[4] > 1.0
    assert ratios[16] > 50.0 * ratios[4]


def test_bad_arguments():
    graph = FactorGraph.grid(2, 2)
    with pytest.raises(ValueError, match="features must have shape"):
        graph_bound(graph, np.zeros((3, 2)), np.zeros(2))
    with pytest.raises(ValueError, match="rank needs recursion='shared'"):
        graph_bound(graph, np.zeros((graph.size, 2)), np.zeros(2), recursion="printed", rank=1)
    with pytest.raises(ValueError, match="one example"):
        graph_bound(FactorGraph.union([graph, graph]), np.zeros((2 * graph.size, 2)), np.zeros(2))
