"""Constraints: their texts and checks, what they compile to, and the optimality of constrained fits."""

from __future__ import annotations

import copy
import pickle
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler, scale

from partita import CapabilityError, Majorize, SoftmaxRegression, Status, minimize
from partita.constraints import Ball, Box, CvxpySet, Linear, Monotone, Simplex, Ties
from partita.core import Workers
from partita.objectives import Constrained, ConstrainedPoint, compile_constraints
from partita.objectives.constraints.constrained import Multipliers
from partita.objectives.constraints.sets import check_constraints
from partita.softmax.estimators.softmax_regression import softmax_objective

try:
    import clarabel  # noqa: F401

    HAS_CLARABEL = True
except ImportError:
    HAS_CLARABEL = False
needs_clarabel = pytest.mark.skipif(not HAS_CLARABEL, reason="Clarabel is not installed")


def wine():
    X, y = load_wine(return_X_y=True)
    return scale(X), y


def sums(rng):
    return Linear(rng.standard_normal((4, 3, 13)), lower=-0.3, upper=0.2)


CASES = {
    "box": lambda rng: [Box(lower=0.0)],
    "two-sided box": lambda rng: [Box(-0.2, 0.1), Box(lower=0.05, classes=1, features=[0, 3])],
    "inequalities": lambda rng: [sums(rng)],
    "equalities": lambda rng: [Linear(rng.standard_normal((3, 39)), equal=[1.0, 0.0, -1.0])],
    "dependent": lambda rng: [Linear(np.ones((3, 39)), upper=[1.0, 1.0, 2.0]), Linear(np.ones((2, 39)), equal=0.5)],
    "ties": lambda rng: [Ties([[(0, 1), (2, 1)], [(1, 4), (1, 5), (1, 6)]]), Ties(features=[7, 8])],
    "ties in a box": lambda rng: [Ties(features=range(6)), Box(upper=0.1, features=[2])],
    "monotone": lambda rng: [Monotone()],
    "antitone part": lambda rng: [Monotone([5, 2, 9, 0], increasing=False, classes=[0, 2])],
    "simplex": lambda rng: [Simplex()],
    "simplices": lambda rng: [Simplex(0.5, features=range(6)), Simplex(2.0, features=range(6, 13))],
    "inf ball": lambda rng: [Ball(0.1, norm=np.inf, center=0.02)],
    "mixture": lambda rng: [
        Box(lower=-0.3),
        Monotone([0, 1, 2]),
        Linear(np.ones((1, 39)), upper=0.5),
        Ties(features=[5, 6]),
    ],
}
CONIC = {
    "ball": lambda rng: [Ball(0.5)],
    "balls": lambda rng: [Ball(0.4, per_class=True, center=0.1)],
    "l1 ball": lambda rng: [Ball(1.0, norm=1)],
    "ball and box": lambda rng: [Ball(0.5), Box(lower=-0.05)],
    "ball and rows": lambda rng: [Ball(0.5, norm=1), Monotone([0, 1, 2]), Linear(np.ones((1, 39)), equal=0.1)],
}
ALL = [pytest.param(make, id=name) for name, make in CASES.items()] + [
    pytest.param(make, id=name, marks=needs_clarabel) for name, make in CONIC.items()
]


def problem(constraints, sparse=False, workers=None, **options):
    X, y = wine()
    options = {"l2": 0.5} | options
    likelihood = softmax_objective(sp.csr_matrix(X) if sparse else X, y, n_jobs=workers, **options)
    return Constrained(likelihood, compile_constraints(constraints, likelihood.features))


def no_feasible_descent(objective, solution, rng):
    """First-order optimality from scratch: no direction to any feasible point descends."""
    theta, gradient = solution.parameters, objective.likelihood.at(solution.parameters).gradient
    for size in (0.01, 0.1, 1.0):
        for _ in range(4):
            other = objective.project(theta + size * rng.standard_normal(len(theta)))
            assert gradient @ (other - theta) >= -1e-5 * objective.scale * np.linalg.norm(other - theta)
    other = objective.project(theta - 1e-3 * gradient)
    assert np.linalg.norm(other - theta) <= 1e-3 * 1e-4 * objective.scale


@pytest.mark.rounding
@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("sparse", [False, True])
def test_no_feasible_direction_descends_from_the_fit(make, sparse, rng):
    objective = problem(make(rng), sparse)
    solution = minimize(objective, tol=1e-6)
    assert solution.status is Status.CONVERGED
    assert objective.feasible.contains(solution.parameters)
    no_feasible_descent(objective, solution, rng)


