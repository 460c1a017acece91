"""Chains of tokens and labels against enumeration of both."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from enumeration import labellings
from sklearn.base import clone

from partita import BoltzmannChain, CompositeLikelihood, ConvergenceWarning, TooLargeError, load, minimize
from partita.chain.objective.boltzmann import BoltzmannChainLikelihood

N_TOKENS, N_LABELS = 3, 2


def problem(composite=None, lengths=(1, 4, 3, 5), sizes=(1.0, 1.0, 1.0), seed=0, l2=0.3):
    rng = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    x, y = rng.integers(0, N_TOKENS, offsets[-1]), rng.integers(0, N_LABELS, offsets[-1])
    weights = rng.random(len(lengths)) + 0.5
    return BoltzmannChainLikelihood(
        x, y, offsets, np.array(sizes), N_LABELS, composite=composite, weights=weights, l2=l2
    ), weights


def enumerated(objective, weights, parameters, windows):
    """F by summing over the tokens and labels of windows (chain, first place, length, weight)."""
    theta, A = objective.unpack(parameters)
    value = 0.5 * np.sum(objective.penalty * parameters**2)

    def score(x, y):
        return sum(theta[pair] for pair in zip(x, y, strict=True)) + sum(A[pair] for pair in itertools.pairwise(y))

    for s, first, k, weight in windows:
        rows = slice(*objective.offsets[s : s + 2])
        x, y = objective.x[rows].tolist(), objective.y[rows].tolist()
        scores = []
        for tokens in labellings(N_TOKENS, k).tolist():
            for labels in labellings(N_LABELS, k).tolist():
                changed = [*x[:first], *tokens, *x[first + k :]], [*y[:first], *labels, *y[first + k :]]
                scores.append(score(*changed) + np.log(objective.sizes[list(tokens)]).sum())
        value += weight * weights[s] * (np.logaddexp.reduce(scores) - score(x, y))
    return value


@pytest.mark.parametrize("rates", [{"full": 1.0}, {1: 1.0}, {2: 1.0}, {1: 0.5, 2: 0.3, "full": 0.1}])
@pytest.mark.parametrize("sizes", [(1.0, 1.0, 1.0), (1.0, 1.0, 7.0)])
def test_value_gradient_and_products(rates, sizes):
    lengths = (1, 4, 3, 5)
    objective, weights = problem(CompositeLikelihood(rates), lengths, sizes)
    theta = np.random.default_rng(1).standard_normal(objective.size)
    windows = [
        (s, first, k, rate)
        for s, T in enumerate(lengths)
        for order, rate in rates.items()
        for k in [T if order == "full" else min(order, T)]
        for first in range(T - k + 1)
    ]
    point = objective.at(theta)
    assert point.value == pytest.approx(enumerated(objective, weights, theta, windows), rel=1e-11)
    assert objective.scale == pytest.approx(sum(weights[s] * k * rate for s, _, k, rate in windows))
    direction, step = np.random.default_rng(2).standard_normal(objective.size), 1e-5
    up, down = objective.at(theta + step * direction), objective.at(theta - step * direction)
    assert point.gradient @ direction == pytest.approx((up.value - down.value) / (2 * step), rel=1e-7)
    np.testing.assert_allclose(point.hessian_product()(direction), (up.gradient - down.gradient) / (2 * step), atol=1e-6)
    moved, slope = point.along(direction).at(0.5)
    assert slope == pytest.approx(moved.gradient @ direction)
    if set(rates) == {1}:  # then the diagonal is exact for tokens
        product = point.hessian_product()
        exact = np.array([product(unit)[j] for j, unit in enumerate(np.eye(objective.size))])
        np.testing.assert_allclose(point.diagonal[:-4], exact[:-4], rtol=1e-10)


def test_scores_of_chains_add_up():
    objective, _ = problem(CompositeLikelihood({1: 1.0, 2: 0.5}), lengths=(5,) * 6)
    theta = np.random.default_rng(1).standard_normal(objective.size)
    point = objective.at(theta)
    each = np.array([point.score(unit) for unit in np.eye(6)])
    np.testing.assert_allclose(each.sum(0), objective.penalty * theta - point.gradient, atol=1e-10)
    one, _ = problem(CompositeLikelihood({1: 1.0, 2: 0.5}), lengths=(5,) * 6)
    one.objects.weights[one.objects.windows.chain != 2] = 0.0
    alone = one.with_weights([1.0, 1.0]).at(theta)
    np.testing.assert_allclose(each[2], one.penalty * theta - alone.gradient, atol=1e-10)


@pytest.mark.parametrize("solver", ["auto", "lbfgs"])
def test_minimum(solver):
    objective, _ = problem(CompositeLikelihood({1: 1.0, "full": 0.5}), lengths=(5,) * 20)
    solution = minimize(objective, solver=solver, tol=1e-9)
    assert np.abs(solution.point.gradient).max() <= 1e-9 * objective.scale
    assert solution.point.gap < 1e-10


def simulated(count, seed=0):
    """Sequences of a chain with tokens a..d and labels 0, 1, and its weights."""
    model = BoltzmannChain(n_tokens=4).fit([["a", "b", "c", "d"]], [[0, 1, 0, 1]])
    truth = np.random.default_rng(5)
    model.token_weights_ = np.vstack([truth.standard_normal((4, 2)), np.zeros((1, 2))])
    model.transition_weights_ = truth.standard_normal((2, 2))
    X, y = model.sample([6] * count, random_state=seed)
    return model, X, y


def test_probabilities_by_enumeration():
    X, y = [["a", "b"], ["b", "c", "a"], []], [[1, 0], [0, 0, 1], []]
    model = BoltzmannChain(l2=0.2, n_tokens=5).fit(X[:2], y[:2])
    assert model.n_unseen_ == 2
    theta, A, tokens = model.token_weights_, model.transition_weights_, ["a", "b", "c", "?", "??"]

    def score(x, labels):
        rows = [min(tokens.index(token), 3) for token in x]
        return sum(theta[pair] for pair in zip(rows, labels, strict=True)) + sum(A[p] for p in itertools.pairwise(labels))

    found = model.joint_log_proba([*X, ["?", "b", "c"]], [*y, [0, 1, 0]])
    for x, labels, value in zip([*X, ["?", "b", "c"]], [*y, [0, 1, 0]], found, strict=True):
        scores = [
            score([tokens[k] for k in others], codes)
            for others in labellings(len(tokens), len(x))
            for codes in labellings(2, len(x)).tolist()
        ]
        assert value == pytest.approx(score(x, labels) - np.logaddexp.reduce(scores), abs=1e-11)
    assert model.log_likelihood(X, y).tolist() == found[:3].tolist()
    x = ["b", "never seen", "a"]
    options = labellings(2, 3).tolist()
    scores = np.array([score(["b", "?", "a"], codes) for codes in options])
    assert model.predict([x, []]) == [options[scores.argmax()], []]
    p = np.exp(scores - np.logaddexp.reduce(scores))
    marginals = model.predict_marginals([x, []], as_array=True)
    np.testing.assert_allclose(marginals[0][:, 1], p @ np.array(options), atol=1e-12)
    assert model.predict_marginals([x])[0][0][1] == pytest.approx(marginals[0][0, 1])
    assert model.predict([[]]) == [[]]
    assert model.joint_log_proba([[]], [[]]) == 0.0


def test_tokens_not_in_training_are_alike():
    """Tokens that are given but never seen, and tokens that are only counted, are one model."""
    X, y = [["a", "b"], ["b", "a", "a"]], [[1, 0], [0, 0, 1]]
    counted = BoltzmannChain(l2=0.2, n_tokens=4, tol=1e-10).fit(X, y)
    codes = np.array([0, 1, 1, 0, 0]), np.array([1, 0, 0, 0, 1]), np.array([0, 2, 5])
    given = minimize(BoltzmannChainLikelihood(*codes, np.ones(4), 2, l2=0.2), tol=1e-10)
    theta = given.parameters[:8].reshape(4, 2)
    np.testing.assert_allclose(theta[2], theta[3], atol=1e-8)
    np.testing.assert_allclose(counted.token_weights_, theta[:3], atol=1e-7)


@pytest.mark.parametrize("likelihood", ["full", "pseudo", CompositeLikelihood({2: 0.5}, refresh=False, random_state=0)])
def test_estimates_are_consistent(likelihood):
    truth, X, y = simulated(40_000)
    model = BoltzmannChain(l2=1e-3, n_tokens=4, likelihood=likelihood).fit(X, y)
    sample = X[:200], y[:200]
    np.testing.assert_allclose(model.joint_log_proba(*sample), truth.joint_log_proba(*sample), atol=0.1)
    given = [model.predict_marginals(sample[0], as_array=True), truth.predict_marginals(sample[0], as_array=True)]
    np.testing.assert_allclose(np.concatenate(given[0]), np.concatenate(given[1]), atol=0.02)


def test_samples_have_the_probabilities_of_the_model():
    truth, X, y = simulated(40_000)
    pairs = [("abcd".index(x[2]), label[2], label[3]) for x, label in zip(X, y, strict=True)]
    found = np.bincount(np.ravel_multi_index(np.transpose(pairs), (4, 2, 2)), minlength=16) / len(X)
    b, q = truth._tokens_given_labels()
    scores = {
        codes: b[list(codes)].sum() + sum(truth.transition_weights_[p] for p in itertools.pairwise(codes))
        for codes in map(tuple, labellings(2, 6).tolist())
    }
    total, expected = np.logaddexp.reduce(list(scores.values())), np.zeros((4, 2, 2))
    for codes, value in scores.items():
        expected[:, codes[2], codes[3]] += np.exp(value - total) * q[:4, codes[2]]
    np.testing.assert_allclose(found, expected.ravel(), atol=5 * 0.5 / np.sqrt(len(X)))
    model = BoltzmannChain(n_tokens=50).fit([["a"]], [[0]])
    drawn = model.sample([200], random_state=0)[0][0]
    assert set(drawn) == {"a", None}


def test_weights_and_automatic_weights():
    _, X, y = simulated(60)
    factors = np.arange(60) % 3
    repeated = [i for i in range(60) for _ in range(factors[i])]
    one = BoltzmannChain(tol=1e-9).fit(X, y, sample_weight=factors)
    two = BoltzmannChain(tol=1e-9).fit([X[i] for i in repeated], [y[i] for i in repeated])
    np.testing.assert_allclose(one.token_weights_, two.token_weights_, atol=1e-7)
    auto = CompositeLikelihood({1: 1.0, 2: 0.5}, weights="auto", refresh=False, random_state=0)
    model = BoltzmannChain(likelihood=auto).fit(X, y)
    assert model.beta_[1] == 1.0
    assert 0.0 < model.beta_[2] < 10.0
    assert BoltzmannChain(likelihood="pseudo").fit(X, y).beta_ == {1: 1.0}


def test_scikit_learn_and_files(tmp_path):
    _, X, y = simulated(50)
    labels = [["NV"[k] for k in row] for row in y]
    model = BoltzmannChain(likelihood="pseudo", n_tokens=9).fit(X, labels)
    assert model.score(X, labels) > 0.5
    np.testing.assert_array_equal(clone(model).fit(X, labels).token_weights_, model.token_weights_)
    model.save(tmp_path / "model")
    for other in (load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        assert other.get_params() == model.get_params()
        assert other.predict([*X, ["new"]]) == model.predict([*X, ["new"]])
        np.testing.assert_array_equal(other.joint_log_proba(X, labels), model.joint_log_proba(X, labels))


def test_refusals():
    X, y = [["a", "b"]], [[0, 1]]
    with pytest.raises(ValueError, match="composite likelihoods need known labels"):
        BoltzmannChain(likelihood="pseudo").fit(X, [[0, None]])
    with pytest.raises(ValueError, match="tokens must be strings"):
        BoltzmannChain().fit([["a", 3]], y)
    with pytest.raises(ValueError, match="one list of tokens per sequence"):
        BoltzmannChain().fit(["ab"], y)
    with pytest.raises(ValueError, match="n_tokens must be at least 2"):
        BoltzmannChain(n_tokens=1).fit(X, y)
    with pytest.raises(ValueError, match="as many sequences"):
        BoltzmannChain().fit(X, [[0, 1], [1]])
    with pytest.raises(ValueError, match="no sequence with a position"):
        BoltzmannChain().fit([[]], [[]])
    with pytest.raises(ValueError, match="'pairs' are not available on chains"):
        BoltzmannChain(likelihood=CompositeLikelihood(pairs=[((0,), (1,))])).fit(X, y)
    with pytest.raises(ValueError, match="raise n_tokens"):
        BoltzmannChain(n_tokens=2).fit(X, y).predict([["c"]])
    with pytest.warns(ConvergenceWarning, match="BoltzmannChain stopped at the iteration limit"):
        BoltzmannChain(max_iter=1).fit(X, y)


def test_what_is_not_a_label_and_too_long_samples_are_refused(rng):
    X = [list(rng.choice(list("abc"), 5)) for _ in range(10)]
    y = [rng.integers(0, 2, 5) for _ in range(10)]
    model = BoltzmannChain().fit(X, y)
    with pytest.raises(ValueError, match="y holds -1 and 1 only"):
        BoltzmannChain().fit(X, [2 * row - 1 for row in y])
    with pytest.raises(ValueError, match=r"y holds -100"):
        BoltzmannChain().fit(X, [np.where(np.arange(5) == 0, -100, row) for row in y])
    with pytest.raises(TooLargeError, match=r"1e\+12 positions"):
        model.sample([10**12])
    with pytest.raises(ValueError, match="X must be a list"):
        BoltzmannChain().fit(None, y)
