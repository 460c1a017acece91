from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime

from partita import Status, minimize
from partita.core import Workers
from partita.features import LabelFeatures, linear_map
from partita.objectives import Likelihood
from partita.softmax.estimators.softmax_regression import softmax_objective
from partita.structures import Binary, Categorical


def problems(rng):
    """Every kind of objective on a few examples: name, objective, and the loss in plain numpy."""
    X = rng.standard_normal((30, 4))
    w = rng.random(30)
    y3, y2 = rng.integers(0, 3, 30), rng.integers(0, 2, 30)
    for name, matrix in (("dense", X), ("sparse", sp.csr_matrix(X))):
        for n, y in ((3, y3), (2, y2)):
            features = linear_map(matrix, 1 if n == 2 else n, True)
            prior = np.arange(1.0, n + 1.0)
            structure = Binary(prior) if n == 2 else Categorical(n, prior)
            penalty = rng.random(features.size)
            objective = Likelihood(features, structure, y, weights=w, penalty=penalty)

            def plain(theta, features=features, prior=prior, y=y, penalty=penalty, n=n):
                coef, bias = features.unpack(theta)
                scores = X @ coef.T + bias
                if n == 2:
                    scores = np.hstack([np.zeros((30, 1)), scores])
                scores = scores + np.log(prior)
                return w @ (np.logaddexp.reduce(scores, axis=1) - scores[np.arange(30), y]) + 0.5 * penalty @ theta**2

            yield f"{name}-{n}", objective, plain
    counts = rng.integers(1, 5, 30)
    F = rng.standard_normal((counts.sum(), 6))
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    y = rng.integers(0, counts)

    def ragged(theta):
        u = F @ theta
        return sum(
            w[i] * (np.logaddexp.reduce(u[s : s + c]) - u[s + y[i]])
            for i, (s, c) in enumerate(zip(starts, counts, strict=True))
        ) + 0.15 * (theta @ theta)

    yield "labels", Likelihood(LabelFeatures(F, counts), Categorical(counts), y, weights=w, penalty=0.3), ragged


@pytest.fixture(params=range(5), ids=["dense-3", "dense-2", "sparse-3", "sparse-2", "labels"])
def problem(request, rng):
    return list(problems(rng))[request.param]


