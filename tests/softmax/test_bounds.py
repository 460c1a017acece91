"""A bound is above log Z everywhere tried, and touches it where it was made."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits, load_wine
from sklearn.preprocessing import scale

from partita import Majorize, SoftmaxRegression, minimize
from partita.bounds import (
    BOUNDS,
    KINDS,
    iteration_limit,
    partition_bound,
    potential_curvature,
    range_certificate,
    self_concordant_certificate,
)
from partita.softmax.estimators.softmax_regression import softmax_objective
from partita.structures import Binary, Categorical

TRIES_PER_KIND = 100_000


def log_z(u):
    return np.logaddexp.reduce(u, axis=1)


def excess_over_tangent(u, v):
    """log Z(u + v) - log Z(u) - p.v, without cancellation for small v: log E exp(z), z = v - E v."""
    p = np.exp(u - log_z(u)[:, None])
    mean = np.einsum("ij,ij->i", p, v)
    z = v - mean[:, None]
    tiny = np.abs(z) < 1e-2
    series = 0.5 * z * z * (1 + z / 3 * (1 + z / 4 * (1 + z / 5 * (1 + z / 6))))
    growth = np.where(tiny, series, np.expm1(np.where(tiny, 0.0, np.minimum(z, 3.0))) - z)
    return np.where(np.abs(z).max(1) < 3.0, np.log1p(np.einsum("ij,ij->i", p, growth)), log_z(u + v) - log_z(u) - mean)


def excess_ratio(kind, u, v):
    """The excess over the tangent divided by v'Sv / 2: at most 1 for a bound. 0 where both are rounding errors."""
    curvature = potential_curvature(Categorical(u.shape[1]), u, np.ones(len(u)), kind)
    quadratic = 0.5 * np.einsum("ij,ij->i", v, curvature.product(v))
    excess = excess_over_tangent(u, v)
    large = np.abs(v).max(1) >= 1.0
    noise = np.where(large, 1e-12 * (1.0 + np.abs(u).max(1) + np.abs(v).max(1)), 1e-14 * np.abs(v).max(1) ** 2)
    return np.where(excess <= noise, 0.0, (excess - noise) / np.maximum(quadratic, 1e-300))


def random_problems(rng, count, n):
    u = rng.standard_normal((count, n)) * 10.0 ** rng.uniform(-1, 1.5, (count, 1))
    v = rng.standard_normal((count, n)) * 10.0 ** rng.uniform(-1.5, 1.8, (count, 1))
    sparse = rng.random(count) < 0.3
    v[sparse] *= rng.random((sparse.sum(), n)) < 0.4
    return u, v


def adversarial_search(kind, rng, n, population=400, rounds=60):
    """Hill climbing on the ratio from the tightest of many random problems."""
    u, v = random_problems(rng, 20_000, n)
    best = excess_ratio(kind, u, v)
    keep = np.argsort(-best)[:population]
    u, v, best = u[keep], v[keep], best[keep]
    size = 0.5
    for _ in range(rounds):
        du, dv = (size * rng.standard_normal(u.shape) * (1.0 + np.abs(a)) for a in (u, v))
        trial = excess_ratio(kind, u + du, v + dv)
        better = trial > best
        u[better] += du[better]
        v[better] += dv[better]
        best = np.maximum(best, trial)
        size *= 0.93
    return float(best.max())