@pytest.mark.rounding
@pytest.mark.parametrize("make", ALL)
@pytest.mark.parametrize("solver", [Majorize(), Majorize("descending", None), Majorize(step=1.7), "auto"], ids=repr)
def test_iterates_are_feasible_and_never_rise(make, solver, rng):
    objective = problem(make(rng), l2=5.0)
    worst = []

    def watch(progress):
        worst.append(objective.feasible.violation(progress.parameters))

    solution = minimize(objective, rng.standard_normal(objective.size), solver, tol=1e-5, max_iter=5000, callbacks=[watch])
    assert solution.status is Status.CONVERGED
    assert max(worst) == 0.0
    values = solution.trace.objective
    assert np.all(np.diff(values) <= 1e-14 * values[:-1])
    reference = minimize(objective, tol=1e-8)
    assert solution.value == pytest.approx(reference.value, rel=1e-5)


@pytest.mark.rounding
@pytest.mark.parametrize("make", ALL)
def test_gap_is_an_upper_bound_all_the_way(make, rng):
    objective = problem(make(rng), penalize_intercept=True)
    optimum = minimize(objective, tol=1e-9).value
    for solver in ("auto", "majorize"):
        trace = minimize(objective, rng.standard_normal(objective.size), solver, tol=1e-6).trace
        assert np.all(trace.objective - optimum <= trace.gap + 1e-8 * optimum)
        assert trace.gap[-1] <= 1e-3 * optimum


@pytest.mark.rounding
@pytest.mark.parametrize(("l2", "tol"), [(0.5, 1e-6), (5.0, 1e-5)])
def test_tied_weights_at_a_bound_converge_from_any_start(l2, tol):
    """All of a tied group is on its bound: an ulp beside it, the multiplier would count as a gap, and nothing descend."""
    objective = problem(CASES["ties in a box"](None), l2=l2, penalize_intercept=True)
    for seed in range(40):
        start = np.random.default_rng(seed).standard_normal(objective.size)
        solution = minimize(objective, start, tol=tol)
        assert solution.status is Status.CONVERGED
        assert solution.trace.gap[-1] <= 1e-6 * solution.value
        assert any(np.all(solution.parameters[group] == 0.1) for group in objective.feasible.ties)


def test_a_group_is_put_on_its_bound_as_a_whole_and_chained_ties_are_one():
    likelihood = problem([]).likelihood
    ties = [Ties([[(0, 1), (0, 2)]]), Ties([[(0, 3), (0, 1)]]), Box(upper=0.1, features=[2]), Box(lower=-1.0, features=[3])]
    feasible = compile_constraints(ties, likelihood.features)
    (group,) = feasible.ties
    assert len(group) == 3
    assert np.all(feasible.upper[group] == 0.1)
    x = np.zeros(feasible.size)
    x[group] = np.nextafter(0.1, 0.0), 0.1, np.nextafter(0.1, 1.0)
    assert np.all(feasible.snap(x)[group] == 0.1)
    x[group] = -1.0, np.nextafter(-1.0, 0.0), -1.0
    assert np.all(feasible.snap(x)[group] == -1.0)
    x[group] = 0.03
    assert np.all(feasible.snap(x)[group] == 0.03)


@pytest.mark.parametrize("away", [0.0, 1e-17, 1e-12, 1e-9])
def test_residual_and_gap_are_continuous_in_the_distance_to_a_bound(away):
    objective = problem([Box(0.0, 0.1)], penalize_intercept=True)
    solution = minimize(objective, tol=1e-9)
    theta = solution.parameters
    pushed = (theta == 0.0) & (objective.likelihood.at(theta).gradient > 1.0)
    assert pushed.any()
    point = objective.at(np.where(pushed, theta + away, theta))
    slope = np.abs(point.slope)[pushed]
    assert np.abs(point.gradient).max() <= 1e-8 * objective.scale + 1e6 * away * slope.max()
    assert point.value - solution.value <= point.gap + 1e-13 * point.value
    assert point.gap <= 1e-9 + 1.1 * away * slope.sum()


