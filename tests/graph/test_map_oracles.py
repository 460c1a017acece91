"""Solvers for best configurations against enumeration, each other, and their own promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partita.graph.oracles.max_flow import MaxFlowOracle
from partita.graph.oracles.polytopes import JunctionTreeOracle, LinearProgramOracle
from partita.graph.structure.tables import indicator
from partita.inference.oracle import UserOracle
from partita.structures import BipartiteMatching, FactorGraph, Matching


def solvers():
    try:
        import ortools.graph.python.max_flow  # noqa: F401
    except ImportError:
        return ["scipy"]
    return ["scipy", "ortools"]


def binary(rng, n=6, edges=9, attract=False):
    pairs = rng.permutation(list(itertools.combinations(range(n), 2)))[:edges]
    graph = FactorGraph([2] * n, [(v,) for v in range(n)] + [tuple(p) for p in pairs.tolist()])
    u = rng.standard_normal(graph.size)
    if attract:
        tables = u[2 * n :].reshape(-1, 4)
        tables[:, [0, 3]] = np.abs(tables[:, [0, 3]])
        tables[:, [1, 2]] = -np.abs(tables[:, [1, 2]])
    return graph, u


def is_local(graph, point):
    """Tables sum to one and agree on every variable."""
    tables = graph.tables(point)
    found = {}
    for scope, table in zip(graph.factors, tables, strict=True):
        np.testing.assert_allclose(table.sum(), 1.0, atol=1e-9)
        assert table.min() >= -1e-9
        for axis, v in enumerate(scope):
            p = table.sum(axis=tuple(a for a in range(len(scope)) if a != axis))
            np.testing.assert_allclose(found.setdefault(v, p), p, atol=1e-9)


@pytest.mark.parametrize("solver", solvers())
@pytest.mark.parametrize("seed", range(15))
def test_flows_solve_the_local_program(seed, solver):
    rng = np.random.default_rng(seed)
    graph, u = binary(rng, attract=seed % 3 == 0)
    flow, program, tree = MaxFlowOracle(graph, solver)(u), LinearProgramOracle(graph)(u), JunctionTreeOracle(graph)(u)
    is_local(graph, flow.point)
    is_local(graph, program.point)
    assert flow.value == pytest.approx(program.value, abs=1e-6)
    assert program.value - flow.value <= flow.delta + 1e-9
    assert tree.value <= flow.value + 1e-6
    assert set(np.unique(flow.point[: 2 * graph.n_variables])) <= {0.0, 0.5, 1.0}
    if seed % 3 == 0:  # nothing is frustrated
        assert flow.value == pytest.approx(tree.value, abs=1e-6)
        np.testing.assert_array_equal(flow.point, tree.point)


@pytest.mark.parametrize("solver", solvers())
@pytest.mark.parametrize("sign", [-1.0, 1.0])
def test_flows_where_all_want_the_same(rng, solver, sign):
    """Nothing leads to one of the two ends then."""
    graph, u = binary(rng, attract=True)
    u[:12] = np.ravel(np.column_stack([np.zeros(6), np.full(6, 50.0 * sign)]))
    answer = MaxFlowOracle(graph, solver)(u)
    np.testing.assert_array_equal(answer.point[1:12:2], float(sign > 0.0))
    assert answer.value == pytest.approx(graph.argmax(u, "exact")[1][0])


@pytest.mark.parametrize("attract", [False, True])
def test_decoding_by_flows(rng, attract):
    """What flows decide is right, and so is what they leave open where that is small."""
    pairs = [binary(rng, attract=attract) for _ in range(12)]
    for _, u in pairs:
        u[:12] *= 0.1
    union, u = FactorGraph.union([graph for graph, _ in pairs]), np.concatenate([u for _, u in pairs])
    y, value = union.argmax(np.vstack([u, -u]), "max_flow")
    np.testing.assert_allclose(value, union.score(np.vstack([u, -u]), y))
    np.testing.assert_allclose(value, union.argmax(np.vstack([u, -u]), "exact")[1])
    shares = [MaxFlowOracle(graph).shares(-u) for graph, u in pairs]
    assert any((share == 0.5).any() for share in shares)
    assert union.decoder(u) == "max_flow"
    assert union.decoder(np.where(np.arange(union.size) == 0, -np.inf, u)) == "bp"
    with pytest.raises(ValueError, match="two states"):
        FactorGraph([3, 2], [(0, 1)]).argmax(np.zeros(6), "max_flow")


def test_trees_are_best_of_all(rng):
    graph, u = binary(rng)
    states = graph.enumerate()
    scores = graph.score(u, states)
    answer = JunctionTreeOracle(graph)(u)
    assert answer.value == pytest.approx(scores.max())
    np.testing.assert_array_equal(answer.point, indicator(graph, states[scores.argmax()]))


def test_any_function_is_a_solver(rng):
    s = BipartiteMatching(4)
    W = rng.standard_normal((4, 4))
    oracle = UserOracle(lambda w: s.argmax(w.reshape(4, 4))[0], lambda y: s.indicators(y)[0])
    assert oracle(W.ravel()).value == pytest.approx(s.argmax(W)[1][0])
    wrong = UserOracle(lambda w: [0, 0, 1, 2], lambda y: s.indicators(y)[0])
    with pytest.raises(ValueError, match="permutation"):
        wrong(W.ravel())
    with pytest.raises(ValueError, match="shape"):
        UserOracle(lambda w: 0, lambda y: np.zeros(3))(W.ravel())


@pytest.mark.parametrize("seed", range(3))
def test_sparse_matchings_are_the_dense_ones(seed, monkeypatch):
    """Few edges to begin with must not change the answer."""
    from partita.matching.oracles import general_matching

    rng = np.random.default_rng(seed)
    W = rng.standard_normal((24, 24)) if seed else rng.integers(0, 4, (24, 24)).astype(float)
    W = W + W.T
    s = Matching(24)
    dense = s.argmax(W)[1][0]
    monkeypatch.setattr(general_matching, "FEW", 10)
    for kept in (2, 3, 8):
        partners = general_matching.general_matchings(s, s.weights(W), kept=kept)
        assert s.score(W, partners)[0] == pytest.approx(dense, abs=1e-9)


def test_bad_graphs_are_refused():
    with pytest.raises(ValueError, match="two states"):
        MaxFlowOracle(FactorGraph([3], [(0,)]))
    with pytest.raises(ValueError, match="finite"):
        MaxFlowOracle(FactorGraph([2], [(0,)]))(np.array([0.0, -np.inf]))


@pytest.mark.parametrize("solver", solvers())
def test_flows_with_many_factors_of_one_pair(solver):
    """Whose capacities add up to more than any of them."""
    graph = FactorGraph([2, 2], [(0,)] + [(0, 1)] * 4)
    u = np.array([0, -7, -2, -2, 6, -3, -1, -1, -2, -4, 1, 4, 2, -4, -5, 0, -3, -3.0])
    assert MaxFlowOracle(graph, solver)(u).value == pytest.approx(graph.argmax(u, "exact")[1][0], abs=1e-5)
    rng = np.random.default_rng(0)
    for _ in range(50):
        pairs = [(0, 1)] * int(rng.integers(2, 5)) + [(1, 0), (1, 2)]
        graph = FactorGraph([2, 2, 2], [(0,), (1,), (2,), *pairs])
        u = np.rint(4.0 * rng.standard_normal(graph.size))
        both = [o(u).value for o in (MaxFlowOracle(graph, solver), LinearProgramOracle(graph))]
        assert both[0] >= both[1] - 1e-5
    with pytest.raises(ValueError, match=r"at most 1e\+100"):
        MaxFlowOracle(FactorGraph([2, 2], [(0, 1)]), solver)(np.array([1e308, -1e308, -1e308, 1e308]))
