from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import approx_fprime
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale

from partita import EM, LBFGS, ConjugateGradient, ConstrainedNewton, Majorize, Newton, Status, SteepestDescent, minimize
from partita.constraints import Box, Linear
from partita.core import CapabilityError, Workers
from partita.core.contracts.capabilities import BOUNDS
from partita.core.parallel import blas_limit
from partita.features import LabelFeatures, linear_map
from partita.objectives import Constrained, LatentLikelihood, Likelihood, compile_constraints
from partita.structures import Binary, Categorical

N = 25


def some_states(rng, shape):
    """Random sets of states, none empty."""
    allowed = rng.random(shape) < 0.5
    allowed[np.arange(shape[0]), rng.integers(0, shape[1], shape[0])] = True
    return allowed


def full_hessian(point):
    """By products, a column at a time."""
    return np.array([point.hessian_product()(e) for e in np.eye(len(point.parameters))])


def problems(rng):
    """Dense, sparse and ragged objectives, each with its value in plain numpy."""
    X, w = rng.standard_normal((N, 3)), rng.random(N)
    allowed, prior = some_states(rng, (N, 5)), np.arange(1.0, 6.0)
    for matrix in (X, sp.csr_matrix(X)):
        features = linear_map(matrix, 5, True)
        penalty, linear = rng.random(features.size), rng.standard_normal(features.size)
        objective = LatentLikelihood(features, Categorical(5, prior), allowed, weights=w, penalty=penalty, linear=linear)

        def plain(theta, features=features, penalty=penalty, linear=linear):
            coef, bias = features.unpack(theta)
            weight = prior * np.exp(X @ coef.T + bias)
            losses = -np.log((weight * allowed).sum(1) / weight.sum(1))
            return w @ losses + linear @ theta + 0.5 * penalty @ theta**2

        yield objective, plain
    counts = rng.integers(1, 6, N)
    F, flat = rng.standard_normal((counts.sum(), 4)), rng.random(counts.sum()) < 0.4
    starts = np.concatenate(([0], np.cumsum(counts)[:-1]))
    flat[starts + rng.integers(0, counts)] = True

    def ragged(theta):
        weight = np.exp(F @ theta)
        shares = np.add.reduceat(weight * flat, starts) / np.add.reduceat(weight, starts)
        return -w @ np.log(shares) + 0.15 * theta @ theta

    yield LatentLikelihood(LabelFeatures(F, counts), Categorical(counts), flat, weights=w, penalty=0.3), ragged


@pytest.fixture(params=range(3), ids=["dense", "sparse", "ragged"])
def problem(request, rng):
    return list(problems(rng))[request.param]


def test_value_gradient_and_hessian(problem, rng):
    objective, plain = problem
    theta = rng.standard_normal(objective.size)
    point = objective.at(theta)
    assert point.value == pytest.approx(plain(theta), rel=1e-12)
    np.testing.assert_allclose(point.gradient, approx_fprime(theta, plain, 1e-7), atol=1e-4)
    h = 1e-5
    columns = [
        (objective.at(theta + h * e).gradient - objective.at(theta - h * e).gradient) / (2 * h)
        for e in np.eye(objective.size)
    ]
    np.testing.assert_allclose(full_hessian(point), np.array(columns), atol=1e-7)
    assert point.gap == np.inf


def test_rays_and_planes_are_the_objective(problem, rng):
    objective, plain = problem
    theta, a, b = (rng.standard_normal(objective.size) for _ in range(3))
    trial, slope = objective.at(theta).along(a).at(0.7)
    assert trial.value == pytest.approx(plain(theta + 0.7 * a), rel=1e-12)
    assert slope == pytest.approx(trial.gradient @ a, rel=1e-9)
    plane = trial.subspace([b], momentum=True)
    c = np.array([0.3, -0.8])
    value, gradient, hessian = plane.evaluate(c)
    at = plane.at(c)
    assert value == pytest.approx(at.value, rel=1e-12)
    np.testing.assert_allclose(gradient, plane.basis @ at.gradient, atol=1e-9)
    np.testing.assert_allclose(hessian, plane.basis @ full_hessian(at) @ plane.basis.T, atol=1e-9)


@pytest.mark.parametrize("kind", BOUNDS)
def test_quadratic_lies_above_the_objective(problem, rng, kind):
    objective, _ = problem
    model = objective.at(rng.standard_normal(objective.size)).model(kind)
    assert model.is_bound
    assert model.value(model.center) == model.value0
    for size in (1e-3, 0.1, 1.0, 10.0):
        theta = model.center + size * rng.standard_normal(objective.size)
        assert model.value(theta) >= objective.at(theta).value - 1e-9