def test_gap_counts_the_slack_of_multipliers(rng):
    """Multipliers that cancel the whole gradient at a point where no constraint is tight prove nothing by themselves."""
    objective = problem([Linear(np.eye(39), lower=-1.0, upper=1.0)], fit_intercept=False, penalize_intercept=True)
    optimum = minimize(objective, tol=1e-9).value
    for size in (0.0, 0.3, 1.0):
        inner = objective.likelihood.at(size * rng.uniform(-1.0, 1.0, objective.size))
        point = ConstrainedPoint(objective, inner, Multipliers(inner.gradient))
        assert np.abs(point.stationarity).max() <= 1e-12 * np.abs(inner.gradient).max()
        assert point.value - optimum <= point.gap < np.inf


@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in CASES.items()])
def test_threads_do_not_matter(make, rng):
    constraints = make(rng)
    results = []
    for threads in (1, 2):
        objective = problem(constraints)
        objective.likelihood.workers = objective.likelihood.features.workers = Workers(threads)
        results.append(minimize(objective, tol=1e-7).parameters)
    assert np.array_equal(*results)


def test_without_a_penalty_too(rng):
    objective = problem([Ball(0.3, norm=np.inf), Monotone([0, 1, 2, 3])], l2=0.0)
    solution = minimize(objective, tol=1e-7)
    assert solution.status is Status.CONVERGED
    no_feasible_descent(objective, solution, rng)


def test_ties_equal_a_fit_on_merged_columns():
    X, y = wine()
    tied = SoftmaxRegression(l2=1.0, constraints=[Ties(features=[2, 5, 7])], tol=1e-9).fit(X, y)
    assert np.array_equal(tied.coef_[:, 2], tied.coef_[:, 5])
    assert np.array_equal(tied.coef_[:, 2], tied.coef_[:, 7])
    # The sum of the three columns, scaled so that the penalty on one weight is that on three.
    merged = np.column_stack([np.delete(X, [2, 5, 7], axis=1), X[:, [2, 5, 7]].sum(1) / np.sqrt(3.0)])
    plain = SoftmaxRegression(l2=1.0, tol=1e-9).fit(merged, y)
    np.testing.assert_allclose(np.delete(tied.coef_, [2, 5, 7], axis=1), plain.coef_[:, :-1], atol=1e-6)
    np.testing.assert_allclose(tied.coef_[:, 2], plain.coef_[:, -1] / np.sqrt(3.0), atol=1e-6)


def test_constraints_that_do_not_bind_change_nothing():
    X, y = wine()
    free = SoftmaxRegression(tol=1e-9).fit(X, y)
    for loose in ([Box(-50.0, 50.0)], [Linear(np.ones((1, 39)), upper=100.0)]):
        fit = SoftmaxRegression(tol=1e-9, constraints=loose).fit(X, y)
        np.testing.assert_allclose(fit.coef_, free.coef_, atol=1e-6)
        np.testing.assert_allclose(fit.standard_errors(), free.standard_errors(), rtol=1e-4)


def test_bounds_are_exact_and_two_classes_have_one_row():
    X, y = load_breast_cancer(return_X_y=True)
    model = SoftmaxRegression(l2=0.1, constraints=Box(upper=0.0)).fit(scale(X), y)
    assert model.coef_.shape == (1, 30)
    assert model.coef_.max() == 0.0
    assert (model.coef_ == 0.0).sum() > 3
    assert 0.0 <= model.kkt_residual_ <= 1e-6
    model.set_params(constraints=None).fit(scale(X), y)
    assert not hasattr(model, "kkt_residual_")


def test_intercepts_are_never_constrained():
    X, y = wine()
    model = SoftmaxRegression(constraints=Box(0.0, 0.0), tol=1e-10).fit(X, y)
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict_proba(X[:1])[0], np.bincount(y) / len(y), atol=1e-9)


def test_many_parameters_by_products_alone(rng):
    X = sp.random(400, 3000, 0.02, format="csr", random_state=0)
    y = rng.integers(0, 4, 400)
    model = SoftmaxRegression(l2=0.1, constraints=[Box(lower=0.0)], tol=1e-7).fit(X, y)
    assert model.status_ is Status.CONVERGED
    theta = np.column_stack([model.coef_, model.intercept_])
    gradient = softmax_objective(X, y, l2=0.1).at(model._ended.point.parameters).gradient
    at_zero = model._ended.point.parameters == 0.0
    assert at_zero.any()
    assert np.abs(gradient[~at_zero]).max() <= 1e-4
    assert gradient[at_zero].min() >= -1e-4
    assert theta[:, :-1].min() == 0.0


