"""Edges as they come: each once, none from a node to itself, integers are columns."""

from __future__ import annotations

import time
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from partita import DataWarning, GraphCRF, MarkovNetwork, TooLargeError

EDGES = [(0, 1), (1, 2), (2, 3)]


def symmetric(edges):
    A = np.zeros((4, 4), int)
    for a, b in edges:
        A[a, b] = A[b, a] = 1
    return np.argwhere(A)


def test_both_directions_of_an_edge_are_one_coupling(rng):
    networkx = pytest.importorskip("networkx")
    X = rng.integers(0, 2, (200, 4))
    once = MarkovNetwork.ising(EDGES).fit(X)
    doubled = [(b, a) for a, b in EDGES]
    for graph in (symmetric(EDGES), EDGES + doubled, EDGES + EDGES, networkx.DiGraph(EDGES + doubled)):
        model = MarkovNetwork.ising(graph).fit(X)
        assert len(model.parameters_) == 7
        np.testing.assert_allclose(np.sort(model.parameters_), np.sort(once.parameters_), atol=1e-8)
        np.testing.assert_allclose(np.sort(model.standard_errors()), np.sort(once.standard_errors()), atol=1e-8)
    assert MarkovNetwork.potts(symmetric(EDGES), 2).factors == MarkovNetwork.potts(EDGES, 2).factors


def test_edges_to_themselves_are_refused_by_name(rng):
    networkx = pytest.importorskip("networkx")
    for graph in ([*EDGES, (2, 2)], np.array([[0, 1], [2, 2]]), networkx.Graph([*EDGES, (2, 2)])):
        with pytest.raises(ValueError, match="an edge from 2 to itself: leave it out"):
            MarkovNetwork.ising(graph)
    with pytest.raises(ValueError, match="different variables"):
        MarkovNetwork([(0, 0)]).fit(rng.integers(0, 2, (5, 2)))


def test_integer_nodes_are_columns_in_whatever_order_they_were_added(rng):
    networkx = pytest.importorskip("networkx")
    X = rng.integers(0, 2, (200, 4))
    X[:, 1] = X[:, 0]
    X[:5, 1] = 1 - X[:5, 0]
    graph = networkx.Graph()
    graph.add_nodes_from([2, 0, 3, 1])
    graph.add_edges_from(EDGES)
    model, plain = MarkovNetwork.ising(graph).fit(X), MarkovNetwork.ising(EDGES).fit(X)
    assert model.factors[:4] == [(0,), (1,), (2,), (3,)]
    assert model.score(X) == pytest.approx(plain.score(X), rel=1e-9)


def test_other_nodes_are_names_of_columns(rng):
    networkx = pytest.importorskip("networkx")
    pandas = pytest.importorskip("pandas")
    X = rng.integers(0, 2, (200, 3))
    X[:, 2] = np.where(rng.random(200) < 0.9, X[:, 0], X[:, 2])
    plain = MarkovNetwork.ising([(0, 2), (1, 2)]).fit(X)
    for names in (["x", "y", "z"], [10, 20, 30]):
        frame = pandas.DataFrame(X[:, [2, 0, 1]], columns=[names[2], names[0], names[1]])
        graph = networkx.Graph([(names[0], names[2]), (names[2], names[1])])
        model = MarkovNetwork.ising(graph).fit(frame)
        assert model.score(frame) == pytest.approx(plain.score(X), rel=1e-9)
        with pytest.raises(ValueError, match="data frame"):
            MarkovNetwork.ising(graph).fit(X)
    pairs = MarkovNetwork.ising([("x", "z"), ("z", "y")]).fit(pandas.DataFrame(X, columns=["x", "y", "z"]))
    assert pairs.score(pandas.DataFrame(X, columns=["x", "y", "z"])) == pytest.approx(plain.score(X), rel=1e-9)
    with pytest.raises(ValueError, match="convert_node_labels_to_integers"):
        MarkovNetwork.ising(networkx.grid_2d_graph(1, 3)).fit(X)


@pytest.mark.parametrize("node", [2**40, 2**100])
def test_a_node_that_no_table_has_is_refused_at_once(node):
    start = time.perf_counter()
    for make in (MarkovNetwork.ising, lambda graph: MarkovNetwork.potts(graph, 3)):
        with pytest.raises(TooLargeError, match=f"graph has a variable {node}.* without gaps"):
            make([(0, node)])
    with pytest.raises(TooLargeError, match="each pair of 10000000 variables"):
        MarkovNetwork.boltzmann(10**7)
    assert time.perf_counter() - start < 2.0


@pytest.mark.parametrize("graph", [[], None, [(0, 1, 2)], ["ab"], [(0.0, 1.0)], [(0, "a")], [(0, -1)], 3])
def test_what_is_no_graph_is_refused(graph):
    with pytest.raises(ValueError, match="graph"):
        MarkovNetwork.ising(graph)


