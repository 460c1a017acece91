"""Best sets of edges with given degrees, against enumeration and other people's software."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import choices

from partita.core import Workers
from partita.matching.oracles.assignment import AssignmentOracle, assignments
from partita.matching.oracles.b_matching import BMatchingOracle


def enumerated(edges, w, b, perfect):
    """The largest weight of a set of edges with these degrees; None if there is none."""
    sets = choices([2] * len(edges)).astype(float)
    degrees = np.zeros((len(sets), len(b)))
    for e, ends in enumerate(edges):
        for v in ends:
            degrees[:, v] += sets[:, e]
    fits = (degrees == b if perfect else degrees <= b).all(1) & ~((sets > 0.0) & np.isneginf(w)).any(1)
    return (sets[fits] @ np.where(np.isfinite(w), w, 0.0)).max() if fits.any() else None


@pytest.mark.parametrize("perfect", [True, False])
@pytest.mark.parametrize("bipartite", [True, False])
def test_best_of_all_sets(bipartite, perfect):
    pytest.importorskip("rustworkx")
    rng = np.random.default_rng(10 * bipartite + perfect)
    found = 0
    for trial in range(60):
        pairs = list(itertools.product(range(3), range(3, 6)) if bipartite else itertools.combinations(range(6), 2))
        edges = rng.permutation(pairs)[: rng.integers(6, 11)]
        w = rng.standard_normal(len(edges)) if trial % 2 else rng.integers(-2, 4, len(edges)).astype(float)
        w[rng.random(len(w)) < 0.1] = -np.inf
        b = rng.integers(0, 4, 6)
        if perfect and trial % 4:  # the degrees of some set
            b = np.bincount(edges[rng.random(len(edges)) < 0.5].ravel(), minlength=6)
        best = enumerated(edges, w, b, perfect)
        if best is None:
            with pytest.raises(ValueError, match=r"no perfect b-matching|even sum"):
                BMatchingOracle(edges, b, perfect)(w)
            continue
        found += 1
        answer = BMatchingOracle(edges, b, perfect)(w)
        assert answer.value == pytest.approx(best, abs=1e-9)
        assert best - answer.value <= answer.delta + 1e-12
        assert answer.delta < 1e-6
        assert set(np.unique(answer.point)) <= {0.0, 1.0}
    assert found > 20


def test_odd_cycles_need_more_than_the_linear_program(monkeypatch):
    """Two triangles joined by an edge: the program takes halves of the triangles."""
    pytest.importorskip("rustworkx")
    edges = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 3), (0, 3)]
    w = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 1.0, -5.0])
    called = []
    tutte = BMatchingOracle._tutte
    monkeypatch.setattr(BMatchingOracle, "_tutte", lambda self, *args: (called.append(1), tutte(self, *args))[1])
    assert BMatchingOracle(edges, 1)(w).value == -3.0
    assert BMatchingOracle(edges, 1, perfect=False)(w).value == 2.0
    assert len(called) == 2


def test_one_edge_each_is_a_matching(rng):
    nx = pytest.importorskip("networkx")
    pytest.importorskip("rustworkx")
    edges = np.array(list(itertools.combinations(range(14), 2)))
    w = rng.standard_normal(len(edges))
    graph = nx.Graph()
    graph.add_weighted_edges_from((i, j, x) for (i, j), x in zip(edges.tolist(), w.tolist(), strict=True))
    for perfect in (True, False):
        pairs = nx.max_weight_matching(graph, maxcardinality=perfect)
        value = sum(graph[i][j]["weight"] for i, j in pairs)
        assert BMatchingOracle(edges, 1, perfect)(w).value == pytest.approx(value, abs=1e-9)


def test_bipartite_graphs_of_some_size_and_tiny_weights(rng):
    from scipy.optimize import linear_sum_assignment

    n = 40
    edges = [(i, n + j) for i in range(n) for j in range(n)]
    W = rng.standard_normal((n, n))
    rows, columns = linear_sum_assignment(W, maximize=True)
    for size in (1.0, 1e-12, 1e12):
        answer = BMatchingOracle(edges, 1)(size * W.ravel())
        assert answer.value == pytest.approx(size * W[rows, columns].sum(), rel=1e-9)
    everything = BMatchingOracle(edges, n)(W.ravel())
    np.testing.assert_array_equal(everything.point, 1.0)


def test_bad_degrees_and_weights_are_refused():
    edges = [(0, 1), (1, 2)]
    for b, text in ((-1, "negative"), ([1, 1, 1], "even sum"), ([1, 1], "3 of them"), (0.5, "integer")):
        with pytest.raises(ValueError, match=text):
            BMatchingOracle(edges, b)
    with pytest.raises(ValueError, match="itself"):
        BMatchingOracle([(1, 1)], 1)
    with pytest.raises(ValueError, match="pairs of vertices"):
        BMatchingOracle([(0.5, 1)], 1)
    oracle = BMatchingOracle(edges, [1, 2, 1])
    assert oracle(np.zeros(2)).point.sum() == 2.0
    for w, text in (
        ([0.0], "2 weights"),
        ([0.0, np.nan], "NaN"),
        ([np.inf, 0.0], r"\+inf"),
        ([0.0, -np.inf], "too few edges"),
    ):
        with pytest.raises(ValueError, match=text):
            oracle(np.array(w))
    with pytest.raises(ValueError, match="vertex 3 has too few"):
        BMatchingOracle(edges, [1, 2, 1, 2])(np.zeros(2))
    nothing = BMatchingOracle(edges, 1, perfect=False)(np.array([-1.0, -np.inf]))
    assert nothing.value == nothing.point.sum() == 0.0


@pytest.mark.parametrize("solver", ["scipy", "lapx"])
def test_assignments_by_name(solver, rng):
    from scipy.optimize import linear_sum_assignment

    if solver == "lapx":
        pytest.importorskip("lap")
    for kind in range(3):
        W = rng.integers(0, 3, (4, 30, 30)).astype(float) if kind == 0 else rng.standard_normal((4, 30, 30)) * 1e3**kind
        W[rng.random(W.shape) < 0.5] = -np.inf
        W[:, np.arange(30), np.arange(30)] = 0.0
        columns = assignments(W, Workers(2), solver)
        for one, y in zip(W, columns, strict=True):
            best = one[linear_sum_assignment(one, maximize=True)].sum()
            assert one[np.arange(30), y].sum() == pytest.approx(best, rel=1e-12)
            assert AssignmentOracle(30, solver)(one.ravel()).value == pytest.approx(best, rel=1e-12)
    W[2, :, :15] = -np.inf
    with pytest.raises(ValueError, match="example 2"):
        assignments(W, Workers(1), solver)
    with pytest.raises(ValueError, match="900 weights"):
        AssignmentOracle(30, solver)(W[0, :20].ravel())
    with pytest.raises(ValueError, match="NaN"):
        AssignmentOracle(30, solver)(np.full(900, np.nan))


def test_missing_lapx_says_what_to_install(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "lap", None)
    with pytest.raises(ImportError, match=r"partita\[lapx\]"):
        AssignmentOracle(3, "lapx")