def test_warm_start_projects_and_stops_at_once():
    X, y = wine()
    model = SoftmaxRegression(warm_start=True, tol=1e-7).fit(X, y)
    model.set_params(constraints=[Simplex()]).fit(X, y)
    np.testing.assert_allclose(model.coef_.sum(1), 1.0, atol=1e-12)
    model.fit(X, y)
    assert model.n_iter_ <= 1
    assert model.status_ is Status.CONVERGED


@pytest.mark.parametrize("solver", ["lbfgs", "newton", "cg", "steepest"])
def test_other_solvers_refuse(solver):
    X, y = wine()
    with pytest.raises(CapabilityError, match=rf"solver {solver} cannot minimise Constrained.*constraints"):
        SoftmaxRegression(solver=solver, constraints=[Box(lower=0.0)]).fit(X, y)


def test_constrained_solver_refuses_plain_objectives():
    X, y = wine()
    with pytest.raises(CapabilityError, match="within its constraints"):
        SoftmaxRegression(solver="constrained_newton").fit(X, y)


def test_standard_errors_refuse_at_an_active_constraint():
    X, y = wine()
    for constraints in ([Box(lower=0.0)], [Ties(features=[0, 1])], [Linear(np.ones((1, 39)), upper=-1.0)]):
        with pytest.raises(ValueError, match="a constraint is active"):
            SoftmaxRegression(constraints=constraints).fit(X, y).standard_errors()


@pytest.mark.parametrize(
    ("constraints", "message"),
    [
        ([Box(lower=0.0), Linear(np.ones((1, 39)), upper=-1.0)], r"Box\(lower=0.0\) and Linear\(.*cannot hold together"),
        ([Monotone(), Box(upper=-1.0, features=12), Box(lower=0.0, features=0)], r"Monotone\(\), Box\(.*\) and Box\("),
        ([Box(lower=1.0), Box(upper=0.5), Monotone()], r"^constraints Box\(lower=1.0\) and Box\(upper=0.5\) cannot"),
        ([Box(1.0, -1.0)], r"constraint Box\(lower=1.0, upper=-1.0\) cannot hold"),
        ([Linear(np.zeros((1, 39)), equal=1.0)], r"constraint Linear\(.*cannot hold"),
        pytest.param([Ball(0.1), Simplex(5.0)], r"Ball\(radius=0.1\) and Simplex\(total=5.0\)", marks=needs_clarabel),
        ("box", "constraints must be a list"),
        ([1.0], "constraints must hold objects such as Box"),
        ([Box(lower=np.zeros(5))], r"lower of Box\(.*must broadcast to coef_'s part \(3, 13\), got \(5,\)"),
        ([Box(features=[13])], "features of Box.*distinct positions from 0 to 12"),
        ([Monotone(features=[1, 1])], "distinct positions"),
        ([Linear(np.ones((2, 5)))], r"A of Linear.*must have shape \(m, 3, 13\) or \(m, 39\); got \(2, 5\)"),
        ([Ties([[(0, 0), (3, 0)]])], "groups of Ties.*must lie within coef_, 3 x 13"),
    ],
)
def test_bad_sets_are_named_and_a_failed_fit_changes_nothing(constraints, message):
    X, y = wine()
    model = SoftmaxRegression().fit(X, y)
    before = model.coef_
    with pytest.raises(ValueError, match=message):
        model.set_params(constraints=constraints).fit(X, y)
    assert model.coef_ is before


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Box(lower="a"), "lower must be a number or an array"),
        (lambda: Box(lower=np.nan), "lower must not contain NaN"),
        (lambda: Box(classes=[0.5]), "classes must be positions"),
        (lambda: Linear(np.ones(3)), "A must be finite"),
        (lambda: Linear(np.ones((2, 3)), upper=[1.0, 2.0, 3.0]), r"upper must be a number or have shape \(2,\)"),
        (lambda: Linear(np.ones((2, 3)), upper=1.0, equal=1.0), "equal sets both sides"),
        (lambda: Ties(), "either groups of"),
        (lambda: Ties([[1, 2]]), "groups must be lists of"),
        (lambda: Monotone(increasing=1), "increasing must be True or False"),
        (lambda: Simplex(-1.0), "total must be"),
        (lambda: Ball(-1.0), "radius must be"),
        (lambda: Ball(1.0, norm=3), "norm must be 1, 2 or inf"),
        (lambda: Ball(1.0, center=np.inf), "center must be finite"),
        (lambda: CvxpySet(3), "function must take"),
    ],
)
def test_bad_arguments_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_constraints_are_values():
    A = np.arange(6.0).reshape(1, 6)
    assert Linear(A, upper=1.0) == Linear(A.tolist(), upper=1.0)
    assert Linear(A, upper=1.0) != Linear(A, upper=2.0)
    assert Box(lower=0.0) != Simplex()
    assert len({Box(lower=0.0), Box(lower=0.0), Box(lower=1.0)}) == 2
    constraint = Box(lower=A)
    assert copy.deepcopy(constraint) == constraint
    A[0, 0] = 5.0
    assert constraint.lower[0, 0] == 0.0
    assert repr(Ball(1.0, norm=np.inf, classes=[1])) == "Ball(radius=1.0, norm=inf, classes=(1,))"
    model = SoftmaxRegression(constraints=[constraint, Monotone()])
    assert clone(model).constraints == model.constraints


