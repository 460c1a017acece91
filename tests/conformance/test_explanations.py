"""`explain`: pushes are shares of the difference of two scores, of the label that was predicted and the runner-up."""

from __future__ import annotations

import itertools

import matrix
import numpy as np
import pytest
import scipy.sparse as sp

import partita as pt


def total(entry):
    return sum(push.contribution for push in entry.pushes)


def explained(name):
    X = matrix.SUBJECTS[name].data[0]
    return matrix.plain(name), X, matrix.plain(name).explain(X[:1] if name == "BayesianNetwork" else X[0])


@pytest.mark.parametrize("name", ["SoftmaxRegression", "LatentSoftmax", "HiddenChainCRF"])
def test_pushes_of_a_class_sum_to_the_difference_of_log_probabilities(name):
    model, X, told = explained(name)
    (entry,) = told.positions
    p = model.predict_log_proba(X[:1])[0]
    first, second = np.argsort(-p)[:2]
    assert (entry.label, entry.runner_up) == (model.classes_[first], model.classes_[second])
    assert total(entry) == pytest.approx(p[first] - p[second], abs=1e-9)
    assert entry.probability == pytest.approx(np.exp(p[first]))
    assert str(entry.label) in str(told)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("classes", [2, 3])
def test_rows_of_tables_are_explained_by_columns(rng, sparse, classes):
    X = rng.standard_normal((40, 3)) * (rng.random((40, 3)) < 0.7)
    y = (X[:, 0] > 0).astype(int) + (X[:, 1] > 0.5) * (classes == 3)
    given = sp.csr_matrix(X) if sparse else X
    model = pt.SoftmaxRegression(prior=np.arange(1.0, classes + 1.0)).fit(given, y)
    told = model.explain(given[:4])
    for p, x, entry in zip(model.predict_log_proba(given[:4]), X, told.positions, strict=False):
        first, second = np.argsort(-p)[:2]
        assert total(entry) == pytest.approx(p[first] - p[second], abs=1e-10)
        names = {push.feature for push in entry.pushes}
        assert names <= {"x0", "x1", "x2", "intercept", "prior"}
        assert not any(f"x{j}" in names for j in np.flatnonzero(x == 0.0))


def log_p(model, name, x, y):
    return float(model.log_likelihood([x], [y])[0])


@pytest.mark.parametrize("name", ["ChainCRF", "LatentDynamicCRF", "BoltzmannChain", "GraphCRF"])
def test_pushes_at_a_position_sum_to_the_difference_of_two_labellings(name):
    model, X, told = explained(name)
    predicted = list(model.predict(X[:1])[0])
    assert len(told.positions) == len(predicted)
    for entry in told.positions:
        other = list(predicted)
        other[entry.position] = entry.runner_up
        assert predicted[entry.position] == entry.label
        difference = log_p(model, name, X[0], predicted) - log_p(model, name, X[0], other)
        assert total(entry) == pytest.approx(difference, abs=1e-9)
    P = model.predict_marginals(X[:1])[0]
    classes = model.classes_.tolist()
    for entry in told.positions:
        p = P[entry.position]
        p = p[entry.label] if isinstance(p, dict) else p[classes.index(entry.label)]
        assert entry.probability == pytest.approx(p)


def test_pushes_of_states_given_all_others_or_of_what_is_unknown():
    model = matrix.plain("MarkovNetwork")
    row = matrix.SUBJECTS["MarkovNetwork"].data[0][0]
    told = model.explain(row)
    assert [entry.position for entry in told.positions] == list(range(len(row)))
    for entry in told.positions:
        other = row.copy()
        other[entry.position] = entry.runner_up
        difference = model.log_likelihood([row])[0] - model.log_likelihood([other])[0]
        assert total(entry) == pytest.approx(difference, abs=1e-9)
        assert entry.label == row[entry.position]
        assert entry.probability == pytest.approx(1.0 / (1.0 + np.exp(-difference)))
    hidden = row.copy()
    hidden[1] = -1
    (entry,) = model.explain(hidden).positions
    assert entry.position == 1
    assert entry.probability == pytest.approx(model.predict_marginals([hidden])[1][0].max())


