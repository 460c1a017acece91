"""l1 penalties: optimality from scratch, the certificate, and the limits of the numbers."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import logsumexp

from partita import LBFGS, CapabilityError, Majorize, Newton, ProximalNewton, Status, l1_max, minimize
from partita.features import LabelFeatures
from partita.objectives import ElasticNet, Likelihood
from partita.softmax.estimators.softmax_regression import softmax_objective
from partita.structures import Categorical


def data(seed, n=120, p=15, classes=3, sparse=False):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.2, 3.0, p)
    if sparse:
        X *= rng.random(X.shape) < 0.3
    scores = X[:, :3] @ rng.standard_normal((3, classes)) + 0.5 * rng.standard_normal(classes)
    y = np.argmax(scores + rng.gumbel(size=scores.shape), axis=1)
    y[:classes] = np.arange(classes)
    return X, y


def value_and_gradient(X, y, coef, intercept, weights, log_prior):
    """The unpenalised loss and its gradient, written again in plain numpy."""
    X = np.asarray(X.todense()) if sp.issparse(X) else X
    scores = X @ coef.T + intercept
    if len(coef) == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    scores = scores + log_prior
    log_p = scores - logsumexp(scores, axis=1, keepdims=True)
    residual = np.exp(log_p)
    residual[np.arange(len(y)), y] -= 1.0
    residual *= weights[:, None]
    residual = residual[:, 1:] if len(coef) == 1 else residual
    return -(weights * log_p[np.arange(len(y)), y]).sum(), residual.T @ X, residual.sum(0)


def check_optimal(X, y, theta, objective, l1, l2, weights=None, log_prior=0.0, accuracy=1e-6):
    """Subgradient optimality, and the value, from scratch."""
    weights = np.ones(len(y)) if weights is None else weights
    coef, intercept = objective.features.unpack(theta)
    loss, gradient, sums = value_and_gradient(X, y, coef, intercept, weights, log_prior)
    gradient = gradient + l2 * coef
    zero = coef == 0.0
    assert np.all(np.abs(gradient[zero]) <= l1 + accuracy)
    np.testing.assert_allclose(gradient[~zero], -l1 * np.sign(coef[~zero]), atol=accuracy)
    if objective.features.intercept:
        np.testing.assert_allclose(sums, 0.0, atol=accuracy)
    return loss + l1 * np.abs(coef).sum() + 0.5 * l2 * (coef**2).sum()


@pytest.mark.parametrize("classes", [2, 3, 4])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("l2", [0.0, 0.7])
@pytest.mark.parametrize("intercept", [False, True])
def test_reaches_subgradient_optimality(classes, sparse, l2, intercept):
    for seed, share in ((0, 0.5), (1, 0.1), (2, 0.01)):
        X, y = data(seed, classes=classes, sparse=sparse)
        X = sp.csr_matrix(X) if sparse else X
        l1 = share * l1_max(X, y, fit_intercept=intercept)
        objective = softmax_objective(X, y, l1=l1, l2=l2, fit_intercept=intercept)
        solution = minimize(objective, tol=1e-10)
        assert solution.status in (Status.CONVERGED, Status.PRECISION)
        value = check_optimal(X, y, solution.parameters, objective, l1, l2)
        assert solution.value == pytest.approx(value, rel=1e-12)
        assert 0.0 <= solution.trace.gap[-1] <= 1e-6 * value
        assert np.all(np.diff(solution.trace.objective) <= 1e-15 * value)


def test_weights_and_prior_enter_the_optimum(rng):
    for classes in (2, 4):
        X, y = data(3, classes=classes)
        weights = rng.uniform(0.0, 3.0, len(y))
        weights[rng.integers(0, len(y), 10)] = 0.0
        prior = rng.uniform(0.5, 5.0, classes)
        objective = softmax_objective(X, y, l1=2.0, l2=0.0, weights=weights, prior=prior)
        solution = minimize(objective, tol=1e-11)
        value = check_optimal(X, y, solution.parameters, objective, 2.0, 0.0, weights, np.log(prior))
        assert solution.value == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("l2", [0.0, 1e-6, 2.0])
@pytest.mark.parametrize("options", [{}, {"fit_intercept": False}, {"penalize_intercept": True}], ids=str)
def test_gap_is_a_bound_everywhere_and_vanishes(classes, l2, options, rng):
    for seed in range(3):
        X, y = data(seed, n=60, classes=classes)
        prior = rng.uniform(0.3, 3.0, classes)
        weights = rng.uniform(0.1, 2.0, 60)
        objective = softmax_objective(X, y, l1=0.05 * l1_max(X, y), l2=l2, prior=prior, weights=weights, **options)
        optimum = minimize(objective, tol=1e-12).value
        tight = 1e-13 * optimum
        for size in (1e-3, 0.1, 1.0, 10.0):
            point = objective.at(size * rng.standard_normal(objective.size))
            assert point.gap >= point.value - optimum - tight
        solution = minimize(objective, solver=ProximalNewton(working_set=3, reduction=0.9), tol=1e-10)
        assert np.all(solution.trace.gap >= solution.trace.objective - optimum - tight)
        assert np.isfinite(solution.trace.gap).all()
        assert solution.trace.gap[-1] <= 1e-6 * optimum


def test_gap_is_not_a_loose_bound():
    """A certificate that is far above the true excess would stop nobody: near the optimum it shrinks with it."""
    X, y = data(0)
    objective = softmax_objective(X, y, l1=3.0, l2=0.0)
    gaps = minimize(objective, tol=1e-12).trace.gap
    assert gaps[-1] <= 1e-10 * gaps[0]


@pytest.mark.parametrize("classes", [2, 3])
def test_l1_max_is_where_the_path_begins(classes):
    for options in ({}, {"fit_intercept": False}, {"penalize_intercept": True}):
        X, y = data(5, classes=classes)
        top = l1_max(X, y, **options)
        for l2 in (0.0, 1.0):
            objective = softmax_objective(X, y, l1=1.0001 * top, l2=l2, **options)
            solution = minimize(objective, tol=1e-9)
            assert not solution.parameters[: objective.features.n_coefficients].any()
            assert solution.trace.gap[-1] <= 1e-9 * solution.value
            below = minimize(softmax_objective(X, y, l1=0.99 * top, l2=l2, **options), tol=1e-9)
            assert below.parameters[: objective.features.n_coefficients].any()


@pytest.mark.parametrize("classes", [2, 5])
def test_gram_and_column_descent_agree(classes):
    """More coordinates than the Gram matrix is held for: every step goes one column at a time."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 900)) * (rng.random((40, 900)) < 0.5)
    y = np.arange(40) % classes
    reference = None
    for matrix in (X, sp.csr_matrix(X)):
        for size in (30, 10_000):
            objective = softmax_objective(matrix, y, l1=0.3, l2=0.05)
            solution = minimize(objective, solver=ProximalNewton(working_set=size), tol=1e-9)
            assert solution.status is Status.CONVERGED
            coef = objective.features.unpack(solution.parameters)[0]
            reference = coef if reference is None else reference
            np.testing.assert_allclose(coef, reference, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_constant_zero_and_repeated_columns(classes):
    X, y = data(7, classes=classes)
    X = np.hstack([X, np.zeros((len(X), 1)), np.full((len(X), 1), 3.0), X[:, :2]])
    for matrix in (X, sp.csr_matrix(X)):
        objective = softmax_objective(matrix, y, l1=1.0, l2=0.0)
        solution = minimize(objective, tol=1e-9)
        check_optimal(X, y, solution.parameters, objective, 1.0, 0.0)
        coef = objective.features.unpack(solution.parameters)[0]
        assert not coef[:, 15:17].any()  # nothing to gain from a column without spread beside a free intercept
    started = objective.features.pack(np.ones_like(coef), np.zeros(len(coef)))
    again = minimize(objective, started, tol=1e-9)
    assert again.value == pytest.approx(solution.value, rel=1e-9)
    assert not objective.features.unpack(again.parameters)[0][:, 15].any()


@pytest.mark.parametrize("factor", [1e-6, 1e6])
def test_scale_of_the_data_does_not_matter(factor):
    X, y = data(8)
    first = minimize(softmax_objective(X, y, l1=2.0, l2=0.0), tol=1e-9)
    scaled = minimize(softmax_objective(factor * X, y, l1=2.0 * factor, l2=0.0), tol=1e-9 * factor)
    assert scaled.value == pytest.approx(first.value, rel=1e-9)


def test_a_forbidden_label_stays_out():
    X, y = data(4, classes=3)
    y[y == 1] = 2
    y[:3] = [0, 2, 0]
    y = np.append(y, 1)  # so that the class exists; it weighs nothing
    X, weights = np.vstack([X, X[:1]]), np.append(np.ones(len(X)), 0.0)
    objective = softmax_objective(X, y, l1=1.0, l2=0.0, prior=[1.0, 0.0, 1.0], weights=weights)
    solution = minimize(objective, tol=1e-9)
    pair = minimize(softmax_objective(X[:-1], y[:-1], l1=1.0, l2=0.0), tol=1e-9)
    assert not objective.features.unpack(solution.parameters)[0][1].any()
    assert solution.value == pytest.approx(pair.value, rel=1e-9)  # the least |a| + |b| with a - b given is |a - b|
    assert solution.trace.gap[-1] <= 1e-6 * solution.value


@pytest.mark.parametrize("classes", [2, 3])
def test_recovers_from_a_saturated_start(classes):
    X, y = data(9, classes=classes)
    objective = softmax_objective(X, y, l1=1.0, l2=0.0)
    optimum = minimize(objective, tol=1e-10).value
    start = 1000.0 * np.random.default_rng(0).standard_normal(objective.size)
    solution = minimize(objective, start, tol=1e-8)
    assert solution.value == pytest.approx(optimum, rel=1e-8)
    assert np.all(np.diff(solution.trace.objective) <= 0.0)


def test_other_solvers_say_what_is_missing():
    X, y = data(0)
    objective = softmax_objective(X, y, l1=1.0)
    for solver in (Newton(), LBFGS(), Majorize(), "cg", "steepest"):
        with pytest.raises(CapabilityError, match="a gradient without jumps"):
            minimize(objective, solver=solver)
    with pytest.raises(CapabilityError, match="descent on some of its coordinates"):
        minimize(softmax_objective(X, y), solver="proximal")


def test_bad_parameters_are_named():
    X, y = data(0)
    likelihood = softmax_objective(X, y, l2=0.0)
    with pytest.raises(ValueError, match="l1 must be finite and non-negative"):
        ElasticNet(likelihood, -1.0)
    with pytest.raises(ValueError, match="every coefficient needs"):
        ElasticNet(likelihood, np.arange(likelihood.size) % 2.0)
    labels = Likelihood(LabelFeatures(np.ones((6, 2)), [3, 3]), Categorical([3, 3]), [0, 1])
    with pytest.raises(ValueError, match="linear feature map"):
        ElasticNet(labels, 1.0)
    with pytest.raises(ValueError, match="reduction must be in"):
        ProximalNewton(reduction=1.0)