def test_posterior_is_the_distribution_over_what_is_allowed(problem, rng):
    objective, _ = problem
    point = objective.at(rng.standard_normal(objective.size))
    q, starts = point.posterior.ravel(), objective.structure.offsets(N)[:-1]
    np.testing.assert_allclose(np.add.reduceat(q, starts), 1.0)
    assert not q[~objective.allowed.ravel()].any()
    weights = np.repeat(objective.weights, np.diff(objective.structure.offsets(N)))
    np.testing.assert_allclose(point.residual.ravel(), weights * (point.marginals.ravel() - q), atol=1e-14)


def test_single_states_are_the_likelihood(rng):
    X, y = rng.standard_normal((N, 3)), rng.integers(0, 4, N)
    features, theta = linear_map(X, 4, True), rng.standard_normal(16)
    latent = LatentLikelihood(features, Categorical(4), np.eye(4, dtype=bool)[y], penalty=0.5).at(theta)
    known = Likelihood(features, Categorical(4), y, penalty=0.5).at(theta)
    assert latent.value == pytest.approx(known.value, rel=1e-14)
    np.testing.assert_allclose(latent.gradient, known.gradient, rtol=1e-12)
    np.testing.assert_allclose(full_hessian(latent), known.model("hessian").matrix(), atol=1e-13)


def test_examples_of_which_all_is_allowed_do_not_count(rng):
    features = linear_map(rng.standard_normal((N, 3)), 4, True)
    point = LatentLikelihood(features, Categorical(4), np.ones((N, 4), bool)).at(rng.standard_normal(16))
    assert point.value == 0.0
    assert not point.gradient.any()


@pytest.mark.parametrize("size", [1.0, 700.0, 1e5])
def test_states_far_below_the_others_keep_their_digits(size):
    """log(exp(size) + 3) - log(2), with the two allowed states at 0."""
    features = linear_map(np.array([[1.0]]), 4, False)
    allowed = np.array([[False, True, True, False]])
    point = LatentLikelihood(features, Categorical(4), allowed).at(np.array([size, 0.0, 0.0, 0.0]))
    assert point.value == pytest.approx(np.logaddexp(size, np.log(3.0)) - np.log(2.0), rel=1e-14)
    np.testing.assert_allclose(point.posterior, [[0.0, 0.5, 0.5, 0.0]])
    assert np.isfinite(point.gradient).all()
    assert np.isfinite(full_hessian(point)).all()


def test_result_does_not_depend_on_threads(rng):
    X, allowed = rng.standard_normal((20_000, 5)), some_states(rng, (20_000, 6))
    theta, v = rng.standard_normal((2, 36))
    found = []
    for jobs in (1, 3):
        workers = Workers(jobs)
        point = LatentLikelihood(linear_map(X, 6, True, workers), Categorical(6), allowed, workers=workers).at(theta)
        found.append(
            [point.value, *point.gradient, *point.hessian_product()(v), *point.subspace([v]).evaluate(np.array([0.5]))[1]]
        )
    assert found[0] == found[1]


SETS = {"iris": load_iris, "wine": load_wine, "breast_cancer": load_breast_cancer, "digits": load_digits}


def mixture(name, n_hidden, l2):
    X, y = SETS[name](return_X_y=True)
    n = y.max() + 1
    features = linear_map(scale(X), n * n_hidden, True)
    return LatentLikelihood(
        features, Categorical(n * n_hidden), np.repeat(np.eye(n, dtype=bool)[y], n_hidden, 1), penalty=l2
    )


@pytest.mark.parametrize("l2", [0.0, 1.0])
@pytest.mark.parametrize("name", [*list(SETS)[:-1], pytest.param("digits", marks=pytest.mark.slow)])
@pytest.mark.parametrize("acceleration", [None, "subspace", "anderson", "squarem"])
@pytest.mark.parametrize("bound", ["descending", "symmetric"])
def test_majorization_never_rises(name, l2, acceleration, bound, rng):
    objective = mixture(name, 2, l2)
    start = rng.standard_normal(objective.size)
    steps = 8 if name == "digits" else 40
    trace = minimize(objective, start, Majorize(bound, acceleration), max_iter=steps).trace
    assert len(trace) > 5
    assert (np.diff(trace.objective) <= 4e-16 * trace.objective[:-1]).all()


SOLVERS = [Newton(), LBFGS(), LBFGS(scaled=True), Majorize(), Majorize(rank=5), ConjugateGradient(), SteepestDescent()]


