from __future__ import annotations

import time

import numpy as np
import pytest

from partita import LBFGS, CapabilityError, ConjugateGradient, Majorize, Newton, Status, SteepestDescent, minimize
from partita.core import Capability
from partita.solvers import make_solver


class Bowl:
    """A quadratic that offers a value and a gradient only: x'Ax/2 - b'x."""

    capabilities: frozenset[Capability] = frozenset({Capability.SMOOTH})
    scale = 1.0
    dense_cost = strong_cost = float("inf")
    blas_threads = None

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
