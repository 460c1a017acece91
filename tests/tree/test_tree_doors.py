"""What structures of trees refuse, and how they say it."""

from __future__ import annotations

import numpy as np
import pytest

from partita import TooLargeError
from partita.tree import DependencyTrees, SpanningTree


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_vertices": 0}, "n_vertices must be an integer >= 1, got 0"),
        ({"n_vertices": 2.5}, "n_vertices must be an integer"),
        ({"n_vertices": 3, "edges": [(0, 1), (2, 2)]}, r"must not join a vertex to itself; row 1 is \[2, 2\]"),
        ({"n_vertices": 3, "edges": [(0, 1), (1, 3)]}, r"vertices from 0 to 2; row 1 is \[1, 3\]"),
        ({"n_vertices": 3, "edges": [(0, -1)]}, r"vertices from 0 to 2; row 0 is \[0, -1\]"),
        ({"n_vertices": 3, "edges": [0, 1, 2]}, r"edges must be integers of shape \(edges, 2\)"),
        ({"n_vertices": 3, "edges": [(0.0, 1.0)]}, "edges must be integers"),
        ({"n_vertices": 3, "root": 3}, "root must be a vertex, from 0 to 2; got 3"),
        ({"n_vertices": 3, "root": -1}, "root must be an integer >= 0"),
        ({"n_vertices": 3, "directed": 1}, "directed must be True or False"),
        ({"n_vertices": 3, "single_root": True}, "single_root=True is for directed trees"),
        ({"n_vertices": 1, "directed": True, "single_root": True}, "of two vertices or more"),
        ({"n_vertices": 3, "n_jobs": 0}, "n_jobs must be None or a non-zero integer"),
    ],
)
def test_graphs_that_are_none(arguments, message):
    with pytest.raises(ValueError, match=message):
        SpanningTree(**arguments)


def test_graphs_that_do_not_fit():
    with pytest.raises(TooLargeError, match="a complete graph of 10000000 vertices needs"):
        SpanningTree(10_000_000)
    with pytest.raises(TooLargeError, match="all pairs of words"):
        DependencyTrees([10_000_000])
    for n, power in ((10, "8.0"), (200, "455.6")):
        with pytest.raises(TooLargeError, match=rf"the graph has about 10\^{power} trees"):
            SpanningTree(n).enumerate()
    with pytest.raises(TooLargeError, match="sums over trees of 1000000 vertices need"):
        SpanningTree(1_000_000, [(0, 1)]).log_partition([0.0])


def test_an_edge_given_twice_is_one():
    structure = SpanningTree(3, [(2, 1), (0, 1), (1, 2), (2, 0), (0, 1)])
    assert structure.edges.tolist() == [[2, 1], [0, 1], [2, 0]]
    np.testing.assert_allclose(np.exp(structure.log_partition(np.zeros(3))), 3.0)
    directed = SpanningTree(3, [(2, 1), (0, 1), (1, 2), (2, 1)], directed=True)
    assert directed.edges.tolist() == [[2, 1], [0, 1], [1, 2]]


@pytest.mark.parametrize(
    ("potentials", "message"),
    [
        ([0.0, 1.0], r"potentials must have shape \(3,\) or \(examples, 3\), a number for each edge; got \(2,\)"),
        (np.zeros((4, 2)), r"got \(4, 2\)"),
        (np.zeros((2, 3, 3)), r"got \(2, 3, 3\); see `edge_values` for matrices"),
        (np.zeros((0, 3)), "potentials hold no example"),
        (0.0, r"got \(\)"),
        ([0.0, np.nan, 0.0], r"must not be NaN or \+inf \(-inf forbids an edge\): edge 1, \[0, 2\]"),
        ([[0.0, 0.0, 0.0], [np.inf, 0.0, 0.0]], r"edge 0, \[0, 1\] in example 1"),
        ([0.0, 1e200, 0.0], "must be at most 1e"),
        (["a", "b", "c"], "must be real numbers"),
    ],
)
def test_potentials_that_are_none(potentials, message):
    structure = SpanningTree(3)
    for call in (structure.log_partition, structure.infer, structure.argmax, lambda s: structure.sample(s, 1)):
        with pytest.raises(ValueError, match=message):
            call(potentials)