@pytest.mark.parametrize("solver", SOLVERS, ids=repr)
@pytest.mark.parametrize("name", ["iris", "wine"])
def test_solvers_end_at_stationary_points_that_are_no_saddles(name, solver, rng):
    objective = mixture(name, 2, 0.5)
    solution = minimize(objective, rng.standard_normal(objective.size), solver, tol=1e-5, max_iter=20_000)
    assert solution.status in (Status.CONVERGED, Status.PRECISION)
    point = objective.at(solution.parameters)
    assert np.abs(point.gradient).max() <= 1e-5 * objective.scale
    assert np.linalg.eigvalsh(full_hessian(point))[0] > 0.0


def test_newton_leaves_a_region_of_negative_curvature(rng):
    objective = mixture("iris", 3, 0.1)
    start = 1e-3 * rng.standard_normal(objective.size)
    assert np.linalg.eigvalsh(full_hessian(objective.at(start)))[0] < -0.1
    solution = minimize(objective, start, Newton(), tol=1e-8)
    assert solution.status is Status.CONVERGED
    assert np.linalg.eigvalsh(full_hessian(objective.at(solution.parameters)))[0] > 0.0
    assert (np.diff(solution.trace.objective) <= 0.0).all()


@pytest.mark.parametrize("solver", [Majorize(), Majorize("descending", None), ConstrainedNewton()], ids=repr)
@pytest.mark.parametrize("constraint", [Box(lower=0.0), Linear(np.ones((1, 6, 4)), upper=1.0)], ids=["box", "linear"])
def test_constraints(solver, constraint, rng):
    objective = mixture("iris", 2, 1.0)
    constrained = Constrained(objective, compile_constraints([constraint], objective.features))
    start = rng.standard_normal(objective.size)
    solution = minimize(constrained, start, solver, tol=1e-5, max_iter=5000)
    assert solution.status in (Status.CONVERGED, Status.PRECISION)
    assert constrained.feasible.violation(solution.parameters) == 0.0
    assert np.abs(solution.point.gradient).max() <= 1e-5 * objective.scale
    assert (np.diff(solution.trace.objective) <= 1e-12 * solution.trace.objective[0]).all()


def test_solvers_that_need_what_is_not_there_are_refused():
    with pytest.raises(CapabilityError, match="LatentLikelihood: the objective must offer"):
        minimize(mixture("iris", 2, 1.0), solver=Newton("cholesky"))


def test_bad_input():
    features = linear_map(np.ones((2, 1)), 3, True)
    with pytest.raises(ValueError, match=r"allowed must be an array of bool of shape \(2, 3\), got int64 of shape \(2, 3\)"):
        LatentLikelihood(features, Categorical(3), np.ones((2, 3), np.int64))
    with pytest.raises(ValueError, match=r"got bool of shape \(2, 2\)"):
        LatentLikelihood(features, Categorical(3), np.ones((2, 2), bool))
    with pytest.raises(ValueError, match="leave every example a state of positive prior"):
        LatentLikelihood(features, Categorical(3), np.array([[True, False, False], [False, False, False]]))
    with pytest.raises(ValueError, match="leave every example a state of positive prior"):
        LatentLikelihood(features, Categorical(3, [1.0, 1.0, 0.0]), np.array([[True] * 3, [False, False, True]]))
    with pytest.raises(ValueError, match=r"use Categorical\(2\), not Binary"):
        LatentLikelihood(linear_map(np.ones((2, 1)), 1, True), Binary(), np.ones((2, 1), bool))


@pytest.mark.rounding
def test_em_fits_soft_targets_and_never_rises(problem, rng):
    objective, _ = problem
    point = objective.at(0.3 * rng.standard_normal(objective.size))
    offsets = objective.structure.offsets(N)
    q, weights = point.posterior.ravel(), np.repeat(objective.weights, np.diff(offsets))

    def expected(theta):
        """The loss with the states as probable as they are at `point`."""
        u = objective.at(theta).u.ravel()
        logs = np.logaddexp.reduceat(u, offsets[:-1])
        linear = 0.0 if objective.linear is None else objective.linear @ theta
        return objective.weights @ logs - (weights * q) @ u + linear + 0.5 * objective.penalty @ theta**2

    with blas_limit(objective.blas_threads):  # as within `minimize`, so that all digits are the same
        following = objective.at(point.parameters).em_step()
        value = objective.at(following).value
    assert np.abs(approx_fprime(following, expected, 1e-6)).max() < 1e-3
    values = minimize(objective, point.parameters, EM(None), max_iter=20, tol=0.0).trace.objective
    assert (np.diff(values) <= 1e-12).all()
    assert values[1] == value
    step = point
    for _ in range(20):  # the solver would not take a step that rises
        before, step = step, objective.at(step.em_step())
        assert step.value <= before.value + 1e-12 * abs(before.value)
    assert minimize(objective, point.parameters, EM(), max_iter=2000, tol=1e-7).status is Status.CONVERGED