def test_value_gradient_and_hessian(problem, rng):
    _, objective, plain = problem
    theta = 0.5 * rng.standard_normal(objective.size)
    point = objective.at(theta)
    assert point.value == pytest.approx(plain(theta), rel=1e-12)
    np.testing.assert_allclose(point.gradient, approx_fprime(theta, plain, 1e-7), atol=2e-4)
    v, h = rng.standard_normal(objective.size), 1e-5
    difference = (objective.at(theta + h * v).gradient - objective.at(theta - h * v).gradient) / (2 * h)
    product = point.hessian_product()(v)
    np.testing.assert_allclose(product, difference, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(point.model("hessian").matrix() @ v, product, atol=1e-10)


def test_rays_and_subspaces_are_the_objective(problem, rng):
    _, objective, plain = problem
    theta, a, b = (0.5 * rng.standard_normal(objective.size) for _ in range(3))
    point = objective.at(theta)
    ray = point.along(a)
    trial, slope = ray.at(0.7)
    assert trial.value == pytest.approx(plain(theta + 0.7 * a), rel=1e-12)
    assert slope == pytest.approx(trial.gradient @ a, rel=1e-9)
    plane = trial.subspace([b], momentum=True)
    assert plane.dimension == 2
    c = np.array([0.3, -0.4])
    value, gradient, hessian = plane.evaluate(c)
    there = plane.at(c)
    expected = theta + 0.7 * a + 0.3 * b - 0.4 * 0.7 * a
    np.testing.assert_allclose(there.parameters, expected, atol=1e-12)
    assert value == pytest.approx(plain(expected), rel=1e-12)
    basis = np.array([b, 0.7 * a])
    np.testing.assert_allclose(gradient, basis @ there.gradient, rtol=1e-8, atol=1e-9)
    product = there.hessian_product()
    np.testing.assert_allclose(hessian, [[p @ product(q) for q in basis] for p in basis], rtol=1e-8, atol=1e-9)


def test_newton_trial_is_a_newton_step(rng):
    for name, objective, _ in problems(rng):
        if not name.startswith("dense"):
            continue
        point = objective.at(0.1 * rng.standard_normal(objective.size))
        # a penalty that differs between labels has no compiled form in general: use one per column
        columns = objective.features.columns()
        penalty = np.empty(objective.size)
        penalty[columns] = rng.random(columns.shape[1])
        objective = Likelihood(objective.features, objective.structure, objective.y, penalty=penalty)
        point = objective.at(point.parameters)
        ray, trial, step, slope = point.newton_trial()
        np.testing.assert_allclose(point.hessian_product()(ray.direction), -point.gradient, atol=1e-9)
        fresh = objective.at(trial.parameters)
        np.testing.assert_allclose(trial.parameters, point.parameters + step * ray.direction)
        assert trial.value == pytest.approx(fresh.value, rel=1e-13)
        np.testing.assert_allclose(trial.gradient, fresh.gradient, atol=1e-11)
        assert slope == pytest.approx(fresh.gradient @ ray.direction, abs=1e-10)


def test_gap_is_an_upper_bound_and_closes(rng):
    X, y = rng.standard_normal((50, 4)), rng.integers(0, 3, 50)
    objective = softmax_objective(X, y, l2=0.7, penalize_intercept=True)
    solution = minimize(objective, solver="lbfgs", tol=1e-10)
    excess = solution.trace.objective - solution.value
    assert np.all(solution.trace.gap >= excess - 1e-12)
    assert solution.trace.gap[-1] < 1e-12
    free = softmax_objective(X, y, l2=0.7, penalize_intercept=False)
    assert np.isinf(free.at(np.zeros(free.size)).gap)


def test_single_precision_products_are_close(rng):
    X, y = rng.standard_normal((3000, 40)), rng.integers(0, 4, 3000)
    point = softmax_objective(X, y).at(0.1 * rng.standard_normal(164))
    v = rng.standard_normal(164)
    rough, exact = point.hessian_product(precise=False)(v), point.hessian_product(precise=True)(v)
    assert not np.array_equal(rough, exact)
    assert np.linalg.norm(rough - exact) < 1e-4 * np.linalg.norm(exact)


@pytest.mark.parametrize("kind", ["dense", "sparse", "wide sparse"])
@pytest.mark.parametrize("n", [2, 4])
def test_preconditioners_are_positive_definite(kind, n, rng):
    d = 1500 if kind == "wide sparse" else 12
    X = sp.random(400, d, 0.1, format="csr", random_state=0)
    X = X.toarray() if kind == "dense" else X
    objective = softmax_objective(X, np.arange(400) % n, l2=0.1)
    point = objective.at(0.1 * rng.standard_normal(objective.size))
    for strong in [False, True] if np.isfinite(objective.strong_cost) else [False]:
        apply = point.preconditioner(strong)
        a, b = rng.standard_normal(objective.size), rng.standard_normal(objective.size)
        assert a @ apply(a) > 0
        assert a @ apply(b) == pytest.approx(b @ apply(a), rel=1e-4)
    assert np.isfinite(objective.strong_cost) == (kind == "dense")


def test_strong_preconditioner_of_all_rows_is_the_inverse(rng):
    X, y = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    objective = softmax_objective(X, y, l2=0.5, penalize_intercept=True)
    point = objective.at(0.3 * rng.standard_normal(objective.size))
    v = rng.standard_normal(objective.size)
    np.testing.assert_allclose(point.preconditioner(strong=True)(point.hessian_product()(v)), v, atol=1e-9)


def test_penalties_that_differ_between_labels(rng):
    """No gauge then: the general factor is used, and still solves."""
    X, y = rng.standard_normal((60, 5)), rng.integers(0, 3, 60)
    features = linear_map(X, 3, True)
    objective = Likelihood(features, Categorical(3), y, penalty=0.1 + rng.random(features.size))
    point = objective.at(rng.standard_normal(objective.size))
    model = point.model("descending")
    np.testing.assert_allclose(model.matvec(model.solve(point.gradient)), point.gradient, atol=1e-9)
    solution = minimize(objective, tol=1e-9)
    assert solution.status is Status.CONVERGED
    assert np.abs(objective.at(solution.parameters).gradient).max() <= 1e-9 * objective.scale


def test_maps_and_structures_must_fit(rng):
    X, y = rng.standard_normal((10, 2)), np.zeros(10, int)
    for features, structure in (
        (linear_map(X, 3, True), Categorical(50)),
        (linear_map(X, 2, True), Binary()),
        (LabelFeatures(np.zeros((10, 3, 2))), Categorical(4)),
    ):
        with pytest.raises(ValueError, match="the feature map gives"):
            Likelihood(features, structure, y)


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_nothing_moves_along_the_gauge(kind, rng):
    """The mean over labels of gradients and products is exactly the penalty's: rounding noise is not divided by l2."""
    X = sp.random(500, 30, 0.5, format="csr", random_state=0) * 1e4
    objective = softmax_objective(X.toarray() if kind == "dense" else X, rng.integers(0, 5, 500), l2=1e-9)
    point = objective.at(1e-4 * rng.standard_normal(objective.size))
    columns = objective.features.columns()
    v = rng.standard_normal(objective.size)
    for flat, source in ((point.gradient, point.parameters), (point.hessian_product()(v), v)):
        expected = (objective.penalty * source)[columns].mean(0)
        np.testing.assert_allclose(flat[columns].mean(0), expected, atol=1e-16 * np.abs(flat).max())


def test_conditional_logit_with_arbitrary_features(rng):
    """Label features with ragged sets fit by every route to the same optimum."""
    *_, (_, objective, plain) = problems(rng)
    solutions = [minimize(objective, solver=name, tol=1e-10) for name in ("newton", "lbfgs", "majorize")]
    for solution in solutions:
        assert solution.value == pytest.approx(plain(solution.parameters), rel=1e-12)
        np.testing.assert_allclose(solution.parameters, solutions[0].parameters, atol=1e-6)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y": np.full(10, 3)}, "each in its label set"),
        ({"y": np.zeros(9, int)}, r"one label per example \(10\)"),
        ({"y": np.full(10, 0.5)}, "y must hold integers"),
        ({"weights": -np.ones(10)}, "non-negative"),
        ({"penalty": -1.0}, "penalty must be finite and non-negative"),
    ],
)
def test_bad_input_is_named(change, message, rng):
    options = {"y": np.zeros(10, int), "weights": None} | change
    with pytest.raises(ValueError, match=message):
        Likelihood(linear_map(rng.standard_normal((10, 2)), 3, True), Categorical(3), workers=Workers(1), **options)


def test_wide_data_are_preconditioned_through_their_rows(rng):
    """Woodbury's inverse is the inverse of the shared Gram matrix, applied to every label."""
    X, y = rng.standard_normal((30, 120)), np.arange(30) % 3
    objective = softmax_objective(X, y, l2=2.0, penalize_intercept=True, weights=rng.random(30))
    point = objective.at(0.1 * rng.standard_normal(objective.size))
    s = objective.weights * (1.0 - (point.marginals**2).sum(1)) / 2.0
    wide = np.column_stack([X, np.ones(30)])
    gram = wide.T @ (s[:, None] * wide) + 2.0 * np.eye(121)
    v = rng.standard_normal(objective.size)
    columns = objective.features.columns()
    expected = np.empty_like(v)
    expected[columns] = np.linalg.solve(gram, v[columns].T).T
    np.testing.assert_allclose(point.preconditioner()(v), expected, atol=1e-10)