@pytest.mark.parametrize("kind", BOUNDS)
def test_never_violated_at_random(kind, rng):
    worst = 0.0
    for n in (2, 3, 4, 6, 10):
        worst = max(worst, excess_ratio(kind, *random_problems(rng, TRIES_PER_KIND // 5, n)).max())
    assert worst <= 1.0 + 1e-9


@pytest.mark.parametrize("kind", BOUNDS)
@pytest.mark.parametrize("n", [2, 3, 5])
def test_never_violated_by_an_adversary(kind, n, rng):
    assert adversarial_search(kind, rng, n) <= 1.0 + 1e-9


def test_the_search_would_notice_a_violation(rng):
    """The Hessian is not a bound, and the same search says so."""
    assert adversarial_search("hessian", rng, 3) > 1.5


@pytest.mark.parametrize("kind", KINDS)
def test_products_pairs_and_diagonals_are_one_matrix(kind, rng):
    n = 5
    u = rng.standard_normal((40, n)) * 5
    u[3, 2] = u[4, 0] = -np.inf
    w = rng.random(40)
    S = potential_curvature(Categorical(n), u, w, kind)
    columns = np.stack([S.product(np.tile(unit, (40, 1))) for unit in np.eye(n)], axis=2)
    np.testing.assert_allclose(columns, columns.transpose(0, 2, 1), atol=1e-14)
    np.testing.assert_allclose(columns.sum(2), 0.0, atol=1e-14)
    assert np.linalg.eigvalsh(columns).min() > -1e-14
    pairs = S.pairs()
    for j in range(n):
        for k in range(j + 1):
            np.testing.assert_allclose(pairs[j * (j + 1) // 2 + k], columns[:, j, k], atol=1e-14)
    np.testing.assert_allclose(S.diagonal().reshape(40, n), np.einsum("ijj->ij", columns), atol=1e-14)
    ragged = potential_curvature(Categorical([n] * 40), u.ravel(), w, kind)
    v = rng.standard_normal((40, n))
    np.testing.assert_allclose(ragged.product(v.ravel()), S.product(v).ravel(), atol=1e-14)
    mixed = potential_curvature(Categorical([n] * 39 + [n - 1]), u.ravel()[:-1], w, kind)
    np.testing.assert_allclose(mixed.diagonal()[: 39 * n], S.diagonal()[: 39 * n], atol=1e-14)


@pytest.mark.parametrize("kind", BOUNDS)
def test_two_labels_give_the_optimal_bound(kind, rng):
    """With two labels every bound but Böhning's is Jaakkola's, and the binary form is the same number."""
    u = rng.standard_normal((50, 1)) * 10
    binary = potential_curvature(Binary(), u, np.ones(50), kind).product(np.ones((50, 1)))
    two = potential_curvature(Categorical(2), np.hstack([np.zeros_like(u), u]), np.ones(50), kind)
    v = np.tile([0.0, 1.0], (50, 1))
    along = np.einsum("ij,ij->i", v, two.product(v))
    if kind == "bohning":
        np.testing.assert_allclose(along, 0.25)
    elif kind != "symmetric_proved":
        np.testing.assert_allclose(along, np.tanh(np.abs(u[:, 0]) / 2) / (2 * np.abs(u[:, 0])), rtol=1e-12)
    if kind != "symmetric_proved":
        np.testing.assert_allclose(binary[:, 0], along, rtol=1e-9, atol=1e-300)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scale_of_scores", [1e3, 1e6])
def test_huge_scores_stay_finite_and_valid(kind, scale_of_scores, rng):
    u = rng.standard_normal((200, 4)) * scale_of_scores
    u[:20, 1] = -np.inf
    S = potential_curvature(Categorical(4), u, np.ones(200), kind)
    v = rng.standard_normal((200, 4))
    product = S.product(v)
    assert np.isfinite(product).all()
    assert np.isfinite(S.pairs()).all()
    if kind != "hessian":
        v[:20, 1] = 0.0
        p = np.exp(u - log_z(u)[:, None])
        mean = np.einsum("ij,ij->i", p, v)
        bound = mean + 0.5 * np.einsum("ij,ij->i", v, S.product(v))
        # log Z(u + v) - log Z(u) without cancellation: log of E exp(v)
        change = np.log(np.einsum("ij,ij->i", p, np.exp(v)))
        assert np.all(change <= bound + 1e-9)


@pytest.mark.parametrize("kind", BOUNDS)
def test_labels_whose_probability_underflows_still_count(kind):
    """exp(-800) is zero, but a step of 1600 makes that label the only one."""
    u, v = np.array([[0.0, -800.0, -800.0]]), np.array([[0.0, 1600.0, 0.0]])
    S = potential_curvature(Categorical(3), u, np.ones(1), kind)
    assert 0.5 * np.vdot(v, S.product(v)) >= 800.0 * (1 - 1e-9)


@pytest.mark.parametrize("ordering", ["descending", "given", "ascending"])
def test_algorithm_one_is_the_potential_form(ordering, rng):
    """Sigma of arbitrary features is F' S F, mu is the mean feature, log Z is exact: with priors and ragged sets."""
    counts = np.array([3, 1, 5, 4])
    F, theta = rng.standard_normal((13, 4)), rng.standard_normal(4)
    prior, w = rng.random(13) + 0.1, rng.random(4)
    prior[2] = 0.0
    bound = partition_bound(F, theta, prior, counts=counts, weights=w, ordering=ordering)
    with np.errstate(divide="ignore"):
        u = F @ theta + np.log(prior)
    S = potential_curvature(Categorical(counts), u, w, ordering)
    SF = np.column_stack([S.product(np.ascontiguousarray(f)) for f in F.T])
    np.testing.assert_allclose(bound.matrix(), F.T @ SF, atol=1e-12)
    result = Categorical(counts, prior).infer(F @ theta)
    weights = np.repeat(w, counts)
    np.testing.assert_allclose(bound.mean, F.T @ (weights * result.marginals), atol=1e-12)
    assert bound.log_z == pytest.approx(w @ result.log_z)
    assert bound.trace() == pytest.approx(np.trace(bound.matrix()))


def test_algorithm_one_bounds_log_z_for_arbitrary_features(rng):
    for _ in range(300):
        n, d = rng.integers(1, 7), rng.integers(1, 5)
        F, center, prior = rng.standard_normal((n, d)) * 3, rng.standard_normal(d), rng.random(n) + 1e-3
        bound = partition_bound(F, center, prior)
        assert bound.value(center) == pytest.approx(np.logaddexp.reduce(F @ center + np.log(prior)))
        for theta in center + rng.standard_normal((30, d)) * 10 ** rng.uniform(-2, 1, (30, 1)):
            exact = np.logaddexp.reduce(F @ theta + np.log(prior))
            assert bound.value(theta) >= exact - 1e-9 * (1 + abs(exact))


def test_partition_bound_solves_and_names_bad_input(rng):
    bound = partition_bound(rng.standard_normal((6, 3)), np.zeros(3))
    v = rng.standard_normal(3)
    np.testing.assert_allclose(bound.solve(bound.matvec(v)), v, atol=1e-8)
    with pytest.raises(ValueError, match=r"theta must be finite with shape \(3,\)"):
        partition_bound(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match=r"weights must have shape \(2,\)"):
        partition_bound(np.zeros((2, 2, 3)), np.zeros(3), weights=[1.0])
    with pytest.raises(ValueError, match="prior must be finite"):
        partition_bound(np.zeros((2, 3)), np.zeros(3), prior=[np.inf, 1.0])
    with pytest.raises(ValueError, match="n_labels must be an integer >= 2"):
        iteration_limit(1, 1.0, 1.0, 0.1)
    with pytest.raises(ValueError, match="ordering must be one of"):
        partition_bound(np.zeros((2, 3)), np.zeros(3), ordering="random")


def trace_ratio(point, kind, extra=0.0):
    hessian = point.model("hessian").trace() - extra
    return (point.model(kind).trace() - extra) / hessian


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("digits", {"descending": 10.0, "given": 14.1, "ascending": 23.7, "bohning": 34.8}),
        ("wine", {"descending": 7.0, "given": 8.5, "ascending": 11.7, "bohning": 20.8}),
    ],
)
def test_ordering_table_of_the_specification(name, expected):
    """tr Sigma / tr H at the optimum: descending order is the tightest, and the numbers are the specification's."""
    X, y = load_digits(return_X_y=True) if name == "digits" else load_wine(return_X_y=True)
    X = X / 16.0 if name == "digits" else scale(X)
    objective = softmax_objective(X, y, l2=1.0, penalize_intercept=True)
    point = minimize(objective, tol=1e-10).point
    penalty = float(objective.penalty.sum())
    measured = {kind: trace_ratio(point, kind, penalty) for kind in expected}
    assert measured["descending"] < measured["given"] < measured["ascending"] < measured["bohning"]
    for kind, value in expected.items():
        assert measured[kind] == pytest.approx(value, rel=0.03), measured


def test_certificates_bound_log_z_along_a_line(rng):
    u = rng.standard_normal((20_000, 5)) * 10.0 ** rng.uniform(-1, 1, (20_000, 1))
    v = rng.standard_normal((20_000, 5)) * 10.0 ** rng.uniform(-1, 1, (20_000, 1))
    p = np.exp(u - log_z(u)[:, None])
    mean = np.einsum("ij,ij->i", p, v)
    K = range_certificate(p, v)
    for t in (-3.0, -1.0, -0.1, 0.01, 0.5, 1.0, 4.0):
        change = log_z(u + t * v) - log_z(u) - t * mean
        assert np.all(change <= 0.5 * t * t * K + 1e-10)
        assert np.all(change <= self_concordant_certificate(p, v, t) * (1 + 1e-12) + 1e-10)
    assert range_certificate([[0.5, 0.5]], [[1.0, 1.0]]).tolist() == [0.0]


def test_range_certificate_holds_when_one_label_has_nearly_all_mass():
    u = np.array([[0.0, -80.0, -300.0]])
    v = np.array([[0.0, 90.0, 310.0]])
    p = np.exp(u - log_z(u)[:, None])
    change = (log_z(u + v) - log_z(u))[0] - float(p[0] @ v[0])
    assert change > 1.0
    assert change <= 0.5 * range_certificate(p, v)[0]


def test_range_certificate_is_exact_for_two_labels():
    """For two labels K is Jaakkola's optimum: the bound touches log Z again at the mirror point."""
    u, v = np.array([[0.0, 1.3]]), np.array([[0.0, 1.0]])
    p = np.exp(u - log_z(u)[:, None])
    K, t = range_certificate(p, v)[0], -2.6
    change = (log_z(u + t * v) - log_z(u))[0] - t * p[0, 1]
    assert change == pytest.approx(0.5 * t * t * K, rel=1e-12)


@pytest.mark.parametrize("l2", [1.0, 100.0])
def test_theorem_two_is_an_upper_limit(l2):
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    objective = softmax_objective(X, y, l2=l2, penalize_intercept=True)
    optimum = minimize(objective, tol=1e-12).value
    radius = float(np.sqrt((X**2).sum(1) + 1).max())
    epsilon = 1e-4
    limit = iteration_limit(3, radius, l2 / len(X), epsilon)
    solution = minimize(objective, solver=Majorize("descending", None), max_iter=limit, tol=0.0)
    start = solution.trace.objective[0]
    reached = np.flatnonzero(solution.trace.objective - optimum <= epsilon * (start - optimum))
    assert 0 < reached[0] <= limit


def test_models_share_one_face(rng):
    """value, matvec, matrix, solve and trace of every kind agree with each other and touch the objective."""
    X, y = load_wine(return_X_y=True)
    objective = softmax_objective(scale(X), y, l2=0.5, weights=rng.random(len(y)))
    point = objective.at(0.3 * rng.standard_normal(objective.size))
    for kind in KINDS:
        model = point.model(kind)
        assert model.is_bound == (kind != "hessian")
        assert model.value(point.parameters) == pytest.approx(point.value)
        v = rng.standard_normal(objective.size)
        np.testing.assert_allclose(model.matrix() @ v, model.matvec(v), atol=1e-9)
        assert model.trace() == pytest.approx(np.trace(model.matrix()))
        gradient = point.gradient
        np.testing.assert_allclose(model.matvec(model.solve(gradient)), gradient, atol=1e-8)
        if model.is_bound:
            for _ in range(50):
                theta = point.parameters + rng.standard_normal(objective.size) * 10 ** rng.uniform(-2, 1)
                assert model.value(theta) >= objective.at(theta).value - 1e-8


def test_penalised_estimates_do_not_depend_on_the_bound():
    X, y = load_wine(return_X_y=True)
    X = scale(X)
    exact = SoftmaxRegression(l2=5.0, tol=1e-9).fit(X, y).coef_
    for kind in BOUNDS:
        coef = SoftmaxRegression(l2=5.0, tol=1e-9, solver=Majorize(kind)).fit(X, y).coef_
        np.testing.assert_allclose(coef, exact, atol=1e-6)