def test_graphs_with_few_nodes_and_edges(rng):
    networkx = pytest.importorskip("networkx")
    with pytest.raises(ValueError, match="no nodes"):
        MarkovNetwork.ising(networkx.Graph())
    lonely = networkx.empty_graph(3)
    X = rng.integers(0, 2, (30, 3))
    p = X.mean(0)
    expected = (X * np.log(p) + (1 - X) * np.log(1 - p)).sum(1).mean()
    assert MarkovNetwork.ising(lonely).fit(X).score(X) == pytest.approx(expected, rel=1e-6)
    assert MarkovNetwork.ising([(0, 1)], l2=1.0).fit([[0, 1]]).score([[0, 1]]) < 0.0
    assert MarkovNetwork(cardinalities=1, l2=1.0).fit([[0, 0]]).score([[0, 0]]) == 0.0


def test_factors_given_twice_are_one_and_that_is_said(rng):
    X = rng.integers(0, 2, (100, 3))
    once = MarkovNetwork([(0,), (0, 1), (1, 2)], l2=0.1).fit(X)
    with pytest.warns(DataWarning, match=r"2 of 5 factors have the variables of an earlier one, such as factor 2, \(1, 0\)"):
        twice = MarkovNetwork([(0,), (0, 1), (1, 0), (1, 2), (0, 1)], l2=0.1).fit(X)
    assert twice.factors_ == once.factors_
    np.testing.assert_array_equal(twice.parameters_, once.parameters_)
    with pytest.warns(DataWarning, match="1 of 3"):
        tied = MarkovNetwork([(0, 1), (1, 2), (1, 0)], tie=["e", "e", "e"], l2=0.1).fit(X)
    np.testing.assert_array_equal(
        tied.parameters_, MarkovNetwork([(0, 1), (1, 2)], tie=["e", "e"], l2=0.1).fit(X).parameters_
    )
    with warnings.catch_warnings():  # a weight that is shared, and one of its own
        warnings.simplefilter("error")
        both = MarkovNetwork([(0, 1), (1, 2), (0, 1)], tie=["all", "all", "own"], l2=0.1).fit(X)
    assert both.parameters_.shape == (8,)


def pictures(rng, features=False):
    X, y = [], []
    edges = np.array(EDGES)
    for _ in range(20):
        z = np.sort(rng.integers(0, 2, 4))
        F = rng.standard_normal((3, 1)) + np.diff(z)[:, None] if features else None
        X.append((z[:, None] + rng.standard_normal((4, 2)), edges, *([F] if features else [])))
        y.append(z)
    return X, y


def turned(X, equal=True):
    """The same graphs with every edge in both directions."""
    return [
        (x, np.concatenate([e, e[:, ::-1]]), *(np.concatenate([F, F if equal else F + 1.0]) for F in rest))
        for x, e, *rest in X
    ]


@pytest.mark.parametrize("features", [False, True])
@pytest.mark.parametrize("symmetric", [False, True])
def test_both_directions_of_the_edges_of_graphs_are_one_edge(rng, features, symmetric):
    X, y = pictures(rng, features)
    once = GraphCRF(symmetric=symmetric).fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error" if symmetric else "ignore")
        model = GraphCRF(symmetric=symmetric).fit(turned(X), y)
    np.testing.assert_array_equal(model.parameters_, once.parameters_)
    for graphs in (X, turned(X)):  # after either fit
        for fitted in (once, model):
            np.testing.assert_array_equal(fitted.log_likelihood(graphs, y), once.log_likelihood(X, y))
    if not symmetric:
        with pytest.warns(DataWarning, match=r"60 edges of 'edge' are there already.* set symmetric=True"):
            GraphCRF().fit(turned(X), y)


def test_directions_with_different_features_are_edges_of_their_own_or_refused(rng):
    X, y = pictures(rng, features=True)
    both = turned(X, equal=False)
    with pytest.raises(
        ValueError, match=r"graph 0 has one edge in both directions with different features \(rows 0 and 3\)"
    ):
        GraphCRF(symmetric=True).fit(both, y)
    model = GraphCRF().fit(both, y)
    assert model.directed_ == ["edge"]
    with pytest.raises(ValueError, match="takes each edge once"):
        GraphCRF().fit(X, y).predict(both)
    again = [(x, np.concatenate([e, e[:1]]), np.concatenate([F, F[:1] + 1.0])) for x, e, F in X]
    with pytest.raises(ValueError, match=r"has one edge twice with different features \(rows 0 and 3\)"):
        GraphCRF().fit(again, y)
    sparse = [(x, e, sp.csr_matrix(F)) for x, e, F in both]
    with pytest.raises(ValueError, match="with different features"):
        GraphCRF(symmetric=True).fit(sparse, y)


def test_a_graph_with_some_mutual_edges_is_directed(rng):
    X, y = pictures(rng)
    mutual = [(x, np.concatenate([e, e[:1, ::-1]])) for x, e in X]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = GraphCRF().fit(mutual, y)
    assert model.directed_ == ["edge"]
    two = [(X[0][0][:2], np.array([[0, 1], [1, 0]]))]  # all of its edges are mutual, and stay so
    W = model.weights_["edge", "node", "node"][0]
    lonely = model.log_partition([(two[0][0],)])
    assert abs(model.log_partition(two)[0] - lonely[0]) > 1e-6
    scores = np.column_stack([two[0][0], np.ones(2)]) @ model.weights_["node", "node"]
    expected = np.logaddexp.reduce((scores[0][:, None] + scores[1] + W + W.T).ravel())
    assert model.log_partition(two)[0] == pytest.approx(expected, rel=1e-12)
