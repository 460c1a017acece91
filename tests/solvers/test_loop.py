from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import pytest

from partita import LBFGS, CapabilityError, ConjugateGradient, Majorize, Newton, Status, SteepestDescent, minimize
from partita.core import Capability, EstimatedPoint, ObjectiveBase, Solver
from partita.solvers import make_solver


class Bowl(ObjectiveBase):
    """A quadratic that offers a value and a gradient only: x'Ax/2 - b'x."""

    capabilities: frozenset[Capability] = frozenset({Capability.SMOOTH})
    scale = 1.0

    def __init__(self, eigenvalues=(1.0, 10.0, 100.0)):
        self.A = np.diag(eigenvalues)
        self.b = np.ones(len(eigenvalues))
        self.size = len(eigenvalues)
        self.evaluations = 0

    def at(self, parameters):
        return BowlPoint(self, parameters)


class BowlPoint:
    gap = np.inf

    def __init__(self, objective, parameters):
        objective.evaluations += 1
        self.objective, self.parameters = objective, parameters
        self.value = float(0.5 * parameters @ objective.A @ parameters - objective.b @ parameters)
        self.gradient = objective.A @ parameters - objective.b

    def along(self, direction):
        return BowlRay(self, direction)


class BowlRay:
    def __init__(self, origin, direction):
        self.origin, self.direction = origin, direction

    def at(self, step):
        point = self.origin.objective.at(self.origin.parameters + step * self.direction)
        return point, float(point.gradient @ self.direction)


@pytest.mark.parametrize("solver", ["auto", "lbfgs", "cg", "steepest"])
def test_plain_objectives_need_only_value_and_gradient(solver):
    solution = minimize(Bowl(), solver=solver, tol=1e-9, max_iter=10_000)
    assert solution.status is Status.CONVERGED
    np.testing.assert_allclose(solution.parameters, [1.0, 0.1, 0.01], atol=1e-8)


@pytest.mark.parametrize(
    ("solver", "missing"),
    [
        (Majorize(), "a quadratic upper bound"),
        (Majorize(), "within a small subspace"),
        (Newton("cholesky"), "its Hessian as a matrix"),
        (Newton(), "products with its Hessian"),
        ("newton", "an approximate inverse Hessian"),
    ],
)
def test_missing_capability_is_named_before_any_work(solver, missing):
    objective = Bowl()
    with pytest.raises(CapabilityError, match=missing):
        minimize(objective, solver=solver)
    assert objective.evaluations == 0


def test_trace_has_one_entry_per_iteration_and_the_start():
    solution = minimize(Bowl(), solver=LBFGS(), tol=1e-9)
    trace = solution.trace
    assert len(trace) == solution.n_iter + 1
    assert trace.objective[0] == 0.0
    assert trace.objective[-1] == solution.value
    assert np.all(np.diff(trace.seconds) >= 0)
    assert trace.gradient_norm[-1] <= 1e-9 < trace.gradient_norm[-2]


def test_limits_and_callbacks_stop_the_solver():
    assert minimize(Bowl(), solver="steepest", max_iter=2).status is Status.MAX_ITER
    assert minimize(Bowl(), solver="steepest", max_iter=0).n_iter == 0
    slow = minimize(Bowl(), solver="steepest", tol=0.0, time_limit=1e-6, callbacks=[lambda p: time.sleep(1e-4)])
    assert slow.status is Status.TIME_LIMIT
    seen = []
    stopped = minimize(Bowl(), solver="steepest", callbacks=[lambda p: seen.append(p.iteration) or p.iteration == 3])
    assert stopped.status is Status.CALLBACK
    assert seen == [0, 1, 2, 3]


def test_interrupt_returns_the_best_so_far():
    def interrupt(progress):
        if progress.iteration == 5:
            raise KeyboardInterrupt

    solution = minimize(Bowl(), solver="steepest", callbacks=[interrupt])
    assert solution.status is Status.INTERRUPTED
    assert solution.n_iter == 5
    assert solution.value == solution.trace.objective.min()


def test_zero_tolerance_ends_at_machine_precision():
    solution = minimize(Bowl(), solver=LBFGS(), tol=0.0, max_iter=10_000)
    assert solution.status in (Status.PRECISION, Status.CONVERGED)
    np.testing.assert_allclose(solution.parameters, [1.0, 0.1, 0.01], atol=1e-7)


