"""Boltzmann chains some of whose labels are unknown, or one of a set, and their n-best labellings, by enumeration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from enumeration import labellings

from partita import BoltzmannChain, CompositeLikelihood, minimize
from partita.chain.objective.boltzmann import BoltzmannChainLikelihood
from partita.core.contracts.capabilities import Capability

WEIGHTS = np.array([1.0, 2.0, 0.5, 1.0])
SETS = np.array([[True, True, True], [True, False, True]])


def problem(composite=None):
    rng = np.random.default_rng(4)
    offsets = np.array([0, 1, 4, 7, 9])
    x, y = rng.integers(0, 3, 9), rng.integers(0, 3, 9)
    y[[0, 2, 3, 7]] = [-2, -1, -2, -1]
    return BoltzmannChainLikelihood(
        x,
        y,
        offsets,
        np.array([1.0, 1.0, 4.0]),
        3,
        sets=SETS,
        composite=composite,
        weights=np.array([1.0, 2, 0.5, 1]),
        l2=0.3,
    )


def agrees(labels, known):
    return all(a == b if b >= 0 else SETS[-1 - b][a] for a, b in zip(labels, known, strict=True))


def enumerated(objective, parameters):
    theta, A = objective.unpack(parameters)
    value = 0.5 * np.sum(objective.penalty * parameters**2)
    for i, weight in enumerate(WEIGHTS):
        rows = slice(*objective.offsets[i : i + 2])
        x, known = objective.x[rows].tolist(), objective.y[rows].tolist()
        inside, outside = [], []
        for y in labellings(3, len(x)).tolist():
            moves = sum(A[pair] for pair in itertools.pairwise(y))
            if agrees(y, known):
                inside.append(moves + theta[x, y].sum())
            for tokens in labellings(3, len(x)).tolist():
                outside.append(moves + theta[tokens, y].sum() + np.log(objective.sizes[tokens]).sum())
        value += weight * (np.logaddexp.reduce(outside) - np.logaddexp.reduce(inside))
    return value


def test_unknown_labels_are_summed_out():
    objective = problem()
    theta = np.random.default_rng(1).standard_normal(objective.size)
    point = objective.at(theta)
    assert point.value == pytest.approx(enumerated(objective, theta), rel=1e-12)
    moves = 1e-6 * np.eye(objective.size)
    slopes = [(enumerated(objective, theta + m) - enumerated(objective, theta - m)) / 2e-6 for m in moves]
    np.testing.assert_allclose(point.gradient, slopes, atol=1e-7)
    v = np.random.default_rng(2).standard_normal(objective.size)
    change = (objective.at(theta + 1e-6 * v).gradient - objective.at(theta - 1e-6 * v).gradient) / 2e-6
    np.testing.assert_allclose(point.hessian_product()(v), change, atol=1e-7)
    factors = np.array([1.0, -2.0, 0.5, 3.0])
    parts = [np.asarray(point.score(unit)) for unit in np.eye(4)]
    np.testing.assert_allclose(point.score(factors), factors @ parts, atol=1e-12)
    np.testing.assert_allclose(point.score(np.ones(4)), -(point.gradient - objective.penalty * theta), atol=1e-12)
    assert point.gap == np.inf


def test_all_solvers_end_where_the_slope_vanishes():
    objective = problem()
    assert Capability.EM_STEP in objective.capabilities
    for solver in ("auto", "lbfgs", "newton", "em"):
        solution = minimize(objective, solver=solver, tol=1e-9)
        assert np.abs(objective.at(solution.parameters).gradient).max() <= 2e-8, solver


def test_composites_need_known_neighbours():
    with pytest.raises(ValueError, match="they condition on the neighbours"):
        problem(CompositeLikelihood({1: 1.0}))
    whole = problem(CompositeLikelihood({"full": 1.0}))
    assert whole.at(np.zeros(whole.size)).value == pytest.approx(problem().at(np.zeros(whole.size)).value)


X = [["a", "b", "a"], ["b"], [], ["c", "a"], ["b", "b", "c", "a"]]
Y = [["s", None, {"s", "t"}], ["u"], [], ["t", "u"], [None, "u", "t", {"u", "s"}]]


def test_the_estimator_reads_unknown_labels():
    model = BoltzmannChain(l2=0.2, tol=1e-9).fit(X, Y)
    assert model.classes_.tolist() == ["s", "t", "u"]
    whole = [["s", "t", "u"]] * 3
    each = [list(labels) for labels in itertools.product(*whole)]
    found = model.log_likelihood([X[0]] * len(each), each)
    allowed = [y[0] == "s" and y[2] in ("s", "t") for y in each]
    expected = np.logaddexp.reduce(found[np.array(allowed)])
    assert model.log_likelihood([X[0]], [Y[0]])[0] == pytest.approx(expected, rel=1e-12)
    theta = np.concatenate([np.ravel(model.token_weights_), np.ravel(model.transition_weights_)])
    value = -model.log_likelihood(X, Y).sum() + 0.1 * float(theta @ theta)
    assert model.trace_.objective[-1] == pytest.approx(value, rel=1e-10)
    assert 0.0 <= model.score(X, Y) <= 1.0


def test_labels_all_known_are_as_before():
    y = [["s", "t", "u"], ["u"], [], ["t", "u"], ["s", "u", "t", "u"]]
    sets = [[{label} for label in row] for row in y]
    one, other = BoltzmannChain(l2=0.2).fit(X, y), BoltzmannChain(l2=0.2).fit(X, sets)
    np.testing.assert_allclose(one.token_weights_, other.token_weights_, atol=1e-4)


def test_n_best_labellings_by_enumeration():
    model = BoltzmannChain(l2=0.1).fit(X, Y)
    for row, found in zip(X, model.predict_kbest(X, 5), strict=True):
        each = [list(labels) for labels in itertools.product("stu", repeat=len(row))]
        joint = model.log_likelihood([row] * len(each), each)
        given = joint - np.logaddexp.reduce(joint)
        order = np.argsort(-given)[:5]
        np.testing.assert_allclose([value for _, value in found], given[order], atol=1e-12)
        for labels, value in found:
            assert given[each.index(labels)] == pytest.approx(value, abs=1e-12)
    assert [found[0][0] for found in model.predict_kbest(X, 1)] == model.predict(X)


def test_scores_of_chains_known_in_part_sum_to_the_gradient():
    objective = problem()
    theta = np.random.default_rng(2).standard_normal(objective.size)
    point = objective.at(theta)
    rows = np.vstack(list(point.score_chunks()))
    assert rows.shape == (4, objective.size)
    np.testing.assert_allclose(-rows.sum(axis=0), point.gradient - objective.penalty * theta, rtol=0, atol=1e-12)
    for i, row in enumerate(rows):  # each chain by itself
        np.testing.assert_allclose(point.score(np.eye(4)[i]), row, rtol=0, atol=1e-12)