def test_engines_directions_and_sizes():
    structure, trees = SpanningTree(3), DependencyTrees([2])
    for one, s in ((structure, np.zeros(3)), (trees, np.zeros(4))):
        with pytest.raises(ValueError, match="engine must be one of 'auto', 'exact', 'frank_wolfe'; got 'bp'"):
            one.infer(s, engine="bp")
        with pytest.raises(ValueError, match="direction must be finite"):
            one.covariance_product(s, np.full(len(s), np.inf))
        with pytest.raises(ValueError, match="direction must have shape"):
            one.covariance_product(s, np.zeros(7))
        with pytest.raises(ValueError, match="size must be an integer >= 0"):
            one.sample(s, -1)
        with pytest.raises(ValueError, match="random_state must be"):
            one.sample(s, 1, random_state="x")
    with pytest.raises(ValueError, match="direction must be for one example or all 3; got 2"):
        structure.covariance_product(np.zeros((3, 3)), np.zeros((2, 3)))


SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1, 1, 0, 0, 0], "it has 2 edges, and needs 3 to join 4 vertices"),
        ([1, 1, 0, 0, 1], "it has a cycle"),
        ([[1, 1, 1, 0, 0], [1, 1, 1, 1, 0]], "y is not a spanning tree in example 1: it has 4 edges"),
        ([1, 2, 0, 0, 0], "y must be zeros and ones, one for each edge; got 2 for edge 1"),
        ([0.5, 0.5, 1.0, 1.0, 0.0], "got 0.5 for edge 0"),
        ([1, 1, 1], r"y must have shape \(5,\)"),
        ([1.0, np.nan, 0.0, 0.0, 0.0], "got nan for edge 1"),
    ],
)
def test_undirected_trees_that_are_none(y, message):
    with pytest.raises(ValueError, match=message):
        SpanningTree(4, SQUARE).score(np.zeros(5), y)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 0, 1, 1, 0, 0, 0], "it has 2 edges"),
        ([1, 1, 1, 0, 0, 0, 0], "a vertex has two heads, another none"),
        ([1, 0, 0, 1, 0, 1, 0], "it has a cycle"),
        ([1, 0, 1, 0, 0, 0, 1], "it has an edge into the root"),
        ([1, 0, 0, 0, 1, 1, 0], "single_root=True asks for one edge at the root"),
        ([-1, 0, 3, 2], "it has a cycle"),
        ([-1, 0, 0, 1], "y has an edge that the graph has not: head 1 of vertex 3"),
        ([-1, 0, 0, 7], "y has an edge that the graph has not: head 7 of vertex 3"),
        ([[-1, 0, 1, 2], [-1, -1, 1, 2]], "in example 1: head -1 of vertex 1"),
        ([0, 0, 1, 2], r"y must have shape \(7,\)"),
        ([1, 0, 3, 0, 0, 0, 0], "heads of vertices with -1 for the root, 0; got 3 for edge 2"),
    ],
)
def test_directed_trees_that_are_none(y, message):
    edges = [(0, 1), (2, 1), (1, 2), (3, 2), (0, 2), (2, 3), (1, 0)]
    with pytest.raises(ValueError, match=message):
        SpanningTree(4, edges, directed=True, single_root=True).score(np.zeros(7), y)


def test_heads_and_edges_say_the_same(rng):
    structure = SpanningTree(5, directed=True, root=2)
    s, Y = rng.standard_normal(16), structure.enumerate()
    heads = structure.heads(Y)
    assert (heads[:, 2] == -1).all()
    np.testing.assert_array_equal(structure.trees(heads), Y)
    np.testing.assert_array_equal(structure.score(s, heads), structure.score(s, Y))
    np.testing.assert_array_equal(structure.heads(Y[3]), heads[3])
    matrix = rng.standard_normal((5, 5))
    expected = sum(matrix[h, d] for d, h in enumerate(heads[3]) if h >= 0)
    assert structure.score(structure.edge_values(matrix), heads[3])[0] == pytest.approx(expected)
    with pytest.raises(ValueError, match="have no heads"):
        SpanningTree(3).heads([1, 1, 0])
    with pytest.raises(ValueError, match=r"matrices must have shape \(5, 5\)"):
        structure.edge_values(np.zeros((4, 4)))


