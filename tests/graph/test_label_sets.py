"""Sets of states, one of which is right, on factor graphs: against enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from partita import GraphCRF, MarkovNetwork
from partita.graph.data.graphs import read_graphs
from partita.graph.data.labels import read_labels
from partita.graph.features.statistics import table_types
from partita.graph.features.tied_tables import TiedTables
from partita.graph.objective.likelihood import GraphLikelihood
from partita.graph.structure.evidence import Evidence
from partita.graph.structure.factor_graph import FactorGraph

COUNTS = [3, 2, 4, 3]
SCOPES = [(0,), (2,), (0, 1), (1, 2, 3), (3, 0)]
SETS = np.array([[True, False, True, False], [False, True, True, True], [True, True, False, False]])
#: Codes below -1 are rows of SETS.
STATES = np.array([[-2, 1, -3, -1], [0, -1, -2, -4], [-4, 1, 2, 0], [1, 0, -3, 2], [-1, -1, -1, -1]])


def graph():
    return FactorGraph(COUNTS, SCOPES)


def agreeing(row):
    lists = [
        [s] if s >= 0 else list(range(n)) if s == -1 else np.flatnonzero(SETS[-2 - s]).tolist()
        for s, n in zip(row.tolist(), COUNTS, strict=True)
    ]
    return np.array(list(itertools.product(*lists)))


def test_sums_best_configurations_and_marginals_agree_with_enumeration(rng):
    g = graph()
    u = rng.standard_normal(g.size)
    evidence = Evidence(g, STATES, SETS)
    found = evidence.log_weights(u)[:, 0]
    marginals = evidence.variable_marginals(evidence.rest.infer(u[evidence.index]).marginals)
    filled = evidence.filled(evidence.rest.argmax(u[evidence.index])[0])
    for i, row in enumerate(STATES):
        each = agreeing(row)
        scores = np.array([g.score(u, y)[0] for y in each])
        assert found[i] == pytest.approx(np.logaddexp.reduce(scores), abs=1e-12)
        assert filled[i].tolist() == each[scores.argmax()].tolist()
        p = np.exp(scores - found[i])
        for v, count in enumerate(COUNTS):
            expected = [p[each[:, v] == s].sum() for s in range(count)]
            np.testing.assert_allclose(marginals[v][i], expected, atol=1e-12)


def test_gradients_and_products_are_those_of_the_sums(rng):
    g = graph()
    features = TiedTables(g, table_types(g, None, "entries"))
    weights = np.array([1.0, 2.0, 0.5, 1.0, 3.0])
    objective = GraphLikelihood(features, STATES, sets=SETS, weights=weights, penalty=0.1)
    theta = rng.standard_normal(objective.size)

    def value(theta):
        u = features.forward(theta)
        scores = [np.logaddexp.reduce([g.score(u, y)[0] for y in agreeing(row)]) for row in STATES]
        return float(weights @ (g.log_partition(u)[0] - np.array(scores))) + 0.05 * float(theta @ theta)

    point = objective.at(theta)
    assert point.value == pytest.approx(value(theta), rel=1e-12)
    moves = 1e-5 * np.eye(objective.size)[:20]
    slopes = [(value(theta + m) - value(theta - m)) / 2e-5 for m in moves]
    np.testing.assert_allclose(point.gradient[:20], slopes, atol=1e-7)
    v = rng.standard_normal(objective.size)
    change = (objective.at(theta + 1e-6 * v).gradient - objective.at(theta - 1e-6 * v).gradient) / 2e-6
    np.testing.assert_allclose(point.information_product()(v), change, atol=1e-6)
    assert point.gap == np.inf
    # scores of the examples sum to the gradient of the loss
    scores = np.vstack(list(point.score_chunks()))
    np.testing.assert_allclose(scores.sum(0), -(point.gradient - 0.1 * theta), atol=1e-10)


EDGES = np.array([[0, 1], [1, 2]])


def graphs():
    rng = np.random.default_rng(0)
    X = [(rng.standard_normal((3, 2)), EDGES) for _ in range(12)]
    y = [["abc"[k] for k in np.argmax(F @ [[1, 0, -1], [0, 1, -1]], axis=1)] for F, _ in X]
    return X, [
        [{"a", "b"} if (i + j) % 4 == 0 else None if (i + j) % 7 == 0 else c for j, c in enumerate(row)]
        for i, row in enumerate(y)
    ]


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "em", "majorize"])
def test_graph_crf_learns_from_sets(solver):
    X, y = graphs()
    model = GraphCRF(l2=0.5, solver=solver, fit_intercept=False, tol=1e-8).fit(X, y)

    def value(theta):
        other = GraphCRF(l2=0.5, fit_intercept=False)
        other.__dict__.update({**model.__dict__, "parameters_": theta})
        return -other.log_likelihood(X, y).sum() + 0.25 * float(theta @ theta)

    theta = model.parameters_
    assert model.trace_.objective[-1] == pytest.approx(value(theta), rel=1e-9)
    moves = 1e-5 * np.eye(len(theta))
    assert max(abs(value(theta + m) - value(theta - m)) / 2e-5 for m in moves) < 1e-4
    assert 0.0 <= model.score(X, y) <= 1.0
    likely = model.log_likelihood(X[:1], [[{"a", "b"}, {"b", "a"}, {"c"}]])[0]
    each = [model.log_likelihood(X[:1], [[s, t, "c"]])[0] for s in "ab" for t in "ab"]
    assert likely == pytest.approx(np.logaddexp.reduce(each), abs=1e-12)


def test_sets_of_all_labels_and_of_one_are_what_they_say():
    X, _ = graphs()
    data = read_graphs(X[:1], True, False)
    found = read_labels([[{"a"}, {"a", "b", "c"}, {"a", "c"}]], data, None)
    assert found.codes.tolist() == [0, -1, -2]
    assert found.sets.tolist() == [[True, False, True]]
    unseen = read_labels([[{"z", "a"}, {"z"}, "b"]], data, {"node": ["a", "b"]}, unseen=True)
    assert unseen.codes.tolist() == [0, 2, 1]


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([set(), "a", "b"], "an empty set"),
        ([{None, "a"}, "a", "b"], "a set holds labels only"),
        ([{1, "a"}, "a", "b"], "labels of one kind"),
        ([{-1, 1}, 1, 0], "a set holds labels only"),
        ([(0, 1), 0, 1], "labels must be strings or numbers"),
    ],
)
def test_bad_sets_of_labels_are_refused(bad, message):
    X, _ = graphs()
    with pytest.raises(ValueError, match=message):
        GraphCRF().fit(X[:1], [bad])


def test_composites_and_bethe_say_what_they_need():
    X, y = graphs()
    with pytest.raises(ValueError, match="not sets of them"):
        GraphCRF(likelihood="pseudo").fit(X, y)
    with pytest.raises(ValueError, match="labels that are all known"):
        GraphCRF(likelihood="bethe").fit(X, y)


def table():
    rng = np.random.default_rng(5)
    X = rng.integers(0, 3, (30, 3)).astype(object)
    for i, j in itertools.product(range(30), range(3)):
        if (i + 2 * j) % 5 == 0:
            X[i, j] = {int(X[i, j]), (int(X[i, j]) + 1) % 3} if (i + j) % 3 else None
    return X


def test_markov_networks_learn_from_sets():
    X = table()
    model = MarkovNetwork([(0,), (1,), (2,), (0, 1), (1, 2)], l2=0.3).fit(X)
    assert model.cardinalities_.tolist() == [3, 3, 3]
    allowed = [[range(3) if s is None else s if isinstance(s, set) else [s] for s in row] for row in X]
    each = list(itertools.product(range(3), repeat=3))
    logs = dict(zip(each, model.log_likelihood(each), strict=True))
    expected = [np.logaddexp.reduce([logs[y] for y in itertools.product(*row)]) for row in allowed]
    np.testing.assert_allclose(model.log_likelihood(X), expected, atol=1e-12)
    value = -np.sum(expected) + 0.15 * float(model.parameters_ @ model.parameters_)
    assert model.trace_.objective[-1] == pytest.approx(value, rel=1e-9)
    filled = model.predict(X)
    best = [max(itertools.product(*row), key=lambda y: logs[y]) for row in allowed]
    np.testing.assert_allclose([logs[tuple(y)] for y in filled.tolist()], [logs[y] for y in best], atol=1e-12)
    P = model.predict_marginals(X)
    assert all(P[j][i, s] == 0.0 for i in range(30) for j in range(3) for s in set(range(3)) - set(allowed[i][j]))


@pytest.mark.parametrize("bad", [set(), {-1, 0}, {"a"}, {None, 1}, {True, 0}, {0.5, 1}])
def test_bad_sets_of_states_are_refused(bad):
    with pytest.raises(ValueError, match="a set holds states"):
        MarkovNetwork([(0,), (0, 1)]).fit([[0, bad], [1, 0]])
    model = MarkovNetwork([(0,), (0, 1)]).fit([[0, 1], [1, 0]])
    with pytest.raises(ValueError, match="but the states of variable 1 are 0 to 1"):
        model.log_likelihood([[0, {1, 7}]])
