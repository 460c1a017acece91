"""`predict_kbest` of every estimator against enumeration, and draws against probabilities."""

from __future__ import annotations

import itertools

import matrix
import numpy as np
import pytest
import zoo
from scipy.stats import chisquare

import partita as pt

CLASSES = ("SoftmaxRegression", "LatentSoftmax", "HiddenChainCRF")
#: Whose draws and best outputs have tests of their own.
ELSEWHERE = ("BayesianNetwork",)


def outputs(name, index):
    """All outputs of an example."""
    subject = matrix.SUBJECTS[name]
    model, X = matrix.plain(name), subject.data[0]
    if name in CLASSES:
        return list(model.classes_.tolist())
    if name in ("ChainCRF", "LatentDynamicCRF", "BoltzmannChain"):
        return [list(y) for y in itertools.product(model.classes_.tolist(), repeat=len(X[index]))]
    if name == "GraphCRF":
        return [np.array(y) for y in itertools.product(model.classes_.tolist(), repeat=len(X[index][0]))]
    if name == "MarkovNetwork":
        return list(itertools.product(*map(range, model.cardinalities_.tolist())))
    if name == "MatchingCRF":
        return [np.array(y) for y in itertools.permutations(range(np.shape(X[index])[1]))]
    if name == "DependencyCRF":
        return trees(len(X[index]))
    size = np.shape(X[index])[1]
    return [np.isin(np.arange(size), chosen).astype(int) for chosen in itertools.combinations(range(size), 2)]


def trees(n):
    """Heads of words with one at the root."""
    found = []
    for heads in itertools.product(range(n + 1), repeat=n):
        if heads.count(0) != 1:
            continue
        reached = {0}
        for _ in range(n):
            reached |= {d + 1 for d in range(n) if heads[d] in reached}
        if len(reached) == n + 1:
            found.append(np.array(heads))
    return found


@pytest.mark.parametrize("name", [name for name in matrix.SUBJECTS if name not in ELSEWHERE])
def test_the_k_best_are_the_k_best(name):
    model, X = matrix.plain(name), matrix.SUBJECTS[name].data[0]
    index = 0
    asked = [[None] * len(X[0])] if name == "MarkovNetwork" else X[index : index + 1]
    each = outputs(name, index)
    if name == "MarkovNetwork":
        logs = model.log_likelihood(each)
    else:
        logs = np.concatenate([model.log_likelihood(asked, [y]) for y in each])
    if name == "BoltzmannChain":  # which models the tokens too
        logs = logs - np.logaddexp.reduce(logs)
    best = np.sort(logs)[::-1]
    for k in (1, 3, len(each) + 5):
        (found,) = model.predict_kbest(asked, k)
        close = 1e-4 if name == "OracleCRF" else 1e-9  # log Z_H is certain to so much
        np.testing.assert_allclose([value for _, value in found], best[:k], atol=close)
        listed = [np.array(y).tolist() for y, _ in found]
        assert len({str(y) for y in listed}) == len(found)
        for y, value in found[:5]:
            place = [np.array(other).tolist() for other in each].index(np.array(y).tolist())
            assert logs[place] == pytest.approx(value, abs=close)
    with pytest.raises(ValueError, match="k must be"):
        model.predict_kbest(asked, 0)


@pytest.mark.parametrize("name", ["ChainCRF", "LatentDynamicCRF", "GraphCRF", "DependencyCRF"])
def test_draws_have_the_probabilities_of_outputs(name):
    model, X = matrix.plain(name), matrix.SUBJECTS[name].data[0]
    index = min((i for i in range(len(X)) if len(X[i]) > 1), key=lambda i: len(X[i]))
    each = outputs(name, index)
    p = np.exp([model.log_likelihood(X[index : index + 1], [y])[0] for y in each])
    drawn = model.sample(X[index : index + 1], size=4000, random_state=3)[0]
    rows = np.array(drawn).T if name == "GraphCRF" else np.array(drawn)
    keys = {str(np.array(y).tolist()): i for i, y in enumerate(each)}
    counts = np.bincount([keys[str(row)] for row in rows.tolist()], minlength=len(each))
    rare = p * 4000 < 5.0
    observed, expected = np.append(counts[~rare], counts[rare].sum()), np.append(p[~rare], p[rare].sum())
    if expected[-1] * 4000 < 5.0:
        observed, expected = observed[:-1], expected[:-1]
    assert chisquare(observed, observed.sum() * expected / expected.sum()).pvalue > 1e-3


def test_empty_sequences_have_one_labelling():
    for name in ("ChainCRF", "LatentDynamicCRF", "BoltzmannChain"):
        assert matrix.plain(name).predict_kbest([[]], 3) == [[([], 0.0)]]


def test_b_matchings_by_the_partition_of_edges(rng):
    X = rng.standard_normal((6, 2, 3, 4))
    y = [np.array([[1, 1, 0, 0], [0, 0, 1, 1], [1, 0, 1, 0]])] * 6
    model = pt.MatchingCRF(b=2, allow_unmatched=True).fit(X, y)
    (found,) = model.predict_kbest(X[:1], 6)
    tables = [np.array(t).reshape(3, 4) for t in itertools.product((0, 1), repeat=12)]
    tables = [t for t in tables if t.sum(0).max() <= 2 and t.sum(1).max() <= 2]
    weights = (X[0] * model.parameters_[:, None, None]).sum(0)
    alone = model.row_parameters_[0] if len(model.row_parameters_) else 0.0
    logs = np.array([(t * weights).sum() + alone * (2 - t.sum(1)).sum() for t in tables])
    logs -= np.logaddexp.reduce(logs)
    np.testing.assert_allclose([value for _, value in found], np.sort(logs)[::-1][:6], atol=1e-8)


def test_graphs_with_forbidden_tables_list_what_is_possible():
    table = np.array([[0.0, -np.inf], [0.0, 0.0]])
    model = pt.GraphCRF(tables={"edge": table}).fit(*two_labels())
    (found,) = model.predict_kbest(two_labels()[0][:1], 50)
    assert len(found) == 4  # of eight, without a 0 before a 1
    assert sum(np.exp(value) for _, value in found) == pytest.approx(1.0)


def two_labels():
    edges = np.array([[0, 1], [1, 2]])
    X = [(np.array([[1.0], [float(i % 2)], [-1.0]]), edges) for i in range(6)]
    return X, [[1, i % 2, 0] for i in range(6)]


def test_rows_of_markov_networks_keep_what_is_known():
    model = matrix.plain("MarkovNetwork")
    row = np.array([[1, -1, 0, -1]])[:, : zoo.STATES.shape[1]]
    (found,) = model.predict_kbest(row, 10)
    assert len(found) == 2 ** int((row < 0).sum())
    assert all((y[row[0] >= 0] == row[0][row[0] >= 0]).all() for y, _ in found)
    assert sum(np.exp(value) for _, value in found) == pytest.approx(1.0)