@pytest.mark.parametrize(
    "constraints",
    [
        [Box(lower=0.0), Box(-np.inf, np.full((3, 2), 0.5), features=[0, 2])],
        [Linear(np.ones((2, 3, 4)), upper=[1.0, np.inf], lower=-3.0), Monotone([0, 1], increasing=False, classes=0)],
        [Ties([[(0, 0), (1, 0)], [(0, 1), (1, 1), (2, 1)]]), Ties(features=(2, 3))],
        [Simplex(0.5, classes=[1])],
        Ball(0.2, norm=np.inf, center=np.zeros(4), per_class=True),
        [],
    ],
    ids=str,
)
def test_constraints_are_stored_with_the_model(constraints, tmp_path):
    X, y = load_iris(return_X_y=True)
    model = SoftmaxRegression(constraints=constraints).fit(X, y)
    model.save(tmp_path / "m")
    copy = SoftmaxRegression.load(tmp_path / "m")
    assert check_constraints(copy.constraints) == check_constraints(constraints)
    assert np.array_equal(copy.coef_, model.coef_)
    assert np.array_equal(copy.fit(X, y).coef_, model.coef_)


def test_grid_search_and_pipelines():
    X, y = load_iris(return_X_y=True)
    pipeline = make_pipeline(StandardScaler(), SoftmaxRegression())
    grid = {"softmaxregression__constraints": [None, [Box(lower=0.0)], [Monotone(), Box(-1.0, 1.0)]]}
    search = GridSearchCV(pipeline, grid, cv=3).fit(X, y)
    assert search.best_score_ > 0.9
    assert pickle.loads(pickle.dumps(search.best_estimator_)).score(X, y) == search.score(X, y)


def test_missing_clarabel_is_named_with_the_install_line(monkeypatch):
    monkeypatch.setitem(sys.modules, "clarabel", None)
    X, y = wine()
    with pytest.raises(ImportError, match=r"pip install 'partita\[constraints\]'"):
        SoftmaxRegression(constraints=[Ball(1.0)]).fit(X, y)
    SoftmaxRegression(constraints=[Ball(1.0, norm=np.inf), Simplex()]).fit(X, y)  # needs none


def test_a_hard_start_is_no_obstacle(rng):
    """Scores of 10^3 and more, where the Hessian has vanished."""
    X, y = wine()
    likelihood = softmax_objective(X, y)
    objective = Constrained(likelihood, compile_constraints([Monotone()], likelihood.features))
    optimum = minimize(objective, tol=1e-8).value
    far = minimize(objective, 3000.0 * rng.standard_normal(objective.size), tol=1e-6)
    assert far.value == pytest.approx(optimum, rel=1e-6)


@needs_clarabel
@pytest.mark.parametrize("make", [pytest.param(make, id=name) for name, make in CONIC.items() if "rows" not in name])
def test_balls_are_solved_beyond_the_interior_point_method(make, rng):
    objective = problem(make(rng))
    solution = minimize(objective, tol=1e-8)
    assert solution.status is Status.CONVERGED
    no_feasible_descent(objective, solution, rng)


def test_an_infeasible_point_is_refused():
    objective = problem([Simplex()])
    with pytest.raises(ValueError, match="violate the constraints by"):
        objective.at(np.zeros(objective.size))


def test_too_many_parameters_for_rows_are_refused():
    X = sp.random(20, 5000, 0.01, format="csr", random_state=0)
    with pytest.raises(ValueError, match="constraints other than bounds and ties need"):
        SoftmaxRegression(constraints=[Monotone()]).fit(X, np.arange(20) % 3)
