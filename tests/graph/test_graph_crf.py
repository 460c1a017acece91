"""Conditional random fields on graphs against chains, enumeration and the rules of scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from enumeration import choices
from scipy.optimize import minimize as scipy_minimize
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from partita import ChainCRF, ConvergenceWarning, DataWarning, GraphCRF, SoftmaxRegression, load
from partita.structures import FactorGraph


def chains(rng, n=25, labels=3, d=4):
    X, y = [], []
    for _ in range(n):
        length = int(rng.integers(1, 9))
        z = rng.integers(0, labels, length)
        X.append(np.eye(labels, d)[z] + rng.standard_normal((length, d)))
        y.append(z)
    return X, y


def chain_edges(length):
    return np.column_stack([np.arange(length - 1), np.arange(1, length)])


def as_graphs(X):
    return [(x, chain_edges(len(x))) for x in X]


@pytest.mark.parametrize("missing", [0.0, 0.2])
def test_on_chains_it_is_the_chain(rng, missing):
    X, y = chains(rng)
    known = [[None if rng.random() < missing else int(v) for v in row] for row in y]
    weights = rng.random(len(X))
    options = {"features": "all", "transitions": "all", "tol": 1e-10, "max_iter": 2000}
    chain = ChainCRF(l2=0.7, fit_intercept=False, **options)
    chain.fit(X, known, sample_weight=weights)
    graph = GraphCRF(l2=0.7, fit_intercept=False, tol=1e-10).fit(as_graphs(X), known, sample_weight=weights)
    assert graph.trace_.objective[-1] == pytest.approx(chain.trace_.objective[-1], rel=1e-9)
    for (a, b), w in chain.transition_features_.items():
        assert graph.weights_[("edge", "node", "node")][0, a, b] == pytest.approx(w, abs=1e-5)
    for (a, label), w in chain.state_features_.items():
        assert graph.weights_[("node", "node")][a, label] == pytest.approx(w, abs=1e-5)
    new, truth = chains(rng)
    for found, expected in zip(graph.predict(as_graphs(new)), chain.predict(new), strict=True):
        np.testing.assert_array_equal(found, expected)
    found = np.concatenate(graph.predict_marginals(as_graphs(new)))
    np.testing.assert_allclose(
        found, [[p[k] for k in range(3)] for row in chain.predict_marginals(new) for p in row], atol=1e-6
    )
    assert graph.score(as_graphs(new), truth) == pytest.approx(chain.score(new, truth))


def small_graph():
    """Two types of nodes, features on one kind of edge, and a factor of three nodes."""
    rng = np.random.default_rng(5)
    X, y = [], []
    for n in (3, 2, 4):
        nodes = {"a": rng.standard_normal((n, 2)), "b": sp.csr_matrix(rng.standard_normal((2, 1)))}
        graph = {
            "nodes": nodes,
            "edges": {"near": chain_edges(n), ("a", "b"): np.array([[0, 1], [1, 0]])},
            "edge_features": {"near": rng.standard_normal((n - 1, 2))},
            "factors": {"three": np.array([[0, 1, n]])},
        }
        X.append(graph)
        y.append({"a": rng.choice(["x", "y", "z"], n).tolist(), "b": rng.integers(0, 2, 2).tolist()})
    return X, y


def brute_scores(model, weights, graph):
    """Every labelling of a graph (codes) and its score, from the definition."""
    n = len(graph["nodes"]["a"])
    counts = [3] * n + [2] * 2
    A, B = graph["nodes"]["a"], graph["nodes"]["b"].toarray()
    A, B = np.column_stack([A, np.ones(n)]), np.column_stack([B, np.ones(2)])
    E = np.column_stack([graph["edge_features"]["near"], np.ones(n - 1)])
    labellings = choices(counts)
    scores = []
    for c in labellings:
        s = sum(A[i] @ weights[("node", "a")][:, c[i]] for i in range(n))
        s += sum(B[i] @ weights[("node", "b")][:, c[n + i]] for i in range(2))
        s += sum(E[i] @ weights[("near", "a", "a")][:, c[i], c[i + 1]] for i in range(n - 1))
        s += sum(weights[(("a", "b"), "a", "b")][0, c[i], c[n + j]] for i, j in ((0, 1), (1, 0)))
        s += weights[("three", "a", "a", "b")][0, c[0], c[1], c[n]]
        scores.append(s)
    return labellings, np.array(scores)


@pytest.mark.parametrize("missing", [False, True])
def test_typed_nodes_and_large_factors_against_enumeration(missing):
    X, y = small_graph()
    if missing:
        y[0]["a"][1] = None
        y[2]["b"] = [-1, -1]
    model = GraphCRF(l2=0.5, penalize_intercept=True, tol=1e-9, classes={"a": ["x", "y", "z"], "b": [0, 1]}).fit(X, y)
    assert model.n_iter_ > 3

    def loss(theta):
        weights = model._layout().split(theta)
        value = 0.25 * theta @ theta
        for graph, labels in zip(X, y, strict=True):
            c, s = brute_scores(model, weights, graph)
            codes = ["xyz".index(v) if v else -1 for v in labels["a"]] + labels["b"]
            agree = ((c == codes) | (np.array(codes) < 0)).all(1)
            value += np.logaddexp.reduce(s) - np.logaddexp.reduce(s[agree])
        return value

    assert model.trace_.objective[-1] == pytest.approx(loss(model.parameters_), rel=1e-10)
    if not missing:  # convex: a short search by scipy must not go lower
        found = scipy_minimize(loss, model.parameters_, method="BFGS", options={"maxiter": 2})
        assert found.fun > model.trace_.objective[-1] - 1e-7
    marginals, best = model.predict_marginals(X), model.predict(X)
    for graph, p, z in zip(X, marginals, best, strict=True):
        c, s = brute_scores(model, model.weights_, graph)
        q = np.exp(s - np.logaddexp.reduce(s))
        n = len(p["a"])
        for v in range(n + 2):
            row = p["a"][v] if v < n else p["b"][v - n]
            np.testing.assert_allclose(row, np.bincount(c[:, v], weights=q, minlength=len(row)), atol=1e-10)
        codes = ["xyz".index(v) for v in z["a"]] + z["b"].tolist()
        np.testing.assert_array_equal(codes, c[s.argmax()])
    value, lower, upper = model.log_partition(X, bounds=True)
    np.testing.assert_array_equal(lower, upper)
    np.testing.assert_allclose(value[0], np.logaddexp.reduce(brute_scores(model, model.weights_, X[0])[1]))
    errors = model.standard_errors("sandwich")
    assert errors.keys() == model.weights_.keys()
    assert errors[("near", "a", "a")].shape == (3, 3, 3)
    table = model.summary(method="sandwich")
    row = table.names.index("near a a[2, 0, 1]")
    assert table.estimate[row] == model.weights_["near", "a", "a"][2, 0, 1]
    assert table.standard_error[row] == errors["near", "a", "a"][2, 0, 1]


def test_forbidden_pairs_never_occur(rng):
    X, y = chains(rng, labels=3)
    y = [np.sort(row) for row in y]
    table = np.where(np.tri(3, k=-1) > 0, -np.inf, 0.0)
    model = GraphCRF(tables={"edge": table}, l2=0.1).fit(as_graphs(X), y)
    new = as_graphs(chains(rng, n=60)[0])
    assert all((np.diff(row) >= 0).all() for row in model.predict(new))
    assert all((np.diff(row, axis=0) >= 0).all() for row in model.sample(new, 3, 0))
    with pytest.raises(ValueError, match="forbidden configuration in example 0"):
        GraphCRF(tables={"edge": table}).fit([(np.ones((2, 1)), [[0, 1]])] * 2, [[2, 1], [0, 1]])
    with pytest.raises(ValueError, match=r"shape \(2, 2\)"):
        GraphCRF(tables={"edge": table}).fit([(np.ones((2, 1)), [[0, 1]])], [[1, 0]])
    with pytest.raises(ValueError, match="tables has 'edgy'"):
        GraphCRF(tables={"edgy": table}).fit(as_graphs(X), y)


def test_symmetric_edges_have_no_direction(rng):
    X, y = chains(rng)
    turned = [(x, chain_edges(len(x))[:, ::-1]) for x in X]
    one, two = (GraphCRF(symmetric=True, tol=1e-9).fit(graphs, y) for graphs in (as_graphs(X), turned))
    W = one.weights_[("edge", "node", "node")][0]
    np.testing.assert_allclose(W, W.T)
    np.testing.assert_allclose(one.parameters_, two.parameters_, atol=1e-6)
    assert one.parameters_.size < GraphCRF().fit(as_graphs(X), y).parameters_.size


def test_sparse_features_do_as_well_and_threads_do_not_matter(rng):
    X, y = chains(rng)
    dense = GraphCRF(n_jobs=1, tol=1e-9).fit(as_graphs(X), y)
    two = GraphCRF(n_jobs=2, tol=1e-9).fit(as_graphs(X), y)
    sparse = GraphCRF(tol=1e-9).fit([(sp.csr_matrix(x), edges) for x, edges in as_graphs(X)], y)
    np.testing.assert_array_equal(dense.parameters_, two.parameters_)
    np.testing.assert_allclose(dense.parameters_, sparse.parameters_, atol=1e-7)


def test_model_files_and_copies(rng, tmp_path):
    X, y = small_graph()
    plain = as_graphs(chains(rng)[0])
    halves = [np.full(len(x), k > 3, int) for k, (x, _) in enumerate(plain)]
    for model, graphs, labels in (
        (GraphCRF(tables={("near", "a", "a"): np.full((3, 3), -0.5)}), X, y),
        (GraphCRF(tables={"edge": [[0.0, -np.inf], [0.0, 0.0]]}), plain, halves),
    ):
        model.fit(graphs, labels)
        model.save(tmp_path / "m.partita")
        again = load(tmp_path / "m.partita")
        np.testing.assert_array_equal(again.log_likelihood(graphs, labels), model.log_likelihood(graphs, labels))
        for a, b in zip(again.predict(graphs), model.predict(graphs), strict=True):
            assert str(a) == str(b)
        with pytest.raises(ValueError, match="fit again"):
            again.standard_errors()
        fresh = clone(again).fit(graphs, labels)
        np.testing.assert_array_equal(fresh.parameters_, model.parameters_)
        warm = model.set_params(warm_start=True).fit(graphs, labels)
        assert warm.n_iter_ == 0


def test_it_works_in_a_grid_search(rng):
    X, y = chains(rng, n=30)
    search = GridSearchCV(GraphCRF(), {"l2": [0.1, 1.0], "decoding": ["map", "marginals"]}, cv=3).fit(as_graphs(X), y)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_score_ > 0.5


def test_labels_never_seen_count_as_wrong(rng):
    model = GraphCRF().fit([(np.eye(2), [[0, 1]])], [["a", "b"]])
    assert model.score([(np.eye(2), [[0, 1]])], [["a", "z"]]) == 0.5
    with pytest.raises(ValueError, match="label 'z'"):
        model.log_likelihood([(np.eye(2), [[0, 1]])], [["a", "z"]])


def test_graphs_without_edges_and_kinds_that_are_missing(rng):
    X, y = chains(rng)
    model = GraphCRF().fit(as_graphs(X), y)
    lonely = [(np.ones((1, 4)),), (np.ones((2, 4)), np.zeros((0, 2), int)), (np.ones((2, 4)), [])]
    assert [len(row) for row in model.predict(lonely)] == [1, 2, 2]
    # without edges, nodes are independent
    p = model.predict_marginals(lonely)
    np.testing.assert_allclose(p[1][0], p[0][0])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([], [], "at least one"),
        ([3], [[0]], "graph 0 must be"),
        ([(np.ones(2), [[0, 1]])], [[0, 1]], "must be a matrix"),
        ([(np.array([[np.nan], [1.0]]), [[0, 1]])], [[0, 1]], "must be finite"),
        ([(np.ones((2, 1)), [[0, 2]])], [[0, 1]], "nodes below"),
        ([(np.ones((2, 1)), [[1, 1]])], [[0, 1]], "different nodes, but row 0"),
        ([(np.ones((2, 1)), [[0, 1], [-1, -1]])], [[0, 1]], "without padding"),
        ([(np.ones((4, 1)), [[0, 1, 2], [1, 2, 3]])], [[0, 1, 1, 0]], "give its transpose"),
        ([(np.ones((2, 1)), [[0, 1]])], [np.eye(2)], "in one vector"),
        ([(np.ones((2, 1)), [[0.0, 1.0]])], [[0, 1]], "integer array"),
        ([(np.ones((2, 1)), [[0, 1]], np.ones((2, 1)))], [[0, 1]], "with 1 rows"),
        ([(np.ones((2, 1)), [[0, 1]])], [[0]], "2 nodes and 1 labels"),
        ([(np.ones((2, 1)), [[0, 1]])], [[0, 1], [1]], "each of 1 graphs"),
        ([(np.ones((2, 1)), [[0, 1]])], [[None, -1]], "no known label"),
        ([{"edges": [[0, 1]]}], [[0, 1]], "must have 'nodes'"),
        ([{"nodes": np.ones((2, 1)), "edge": [[0, 1]]}], [[0, 1]], "must have 'nodes'"),
        ([{"nodes": np.ones((2, 1)), "factors": [[0, 1]]}], [[0, 1]], "must be a dict"),
        ([{"nodes": np.ones((2, 1)), "edge_features": np.ones((1, 1))}], [[0, 1]], "edge_features"),
        ([{"nodes": {"a": np.ones((2, 1))}, "edges": {("a", "b"): [[0, 1]]}}], [[0, 1]], "must name the types"),
        ([(np.ones((2, 1)), []), (np.ones((2, 2)), [])], [[0, 1], [0, 1]], "same number of features"),
        ([(np.ones((2, 1)), []), {"nodes": {"a": np.ones((1, 1))}}], [[0, 1], [0]], "in all graphs or in none"),
        ([(np.zeros((0, 1)), [])], [[]], "no nodes"),
    ],
)
def test_bad_input_is_refused_and_changes_nothing(X, y, message):
    model = GraphCRF()
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert not [name for name in vars(model) if name.endswith("_")]


def test_new_data_must_be_like_the_old(rng):
    X, y = chains(rng)
    model = GraphCRF().fit(as_graphs(X), y)
    with pytest.raises(ValueError, match="not in the training data"):
        model.predict([{"nodes": np.ones((2, 4)), "edges": {"other": [[0, 1]]}}])
    with pytest.raises(ValueError, match="as many features"):
        model.predict([(np.ones((2, 3)), [[0, 1]])])
    with pytest.raises(ValueError, match="by type"):
        model.predict([{"nodes": {"node": np.ones((2, 4))}}])


def test_stopping_early_is_a_warning(rng):
    X, y = chains(rng)
    with pytest.warns(ConvergenceWarning, match="GraphCRF stopped at the iteration limit"):
        GraphCRF(max_iter=1).fit(as_graphs(X), y)


@pytest.mark.parametrize("engine", ["bp", "trw"])
def test_on_trees_approximate_engines_are_exact(rng, engine):
    X, y = chains(rng)
    exact, model = (GraphCRF(engine=name, tol=1e-8).fit(as_graphs(X), y) for name in ("exact", engine))
    np.testing.assert_allclose(exact.parameters_, model.parameters_, atol=1e-5)
    assert model.engine_ == engine
    for a, b in zip(model.predict(as_graphs(X)), exact.predict(as_graphs(X)), strict=True):
        np.testing.assert_array_equal(a, b)
    model.set_params(decoding="marginals")
    for row, p in zip(model.predict(as_graphs(X)), exact.predict_marginals(as_graphs(X)), strict=True):
        np.testing.assert_array_equal(row, p.argmax(1))


def test_blobs_by_tree_reweighted_belief_propagation(rng):
    edges = np.array([scope for scope in FactorGraph.grid(24, 24).factors if len(scope) == 2])
    rows, columns = np.mgrid[:24, :24]
    X, y = [], []
    for _ in range(4):
        z = np.zeros((24, 24), bool)
        for r, c, radius in zip(*rng.integers(0, 24, (2, 3)), rng.integers(3, 8, 3), strict=True):
            z |= (rows - r) ** 2 + (columns - c) ** 2 < radius**2
        X.append(((2.0 * z.ravel() - 1.0)[:, None] + 2.0 * rng.standard_normal((576, 1)), edges))
        y.append(z.ravel().astype(int))
    model = GraphCRF(engine="trw", symmetric=True, tol=1e-4, engine_options={"tol": 1e-6}).fit(X[:2], y[:2])
    pixels = GraphCRF().fit([(x,) for x, _ in X[:2]], y[:2])
    assert model.status_.ok
    assert model.score(X[2:], y[2:]) > pixels.score([(x,) for x, _ in X[2:]], y[2:]) + 0.08
    value, lower, upper = model.log_partition(X[2:], bounds=True)
    assert (lower < value).all()
    assert (value <= upper + 1e-9).all()


def test_one_wide_graph_does_not_make_all_approximate(rng):
    X, y = chains(rng, n=6)
    edges = np.array([scope for scope in FactorGraph.grid(5, 5).factors if len(scope) == 2])
    graphs = [*as_graphs(X[:3]), (rng.standard_normal((25, 4)), edges), *as_graphs(X[3:])]
    y = [*y[:3], rng.integers(0, 3, 25), *y[3:]]
    limit = FactorGraph.grid(5, 5, 3).cost().memory - 1.0
    model = GraphCRF(engine_options={"memory_limit": limit}).fit(graphs, y)
    assert model.engine_ == "mixed"
    narrow = np.arange(7) != 3
    value, lower, upper = model.log_partition(graphs, bounds=True)
    np.testing.assert_array_equal(lower == upper, narrow)
    marginals, predicted = model.predict_marginals(graphs), model.predict(graphs)
    model.set_params(engine="exact", engine_options=None)
    np.testing.assert_allclose(value[narrow], model.log_partition(graphs)[narrow], rtol=1e-12)
    assert lower[3] < model.log_partition(graphs)[3] < upper[3]
    for i in np.flatnonzero(narrow):
        np.testing.assert_allclose(marginals[i], model.predict_marginals(graphs)[i], atol=1e-12)
        np.testing.assert_array_equal(predicted[i], model.predict(graphs)[i])


def test_labels_that_are_spins_or_ignored_are_refused(rng):
    X, y = chains(rng, labels=2)
    graphs = as_graphs(X)
    fitted = GraphCRF().fit(graphs, y)
    spins = [2 * row - 1 for row in y]
    for labels in (
        spins,
        [row.astype(float) for row in spins],
        [row.tolist() for row in spins],
        [[None, *spins[0][1:]], *spins[1:]],
    ):
        with pytest.raises(ValueError, match="y holds -1 and 1 only: these are spins"):
            GraphCRF().fit(graphs, labels)
        with pytest.raises(ValueError, match="these are spins"):
            fitted.score(graphs, labels)
    ignored = [np.where(np.arange(len(row)) == 0, -100, row) for row in y]
    for use in (GraphCRF().fit, fitted.score, fitted.log_likelihood):
        with pytest.raises(ValueError, match=r"y holds -100.* Give None"):
            use(graphs, ignored)
    with pytest.warns(DataWarning, match="y has one label only, 0"):
        GraphCRF().fit(graphs, [-row for row in y])
    with pytest.raises(ValueError, match="classes must not hold -1"):
        GraphCRF(classes=[-1, 1]).fit(graphs, spins)


def test_spins_of_one_type_of_nodes_are_refused_by_its_name():
    X, y = small_graph()
    with pytest.raises(ValueError, match=r"y \(nodes of type 'b'\) holds -1 and 1 only"):
        GraphCRF().fit(X, [{"a": labels["a"], "b": [-1, 1]} for labels in y])


def test_unknown_labels_are_none_nan_or_minus_one(rng):
    X, y = chains(rng, labels=2)
    hidden = [rng.random(len(row)) < 0.3 for row in y]
    forms = (
        [np.where(h, -1, row) for h, row in zip(hidden, y, strict=True)],
        [np.where(h, np.nan, row) for h, row in zip(hidden, y, strict=True)],
        [[None if u else int(v) for u, v in zip(h, row, strict=True)] for h, row in zip(hidden, y, strict=True)],
    )
    fits = [GraphCRF().fit(as_graphs(X), labels) for labels in forms]
    for model in fits:
        assert len(model.classes_) == 2
        np.testing.assert_array_equal(model.parameters_, fits[0].parameters_)
    few = [np.where(row == 1, 1, -1) for row in y]  # with `classes` there is no doubt what -1 means
    assert GraphCRF(classes=[0, 1]).fit(as_graphs(X), few).classes_.tolist() == [0, 1]


def noisy(seed, shift=0.0, edge_shift=0.0, unit=1.0, n=20, labels=2):
    """Chains with features of nodes and edges."""
    rng = np.random.default_rng(seed)
    X, y = chains(rng, n=n, labels=labels, d=3)
    graphs = []
    for x, z in zip(X, y, strict=True):
        E = rng.standard_normal((len(z) - 1, 2)) + (np.diff(z) != 0)[:, None]
        graphs.append((unit * x + shift, chain_edges(len(z)), E + edge_shift))
    return graphs, y


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"labels": 3},
        {"symmetric": True},
        {"likelihood": "pseudo"},
        {"likelihood": "bethe"},
        {"l2": 0.0},
        {"classes": [0, 1, 2]},
        {"tables": {"edge": [[0.0, 0.0], [-np.inf, 0.0]]}},
    ],
    ids=str,
)
def test_a_shift_of_features_changes_nothing(options):
    options = dict(options)
    labels = options.pop("labels", 2)

    def fitted(**shifts):
        X, y = noisy(4, labels=labels, **shifts)
        y = [np.sort(row) for row in y] if "tables" in options else y
        model = GraphCRF(tol=1e-8, **options).fit(X, y)
        return model, np.concatenate(model.predict_marginals(noisy(2, labels=labels, **shifts)[0]))

    model, p = fitted()
    for shifts in ({"shift": 20.0}, {"shift": 1e4, "edge_shift": -300.0}):
        other, q = fitted(**shifts)
        np.testing.assert_allclose(p, q, atol=1e-6)
        for kind, W in other.weights_.items():
            np.testing.assert_allclose(W[:-1], model.weights_[kind][:-1], atol=1e-5)
        if options.get("likelihood") != "bethe":
            errors, others = model.standard_errors(), other.standard_errors()
            np.testing.assert_allclose(errors["node", "node"][:-1], others["node", "node"][:-1], rtol=1e-5, atol=1e-9)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
def test_a_change_of_units_is_a_change_of_the_penalty_only(unit):
    model, other = (GraphCRF(l2=0.0, tol=1e-8).fit(*noisy(4, unit=u)) for u in (1.0, unit))
    p, q = (np.concatenate(m.predict_marginals(noisy(2, unit=u)[0])) for m, u in ((model, 1.0), (other, unit)))
    np.testing.assert_allclose(p, q, atol=1e-6)
    np.testing.assert_allclose(other.weights_["node", "node"][:-1] * unit, model.weights_["node", "node"][:-1], atol=1e-5)


@pytest.mark.parametrize("penalize_intercept", [False, True])
def test_the_objective_is_that_of_the_features_as_they_are(penalize_intercept):
    """l2 keeps its meaning: weights are penalised as for features that are not standardised."""
    X, y = noisy(3, shift=2.0)
    model = GraphCRF(l2=0.3, penalize_intercept=penalize_intercept, tol=1e-8).fit(X, y)
    W, V = model.weights_["node", "node"], model.weights_["edge", "node", "node"]
    table = V[-1] if penalize_intercept else V[-1] + np.tensordot(np.concatenate([E for _, _, E in X]).mean(0), V[:-1], 1)
    penalty = (W[:-1] ** 2).sum() + (V[:-1] ** 2).sum() + (table**2).sum() + penalize_intercept * (W[-1] ** 2).sum()
    assert model.trace_.objective[-1] == pytest.approx(0.15 * penalty - model.log_likelihood(X, y).sum(), rel=1e-9)
    if not penalize_intercept:
        np.testing.assert_allclose(W.sum(1), 0.0, atol=1e-6)
        counts = np.concatenate(model.predict_marginals(X)).sum(0)  # free intercepts: expected counts are the observed ones
        np.testing.assert_allclose(counts, np.bincount(np.concatenate(y)), atol=1e-4)


def test_sparse_features_that_are_not_centred_give_the_same_model():
    X, y = noisy(1, shift=20.0)
    sparse = [(sp.csr_matrix(x), edges, sp.csr_matrix(E)) for x, edges, E in X]
    a, b = (GraphCRF(tol=1e-9, penalize_intercept=False).fit([g[:2] for g in graphs], y) for graphs in (X, sparse))
    p, q = (np.concatenate(m.predict_marginals([g[:2] for g in graphs])) for m, graphs in ((a, X), (b, sparse)))
    np.testing.assert_allclose(p, q, atol=1e-5)


def test_warm_starts_weights_of_zero_and_constant_columns_are_harmless():
    X, y = noisy(1, shift=100.0)
    model = GraphCRF(warm_start=True).fit(X, y)
    assert model.fit(X, y).n_iter_ == 0
    weights = np.arange(len(X)) >= 10
    some, kept = GraphCRF(tol=1e-8).fit(X, y, sample_weight=weights), GraphCRF(tol=1e-8).fit(X[10:], y[10:])
    np.testing.assert_allclose(some.parameters_, kept.parameters_, atol=1e-6)
    wide = [(np.column_stack([x, np.full(len(x), 1e6)]), edges, E) for x, edges, E in X]
    np.testing.assert_allclose(
        np.concatenate(GraphCRF(tol=1e-8).fit(wide, y).predict_marginals(wide)),
        np.concatenate(GraphCRF(tol=1e-8).fit(X, y).predict_marginals(X)),
        atol=1e-6,
    )
    bare = [(np.zeros((len(x), 0)), edges) for x, edges, _ in X]
    assert GraphCRF().fit(bare, y).weights_["node", "node"].shape == (1, 2)
    assert GraphCRF(fit_intercept=False).fit(bare, y).weights_["node", "node"].shape == (0, 2)


def test_many_weights_have_standard_errors_without_a_penalty_on_intercepts(rng, monkeypatch):
    X, y = noisy(1)
    model = GraphCRF().fit(X, y)
    exact = model.standard_errors()["node", "node"]
    monkeypatch.setattr("partita.graph.objective.information.SIZE_LIMIT", 3)
    drawn = model.standard_errors(draws=400, random_state=0)["node", "node"]
    np.testing.assert_allclose(drawn, exact, rtol=0.2)


def test_models_of_earlier_versions_take_edges_as_they_come(rng):
    X, y = noisy(1)
    model = GraphCRF().fit([g[:2] for g in X], y)
    both = [(x, np.concatenate([edges, edges[:, ::-1]])) for x, edges, _ in X]
    merged = model.log_partition(both)
    del model.directed_
    assert (np.abs(model.log_partition(both) - merged) > 1e-6).any()


def test_one_graph_one_node_and_one_label():
    for X, y in (
        ([(np.ones((1, 1)),)], [[0]]),
        ([(np.array([[0.0], [1.0]]), [[0, 1]])], [["a", "b"]]),
        ([(np.eye(4), [[0, 1]])], [[0, 1, 1, 0]]),  # isolated nodes
        ([(np.eye(4), [[0, 1], [2, 3]])], [[0, 1, 1, 0]]),  # two components
    ):
        model = GraphCRF().fit(X, y)
        assert np.isfinite(model.parameters_).all()
        assert model.status_.ok
        assert 0.0 <= model.score(X, y) <= 1.0


def test_features_in_data_frames_are_found_by_name(tmp_path):
    pandas = pytest.importorskip("pandas")
    X, y = noisy(1)
    framed = [(pandas.DataFrame(x, columns=list("abc")), e, pandas.DataFrame(E, columns=["u", "v"])) for x, e, E in X]
    turned = [(x[["c", "a", "b"]], e, E[["v", "u"]]) for x, e, E in framed]
    plain, model = GraphCRF().fit(X, y), GraphCRF().fit([framed[0], *turned[1:]], y)
    np.testing.assert_allclose(model.parameters_, plain.parameters_, atol=1e-6)
    assert model.columns_ == {("node", "node"): ["a", "b", "c"], "edge": ["u", "v"]}
    model.save(tmp_path / "m.partita")
    again = load(tmp_path / "m.partita")
    assert again.columns_ == model.columns_
    for graphs in (framed, turned):
        np.testing.assert_allclose(again.log_likelihood(graphs, y), plain.log_likelihood(X, y), atol=1e-6)
    with pytest.warns(UserWarning, match="does not have names of features"):
        model.predict(X)
    with pytest.raises(ValueError, match="X has no column 'b'"):
        model.predict([(x[["a", "c"]], e, E) for x, e, E in framed])


@pytest.mark.parametrize("part", ["indices", "indptr", "rows"])
def test_broken_sparse_features_are_refused(part):
    X, y = noisy(1)
    F = sp.csr_matrix(X[0][0])
    if part == "rows":
        F = F.tocoo()
        F.row[-1] = 10**6
    else:
        getattr(F, part)[-1] = 10**6
    with pytest.raises(ValueError, match="node features of graph 0 is a"):
        GraphCRF().fit([(F, *X[0][1:]), *X[1:]], y)


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("method", ["information", "sandwich"])
def test_without_edges_standard_errors_are_those_of_softmax_regression(rng, method, convert):
    X = rng.normal(20.0, 3.0, (120, 3))
    y = (X + rng.gumbel(0.0, 3.0, X.shape)).argmax(1)
    softmax = SoftmaxRegression().fit(X, y)
    model = GraphCRF(tol=1e-9).fit([(convert(x[None]), np.zeros((0, 2), int)) for x in X], [[label] for label in y])
    np.testing.assert_allclose(model.weights_["node", "node"][-1], softmax.intercept_, atol=1e-4)
    errors = model.standard_errors(method)["node", "node"].T
    np.testing.assert_allclose(errors, softmax.standard_errors(method), rtol=1e-4)


@pytest.mark.parametrize("label", [(0, 1), np.datetime64("2020-01-01")])
def test_labels_of_other_types_are_refused_by_name(label):
    labels = np.array([0, 1, None], dtype=object)
    labels[2] = label
    with pytest.raises(ValueError, match="labels must be strings or numbers, None for unknown"):
        GraphCRF().fit([(np.eye(3), np.array([[0, 1]]))], [labels])


def test_labels_may_be_arrays_of_pyarrow():
    pa = pytest.importorskip("pyarrow")
    X = [(np.eye(3), np.array([[0, 1]]))]
    assert GraphCRF().fit(X, [pa.array(["a", None, "b"])]).classes_.tolist() == ["a", "b"]
    assert ChainCRF().fit([np.eye(3)], [pa.array([0, None, 1])]).classes_.tolist() == [0, 1]


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_dates_are_refused_unless_their_column_is_ignored(rng, kind):
    pandas, module = pytest.importorskip("pandas"), pytest.importorskip(kind)

    def make(frame):
        if kind == "pandas":
            return frame
        return module.from_pandas(frame) if kind == "polars" else module.Table.from_pandas(frame)

    frame = pandas.DataFrame(rng.standard_normal((20, 2)), columns=["a", "b"])
    wide = frame.assign(day=pandas.date_range("2020-01-01", periods=20))[["day", "b", "a"]]
    y = [np.arange(20) % 2]
    model = GraphCRF().fit([(make(frame), [])], y)
    with pytest.raises(ValueError, match=r"column 'day' of X .* holds dates or times"):
        GraphCRF().fit([(make(wide), [])], y)
    with pytest.warns(DataWarning, match="'day': it is ignored"):
        assert model.score([(make(wide), [])], y) == model.score([(make(frame), [])], y)