def test_pushes_of_distributions():
    model = matrix.plain("BayesianNetwork")
    frame = matrix.SUBJECTS["BayesianNetwork"].data[0].iloc[:1]
    for entry in model.explain(frame).positions:
        other = frame.copy()
        other[entry.position] = entry.runner_up
        difference = model.log_likelihood(frame)[0] - model.log_likelihood(other)[0]
        assert total(entry) == pytest.approx(difference, abs=1e-9)
    hidden = frame.astype(object)
    hidden.loc[:, "b"] = None
    (entry,) = model.explain(hidden).positions
    P = model.predict_proba(hidden)["b"][0]
    assert entry.probability == pytest.approx(P.max())
    with pytest.raises(ValueError, match="one row"):
        model.explain(matrix.SUBJECTS["BayesianNetwork"].data[0])


def test_pushes_of_pairs_of_words_and_of_edges():
    model, X, told = explained("DependencyCRF")
    assert [entry.label for entry in told.positions] == model.predict(X[:1])[0].tolist()
    P = model.predict_marginals(X[:1])[0]
    assert all(entry.probability == pytest.approx(P[entry.label, entry.position]) for entry in told.positions)
    data, scores = model._scores(X[:1])
    table = {(int(h), int(d)): s for (h, d), s in zip(data.trees.pairs(), scores, strict=True)}
    for entry in told.positions:
        difference = table[entry.label, entry.position] - table[entry.runner_up, entry.position]
        assert total(entry) == pytest.approx(difference, abs=1e-10)

    model, X, told = explained("MatchingCRF")
    assert [entry.label for entry in told.positions] == model.predict(X[:1])[0].tolist()
    weights = np.tensordot(model.parameters_, np.asarray(X[0]), 1)
    for entry in told.positions:
        row = weights[entry.position]
        assert total(entry) == pytest.approx(row[entry.label] - row[entry.runner_up], abs=1e-10)

    model, X, told = explained("OracleCRF")
    chosen = model.predict(X[:1])[0]
    scores = model.parameters_ @ np.asarray(X[0])
    for entry, part, score in zip(told.positions, chosen, scores, strict=True):
        assert entry.label == ("in" if part else "out")
        assert total(entry) == pytest.approx(score if part else -score, abs=1e-10)


@pytest.mark.parametrize("options", [{"allow_unmatched": True}, {"b": 2, "allow_unmatched": True}, {"bipartite": False}])
def test_matchings_of_all_kinds_are_explained(rng, options):
    X = rng.standard_normal((8, 2, 4, 4))
    X = X + X.transpose(0, 1, 3, 2)
    if "b" in options:
        y = [np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 0, 1], [0, 0, 0, 0]])] * 8
    else:
        y = [np.array([1, 0, 3, 2])] * 8 if options.get("bipartite") is False else [np.array([0, 1, -1, 2])] * 8
    model = pt.MatchingCRF(**options).fit(X, y)
    told = model.explain(X[0])
    found = model.predict(X[:1])[0]
    if "b" in options:
        assert all((entry.label == "in") == bool(found[entry.position]) for entry in told.positions)
    else:
        assert [-1 if entry.label is None else entry.label for entry in told.positions] == found.tolist()
    assert "push" in str(told)


def test_features_of_graphs_are_called_by_their_names(rng):
    pandas = pytest.importorskip("pandas")
    edges = np.array([[0, 1], [1, 2]])
    X = [(pandas.DataFrame(rng.standard_normal((3, 2)), columns=["red", "green"]), edges) for _ in range(8)]
    y = [(frame["red"] > 0).map({True: "on", False: "off"}).tolist() for frame, _ in X]
    text = str(pt.GraphCRF().fit(X, y).explain(X[0]))
    assert "red" in text
    assert "edge with node 1 (" in text


def test_k_best_states_of_bayesian_networks():
    model = matrix.plain("BayesianNetwork")
    partial = matrix.SUBJECTS["BayesianNetwork"].partial[0].iloc[:6].copy()
    partial.loc[partial.index[0], ["a", "c"]] = None
    for i, found in enumerate(model.predict_kbest(partial, 50)):
        row = partial.iloc[[i]]
        unknown = [name for name in row.columns if row[name].isna().any()]
        counts = [len(model.states_[name]) for name in unknown]
        assert len(found) == int(np.prod(counts))
        assert sum(np.exp(value) for _, value in found) == pytest.approx(1.0)
        given = model.log_likelihood(row)[0]
        for states, value in found:
            whole = row.copy()
            for name, state in states.items():
                whole[name] = state
            assert model.log_likelihood(whole)[0] - given == pytest.approx(value, abs=1e-9)
        assert all(a[1] >= b[1] for a, b in itertools.pairwise(found))
