"""Shares of best configurations under noise: what they promise, and what they do not."""

from __future__ import annotations

import numpy as np
import pytest

from partita.graph.oracles.max_flow import MaxFlowOracle
from partita.graph.oracles.polytopes import JunctionTreeOracle
from partita.structures import BipartiteMatching, FactorGraph, Matching


def test_one_variable_is_drawn_exactly(rng):
    graph = FactorGraph([4], [(0,)])
    u = rng.standard_normal(4)
    exact, found = graph.infer(u), graph.infer(u, "perturb_and_map", n_samples=20_000, random_state=0)
    np.testing.assert_allclose(found.marginals, exact.marginals, atol=0.015)
    np.testing.assert_allclose(found.log_z, exact.log_z, atol=0.04)
    assert not found.exact
    assert found.status.ok
    assert found.lower <= exact.log_z <= found.upper  # what tables alone say: a mean of draws bounds nothing


def test_independent_variables_without_factors_of_their_own(rng):
    """Noise goes into the first table that has the variable; a variable in no table counts its states."""
    graph = FactorGraph([2, 3, 2], [(0, 1), ()])
    a, b = rng.standard_normal(2), rng.standard_normal(3)
    u = np.append((a[:, None] + b).ravel(), 0.7)
    exact, found = graph.infer(u), graph.infer(u, "perturb_and_map", n_samples=20_000, random_state=1)
    np.testing.assert_allclose(found.marginals, exact.marginals, atol=0.015)
    np.testing.assert_allclose(found.log_z, exact.log_z, atol=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_mean_of_the_largest_is_above_log_z(seed):
    rng = np.random.default_rng(seed)
    graph = FactorGraph.grid(3, 3)
    u = rng.standard_normal(graph.size)
    s, W = BipartiteMatching(5), 2.0 * rng.standard_normal((5, 5))
    cases = [(graph, u), (s, W)]
    pytest.importorskip("rustworkx")
    for perfect in (True, False):
        cases.append((Matching(6, perfect=perfect), rng.standard_normal(15)))
    for structure, potentials in cases:
        found = structure.infer(potentials, "perturb_and_map", n_samples=3000, random_state=seed)
        exact = structure.infer(potentials, "exact")
        assert found.log_z[0] > exact.log_z[0] - 0.1  # three standard errors
        assert np.abs(found.marginals - exact.marginals).max() < 0.2


def test_matchings_stay_alone_as_they_should(rng):
    """One edge, or none, is one draw of two."""
    pytest.importorskip("rustworkx")
    s = Matching([(0, 1)], perfect=False)
    for w in (-1.0, 0.5):
        found = s.infer([w], "perturb_and_map", n_samples=4000, random_state=2)
        # Two vertices alone have two variables, the edge one: not an exact draw, but above log Z.
        assert found.log_z[0] > np.logaddexp(0.0, w) - 0.05
        assert 0.0 < found.marginals[0] < 1.0


@pytest.mark.parametrize(("beta", "error"), [(0.25, 0.008), (10.0, 0.153)])
def test_errors_of_the_specification(beta, error):
    """Ten rows, ten thousand draws: small errors for weak weights, large ones for strong."""
    errors = []
    for seed in range(4):
        s, W = BipartiteMatching(10), beta * np.random.default_rng(seed).standard_normal((10, 10))
        found = s.infer(W, "perturb_and_map", n_samples=10_000, random_state=seed)
        errors.append(np.abs(found.marginals - s.infer(W, "exact").marginals).max())
    assert 0.4 * error < np.mean(errors) < 2.0 * error


def test_threads_and_pieces_change_nothing(rng, monkeypatch):
    from partita.inference import perturb_and_map as module

    W = rng.standard_normal((8, 8))
    u = rng.standard_normal(FactorGraph.grid(4, 4).size)

    def answers(jobs):
        yield BipartiteMatching(8, n_jobs=jobs).infer(W, "perturb_and_map", n_samples=300, random_state=5)
        yield FactorGraph.grid(4, 4, n_jobs=jobs).infer(u, "perturb_and_map", n_samples=300, random_state=5)

    one, two = list(answers(1)), list(answers(2))
    monkeypatch.setattr(module, "_HELD", 700)
    for a, b, c in zip(one, two, answers(2), strict=True):
        np.testing.assert_array_equal(a.marginals, b.marginals)
        np.testing.assert_array_equal(a.log_z, b.log_z)
        np.testing.assert_array_equal(a.marginals, c.marginals)
        np.testing.assert_allclose(a.log_z, c.log_z, rtol=1e-12)


def test_any_oracle_serves(rng):
    graph = FactorGraph.grid(3, 3)
    u = rng.standard_normal(graph.size)
    u[18:] = np.tile([0.5, 0.0, 0.0, 0.5], 12)
    tree = graph.infer(u, "perturb_and_map", n_samples=200, random_state=3, oracle=JunctionTreeOracle(graph))
    flow = graph.infer(u, "perturb_and_map", n_samples=200, random_state=3, oracle=MaxFlowOracle(graph, "scipy"))
    plain = graph.infer(u, "perturb_and_map", n_samples=200, random_state=3)
    for other in (tree, flow):
        np.testing.assert_allclose(other.marginals, plain.marginals, atol=1e-12)
        np.testing.assert_allclose(other.log_z, plain.log_z, atol=1e-6)


def test_unions_rows_and_unknown_sums(rng):
    one, two = FactorGraph.grid(2, 2), FactorGraph.grid(1, 3)
    graph = FactorGraph.union([one, two])
    u = 0.2 * rng.standard_normal((2, graph.size))
    found = graph.infer(u, "perturb_and_map", n_samples=2000, random_state=0)
    exact = graph.infer(u, "exact")
    assert found.marginals.shape == u.shape
    np.testing.assert_allclose(found.marginals, exact.marginals, atol=0.06)
    assert (found.log_z > exact.log_z - 0.1).all()
    assert (found.log_z < exact.log_z + 0.3).all()
    by_messages = graph.infer(u, "perturb_and_map", n_samples=50, random_state=0, decoder="bp")
    assert np.isnan(by_messages.log_z).all()
    with pytest.raises(ValueError, match="union"):
        graph.infer(u, "perturb_and_map", oracle=JunctionTreeOracle(graph))
    with pytest.raises(ValueError, match="n_samples"):
        one.infer(np.zeros(one.size), "perturb_and_map", n_samples=0)