def test_statuses_say_cause_and_cure():
    assert "raise max_iter" in str(Status.MAX_ITER)
    assert Status.CONVERGED.ok
    assert not Status.MAX_ITER.ok


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"max_iter": -1}, "max_iter must be an integer >= 0"),
        ({"tol": -1.0}, "tol must be"),
        ({"time_limit": 0.0}, "time_limit must be a finite number > 0"),
        ({"start": np.zeros(2)}, r"start must have shape \(3,\)"),
        ({"start": np.full(3, np.inf)}, "not finite at the start"),
        ({"solver": "adam"}, "solver must be one of 'auto'"),
        ({"solver": 3}, "solver must be a name or a solver object"),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        minimize(Bowl(), **options)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Majorize(bound="hessian"), "bound must be one of"),
        (lambda: Majorize(acceleration="nesterov"), "acceleration must be one of"),
        (lambda: Newton(method="lu"), "method must be one of"),
        (lambda: Newton(max_cg=0), "max_cg must be an integer >= 1"),
        (lambda: LBFGS(memory=0), "memory must be an integer >= 1"),
    ],
)
def test_bad_options_are_named(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_solvers_are_values():
    assert Majorize("descending") == Majorize("descending")
    assert hash(Newton()) == hash(Newton())
    assert make_solver("cg") == ConjugateGradient()
    assert make_solver(SteepestDescent()) == SteepestDescent()


@dataclass
class _Count:
    steps: int = 0


@dataclass(frozen=True)
class Halving(Solver):
    """A solver of a user's own, with the defaults of everything but the two methods that must be written."""

    factor: float = 0.5

    def start(self, objective, point):
        return _Count()

    def advance(self, state, point):
        state.steps += 1
        found, _ = point.along(-point.gradient).at(self.factor / 100.0)
        return found if found.value < point.value else None


def test_a_solver_of_ones_own_inherits_the_defaults():
    solver = Halving()
    assert make_solver(solver) is solver
    assert solver.name == "Halving"
    assert solver.requires == solver.uses == {Capability.SMOOTH}
    assert solver.with_seed(3) is solver
    solution = minimize(Bowl(), solver=solver, tol=1e-3, max_iter=20_000)
    assert solution.status is Status.CONVERGED
    assert solution.solver == "Halving"


class _Lookalike:
    name, requires = "lookalike", frozenset()

    def start(self, objective, point):
        return None

    def advance(self, state, point):
        return None


@pytest.mark.parametrize("solver", [_Lookalike(), 3, None, object()], ids=["lookalike", "number", "none", "object"])
def test_what_does_not_inherit_solver_is_refused_with_the_cure(solver):
    message = r"solver must be a name or a solver object such as Newton\(\); got .*inherits partita.core.Solver"
    with pytest.raises(ValueError, match=message):
        make_solver(solver)


@pytest.mark.parametrize("solver", [Newton, _Lookalike])
def test_a_class_is_no_solver(solver):
    with pytest.raises(ValueError, match=r"such as Newton\(\); got <class"):
        make_solver(solver)


def test_a_solver_needs_both_methods():
    class Half(Solver):
        def start(self, objective, point):
            return None

    with pytest.raises(TypeError, match="advance"):
        Half()


class Fenced(Bowl):
    """The bowl where no parameter is below one half."""

    demands = frozenset({Capability.CONSTRAINED_STEP})

    def project(self, parameters):
        return np.maximum(parameters, 0.5)


@dataclass(frozen=True)
class Stays(Halving):
    """One that says it keeps within sets, and ends where it begins."""

    @property
    def uses(self):
        return self.requires | {Capability.CONSTRAINED_STEP}

    def advance(self, state, point):
        return None


def test_demands_and_projection_are_heeded():
    with pytest.raises(CapabilityError, match="would leave the constraints"):
        minimize(Fenced(), solver=Halving())
    solution = minimize(Fenced(), solver=Stays())
    np.testing.assert_array_equal(solution.parameters, [0.5, 0.5, 0.5])


@dataclass(frozen=True)
class Roundabout(Halving):
    """One that takes either of two capabilities."""

    @property
    def requires(self):
        return frozenset({Capability.HESSIAN})

    @property
    def alternatives(self):
        return (frozenset({Capability.EM_STEP}), frozenset({Capability.SMOOTH}))


def test_any_alternative_takes_the_place_of_what_is_required():
    assert minimize(Bowl(), solver=Roundabout(), max_iter=1).n_iter == 1

    class Bare(Bowl):
        capabilities = frozenset()

    with pytest.raises(CapabilityError, match="its Hessian as a matrix"):
        minimize(Bare(), solver=Roundabout())


@dataclass(frozen=True)
class Interrupted(Halving):
    """One that is interrupted within its second iteration, and says where that was."""

    at: tuple[float, ...] = (1.0, 0.1, 0.01)

    def advance(self, state, point):
        if state.steps:
            raise KeyboardInterrupt
        return super().advance(state, point)

    def interrupted_at(self, state):
        return np.array(self.at)


@pytest.mark.parametrize(("at", "kept"), [((1.0, 0.1, 0.01), True), ((9.0, 9.0, 9.0), False)])
def test_the_better_of_the_last_point_and_where_it_was_interrupted_is_kept(at, kept):
    solution = minimize(Bowl(), solver=Interrupted(at=at))
    assert solution.status is Status.INTERRUPTED
    assert np.array_equal(solution.parameters, at) == kept
    assert solution.trace.objective[-1] == solution.value == Bowl().at(solution.parameters).value


@dataclass(frozen=True)
class Guessing(Halving):
    """One whose points are estimates, too low by a half."""

    stochastic = True

    def first(self, objective, theta):
        return EstimatedPoint(theta, np.nan, np.full(objective.size, np.inf))

    def advance(self, state, point):
        return EstimatedPoint(point.parameters + 0.001, -0.5, np.ones(3))

    def verdict(self, state, point):
        return Status.STALLED


def test_estimates_are_measured_in_the_end():
    solution = minimize(Bowl(), solver=Guessing())
    assert solution.status is Status.STALLED
    assert solution.value == Bowl().at(np.full(3, 0.001)).value == solution.trace.objective[-1]
