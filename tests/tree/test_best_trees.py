"""Best trees against enumeration and networkx, and how answers of solvers are checked."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from hypothesis import given, settings
from tree_cases import cases, exact

from partita.tree import DependencyTrees, SpanningTree
from partita.tree.oracles.answer import checked_answer
from partita.tree.oracles.chu_liu_edmonds import ChuLiuEdmondsOracle
from partita.tree.oracles.networkx_arborescence import NetworkxArborescenceOracle
from partita.tree.oracles.scipy_tree import ScipyTreeOracle


@settings(max_examples=200)
@given(cases())
def test_the_best_tree_is_that_of_enumeration(case):
    expected, structure = exact(case), case.structure
    if expected is None:
        with pytest.raises(ValueError, match=r"there is no (tree with one edge at the root|spanning tree)"):
            structure.argmax(case.potentials)
        return
    y, value = structure.argmax(case.potentials)
    assert y.shape == case.potentials.shape
    assert (expected.trees == y).all(1).any()
    assert value[0] == pytest.approx(expected.best, rel=1e-14, abs=1e-12)
    np.testing.assert_array_equal(structure.score(case.potentials, y), value)
    oracle = (ChuLiuEdmondsOracle if structure.directed else ScipyTreeOracle)(structure)
    answer = oracle(case.potentials)
    assert (answer.polytope, answer.delta) == ("exact", 0.0)
    assert answer.value == pytest.approx(value[0], rel=1e-15, abs=1e-12)
    np.testing.assert_array_equal(answer.point, y)


@settings(max_examples=40)
@given(cases(kinds=("directed", "single")))
def test_networkx_finds_trees_of_the_same_score(case):
    oracle = NetworkxArborescenceOracle(case.structure)
    expected = exact(case)
    if expected is None:
        with pytest.raises(ValueError, match="there is no tree from the root"):
            oracle(case.potentials)
        return
    assert oracle(case.potentials).value == pytest.approx(expected.best, rel=1e-12, abs=1e-9)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize("kind", ["normal", "small integers", "cycles"])
def test_larger_digraphs_against_networkx(single, kind, rng):
    n = 14
    structure = SpanningTree(n, directed=True, root=5, single_root=single)
    for _ in range(4):
        s = rng.standard_normal(structure.n_edges)
        if kind == "small integers":
            s = np.rint(2.0 * s)
        if kind == "cycles":  # the best head of every vertex is the next one, and cycles nest
            head, dependent = structure.edges.T
            s += 6.0 * (head // 2 == dependent // 2) + 3.0 * (head // 4 == dependent // 4) - 8.0 * (head == 5)
        assert structure.argmax(s)[1][0] == pytest.approx(NetworkxArborescenceOracle(structure)(s).value, rel=1e-12)


def test_the_best_tree_is_where_probability_goes(rng):
    """log Z of potentials times a large number, over that number, is the best score."""
    structure = SpanningTree(30, directed=True, single_root=True)
    S = rng.standard_normal((6, structure.n_edges))
    np.testing.assert_allclose(structure.log_partition(1e8 * S) / 1e8, structure.argmax(S)[1], rtol=1e-8)
    y, _ = structure.argmax(S)
    np.testing.assert_allclose(structure.infer(1e8 * S).marginals, y, atol=1e-12)


def test_weights_of_zero_are_edges():
    """SciPy takes zeros for edges that are not there, and rounds sums of weights with shifts."""
    structure = SpanningTree(4, [(0, 1), (1, 2), (2, 3), (3, 0)])
    np.testing.assert_array_equal(structure.argmax(np.zeros(4))[0], [1, 1, 1, 0])
    np.testing.assert_array_equal(structure.argmax([1e-20, 2e-20, 3e-20, 4e-20])[0], [0, 1, 1, 1])
    np.testing.assert_array_equal(structure.argmax([1e99, 1e-20, 0.0, -1e-20])[0], [1, 1, 1, 0])


@pytest.mark.parametrize("directed", [False, True])
def test_best_trees_of_rows(directed, rng):
    structure = SpanningTree(5, directed=directed)
    S = np.where(rng.random((9, structure.n_edges)) < 0.2, -np.inf, rng.standard_normal((9, structure.n_edges)))
    S[:, ~structure.enumerate()[3].astype(bool)] -= 1.0
    S = np.where(structure.enumerate()[3] == 1, np.maximum(S, -3.0), S)
    Y, values = structure.argmax(S)
    for b in range(9):
        np.testing.assert_array_equal(Y[b], structure.argmax(S[b])[0])
        assert values[b] == structure.argmax(S[b])[1][0]
    S[4] = -np.inf
    with pytest.raises(ValueError, match="there is no spanning tree in example 4"):
        structure.argmax(S)


@pytest.mark.parametrize("single", [False, True])
def test_best_trees_of_sentences(single, rng):
    lengths = [4, 1, 3, 4]
    trees = DependencyTrees(lengths, single_root=single)
    s = rng.standard_normal(trees.n_pairs)
    heads, values = trees.argmax(s)
    np.testing.assert_array_equal(trees.score(s, heads), values)
    for i, n in enumerate(lengths):
        one = SpanningTree(n + 1, directed=True, single_root=single)
        y, value = one.argmax(s[trees.offsets[i] : trees.offsets[i + 1]])
        assert values[i] == pytest.approx(value[0], rel=1e-15)
        np.testing.assert_array_equal(heads[trees.word_offsets[i] : trees.word_offsets[i + 1]], one.heads(y)[1:])
    s[trees.offsets[2] : trees.offsets[3]] = -np.inf
    with pytest.raises(ValueError, match=r"potentials forbid every tree .*of sentence 2"):
        trees.argmax(s)


def test_wrong_kinds_of_solvers_are_refused():
    undirected, directed = SpanningTree(3), SpanningTree(3, directed=True)
    with pytest.raises(ValueError, match="use ChuLiuEdmondsOracle"):
        ScipyTreeOracle(directed)
    for oracle in (ChuLiuEdmondsOracle, NetworkxArborescenceOracle):
        with pytest.raises(ValueError, match="use ScipyTreeOracle"):
            oracle(undirected)
    with pytest.raises(ValueError, match="potentials must be 3 weights, one for each edge"):
        ScipyTreeOracle(undirected)(np.zeros(4))


def test_answers_that_are_no_trees_are_found_out():
    structure = SpanningTree(3)
    with pytest.raises(RuntimeError, match="the solver x failed: y is not a spanning tree: it has 3 edges"):
        checked_answer(structure, np.ones(3), np.zeros(3), "x")
    with pytest.raises(RuntimeError, match="an edge that potentials forbid"):
        checked_answer(structure, [1, 1, 0], np.array([0.0, -np.inf, 0.0]), "x")


def test_networkx_is_asked_for_by_name(monkeypatch):
    monkeypatch.setitem(sys.modules, "networkx", None)
    with pytest.raises(ImportError, match=r"needs networkx: pip install 'partita\[planar\]'"):
        NetworkxArborescenceOracle(SpanningTree(3, directed=True))