def test_heads_are_told_from_edges_by_the_root():
    """Four vertices and four edges: zeros and ones have no -1."""
    structure = SpanningTree(4, [(0, 1), (1, 2), (2, 3), (1, 3)], directed=True)
    s = np.array([1.0, 2.0, 3.0, 10.0])
    assert structure.score(s, [-1, 0, 1, 1])[0] == 13.0
    assert structure.score(s, [1, 1, 1, 0])[0] == 6.0


def test_scores_of_forbidden_trees_are_minus_infinity():
    assert SpanningTree(3).score([0.0, -np.inf, 1.0], [[1, 0, 1], [1, 1, 0]]).tolist() == [1.0, -np.inf]
    with pytest.raises(ValueError, match="as many examples, or one; got 3 and 2"):
        SpanningTree(3).score(np.zeros((3, 3)), [[1, 0, 1], [1, 1, 0]])


@pytest.mark.parametrize("lengths", [[], [0, 2], [[1, 2]], [1.5], 3])
def test_lengths_that_are_none(lengths):
    with pytest.raises(ValueError, match="lengths must be a vector of integers >= 1"):
        DependencyTrees(lengths)


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([0, 1, 0], "y must be 4 integers, the head of each word"),
        ([0.0, 1.0, 2.0, 0.0], "y must be 4 integers"),
        ([0, 1, 4, 0], "got 4 for word 3 of 3 in sentence 0"),
        ([0, 1, -1, 0], "got -1 for word 3 of 3 in sentence 0"),
        ([0, 1, 2, 1], "got 1 for word 1 of 1 in sentence 1"),
        ([0, 3, 2, 0], "y is not a tree in sentence 0: it has a cycle"),
        ([0, 0, 2, 0], "2 words have the root as head, and one should"),
    ],
)
def test_sentences_that_are_no_trees(y, message):
    with pytest.raises(ValueError, match=message):
        DependencyTrees([3, 1]).score(np.zeros(10), y)


def test_potentials_of_sentences():
    trees = DependencyTrees([3, 2])
    with pytest.raises(ValueError, match=r"potentials must have shape \(13,\), a number for each pair of words"):
        trees.infer(np.zeros(12))
    s = np.zeros(13)
    s[5] = np.nan
    with pytest.raises(ValueError, match=r"\(-inf forbids a pair\): head 3 of word 2 in sentence 0"):
        trees.infer(s)
    s[5], s[9:] = 0.0, -np.inf
    with pytest.raises(ValueError, match="potentials forbid every tree with one word at the root of sentence 1"):
        trees.infer(s)
    with pytest.raises(ValueError, match="of sentence 1"):
        trees.sample(s, 3)
    with pytest.raises(ValueError, match="of sentence 1"):
        trees.log_partition(s)


def test_matrices_of_sentences(rng):
    trees = DependencyTrees([3, 1, 2])
    matrices = [rng.standard_normal((n + 1, n + 1)) for n in (3, 1, 2)]
    values = trees.pair_values(matrices)
    y = np.array([2, 0, 2, 0, 0, 1])
    a, b, c = matrices
    expected = [a[2, 1] + a[0, 2] + a[2, 3], b[0, 1], c[0, 1] + c[1, 2]]
    np.testing.assert_allclose(trees.score(values, y), expected, rtol=1e-15)
    with pytest.raises(ValueError, match="matrices must be 3, one for each sentence; got 2"):
        trees.pair_values(matrices[:2])
    with pytest.raises(ValueError, match=r"the matrix of sentence 1 must have shape \(2, 2\); got \(3, 3\)"):
        trees.pair_values([matrices[0], matrices[2], matrices[1]])
