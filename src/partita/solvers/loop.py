"""The one loop: tracing, timing, callbacks, limits and interrupts for every solver."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Generic, TypeVar

import numpy as np

from ..core.contracts.capabilities import Capability
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.progress import Callback, EstimatedPoint
from ..core.contracts.solver import AnySolver, Solver
from ..core.errors import CapabilityError
from ..core.interrupts import is_interrupt, pass_on_in_search
from ..core.parallel import blas_limit
from ..core.results import FloatArray, Row, Solution, Status, conclude
from ..core.validation import check_count, check_real
from .named import make_solver
from .recorder import Recorder

CHEAPER = "Choose a solver that needs less, such as 'lbfgs', 'cg' or 'steepest'."

P = TypeVar("P", bound=Point)


def check_capabilities(solver: AnySolver, objective: Objective) -> None:
    """Raise a CapabilityError that names what the objective lacks for this solver, or demands of it."""
    unused = objective.demands - solver.uses
    if unused:
        raise CapabilityError(
            f"solver {solver.name} cannot minimise {type(objective).__name__}: it does not use {_texts(unused)}, and would "
            "leave the constraints. Choose 'auto', 'majorize', ConstrainedNewton() or ConstrainedLBFGS()."
        )
    offers = objective.capabilities
    missing = solver.requires - offers
    if missing and not any(instead <= offers for instead in solver.alternatives):
        raise CapabilityError(
            f"solver {solver.name} cannot minimise {type(objective).__name__}: the objective must offer {_texts(missing)}. "
            + _advice(objective)
        )


def _texts(capabilities: frozenset[Capability]) -> str:
    return "; ".join(capability.value for capability in sorted(capabilities, key=lambda c: c.name))


def _advice(objective: Objective) -> str:
    offers = objective.capabilities
    if Capability.SMOOTH in offers and not objective.demands:
        return CHEAPER
    return "Choose 'auto' or 'owlqn'." if Capability.ORTHANT in offers else "Choose 'auto'."


def minimize(
    objective: Objective,
    start: FloatArray | None = None,
    solver: str | Solver = "auto",
    *,
    max_iter: int = 1000,
    tol: float = 1e-6,
    gap_tol: float | None = None,
    time_limit: float | None = None,
    callbacks: Iterable[Callback] = (),
) -> Solution:
    """Minimise an objective.

    Parameters
    ----------
    objective : Objective
        What to minimise.
    start : array of shape (objective.size,), optional
        Default: zeros. Of a constrained objective, the nearest feasible parameters are taken.
    solver : str or Solver
        A name (see `make_solver`) or a solver object such as ``Majorize(acceleration="anderson")``.
    max_iter : int
        Most iterations.
    tol : float
        Stop when the largest absolute entry of the gradient, divided by `objective.scale` (about the total weight of the
        examples), is at most `tol`.
    gap_tol : float, optional
        Stop also when the gap, a certified bound on what the objective is above its minimum, is at most so large.
    time_limit : float, optional
        Seconds.
    callbacks : iterable of callables
        Each is called with a `Progress` after every iteration; a true return value stops the solver.

    Returns
    -------
    Solution
        The best point met, why the solver stopped, and the trace, whose last row describes that point. A keyboard interrupt
        returns it too, if there is anything to return, and the run is not one of many (`core.interrupts`).
    """
    method = make_solver(solver)
    check_count("max_iter", max_iter)
    check_real("tol", tol, minimum=0.0)
    if gap_tol is not None:
        check_real("gap_tol", gap_tol, minimum=0.0)
    if time_limit is not None:
        check_real("time_limit", time_limit, minimum=0.0, strict=True)
    check_capabilities(method, objective)
    theta = np.zeros(objective.size) if start is None else np.array(start, dtype=np.float64)
    if theta.shape != (objective.size,):
        raise ValueError(f"start must have shape ({objective.size},), got {theta.shape}")
    # The start is evaluated with as many threads as all points after it: with another number the last digit may be another.
    with blas_limit(method.blas_threads(objective)):
        point: Any = method.first(objective, objective.project(theta))
        if not method.stochastic and not np.isfinite(point.value):
            raise ValueError("the objective is not finite at the start; choose another start")
        recorder = Recorder(method.name, objective.scale, callbacks)
        run: type[_Run[Any]] = _EstimatedRun if method.stochastic else _Run
        return run(objective, method, point, recorder, tol, gap_tol).solution(max_iter, time_limit)


class _Run(Generic[P]):
    """One run of a solver: where it is, the best it met, and what it returns in the end."""

    def __init__(
        self, objective: Objective, method: AnySolver, point: P, recorder: Recorder, tol: float, gap_tol: float | None
    ) -> None:
        self.objective, self.method, self.recorder, self.tol, self.gap_tol = objective, method, recorder, tol, gap_tol
        self.first = self.point = self.best = point
        self.state: Any = None  # the method's own
        self.known: tuple[P, Row] | None = None  # the best point and its row

    def solution(self, max_iter: int, time_limit: float | None) -> Solution:
        """Iterate until there is a reason to stop."""
        rows = self.recorder.rows
        try:
            norm, stop = self._add()
            status = self._verdict(norm, stop, max_iter, time_limit)
            while status is None:
                self.state = self.method.start(self.objective, self.point) if self.state is None else self.state
                following: Any = self.method.advance(self.state, self.point)
                if following is None:
                    status = Status.PRECISION
                elif not np.isfinite(following.value):
                    status = Status.DIVERGED
                else:
                    self._move(following)
                    norm, stop = self._add()
                    status = self._verdict(norm, stop, max_iter, time_limit)
        except (KeyboardInterrupt, SystemError, TypeError) as error:
            if not is_interrupt(error):
                raise
            pass_on_in_search()
            within = None if self.state is None else self.method.interrupted_at(self.state)
            if self.point is self.first and within is None:
                raise KeyboardInterrupt from error  # there is nothing to keep
            status = Status.INTERRUPTED
            if within is not None:
                self._keep(within)
        return self._conclude(status, max(0, len(rows) - 1))

    def _add(self) -> tuple[float, bool]:
        norm, stop = self.recorder.add(self.point)
        if self.best is self.point:
            self.known = self.best, self.recorder.rows[-1]
        return norm, stop

    def _move(self, point: P) -> None:
        self.point = point
        if self.method.keeps_last or not point.value > self.best.value:
            self.best = point

    def _keep(self, parameters: FloatArray) -> None:
        """Parameters between two iterations, where the method was interrupted."""
        point: Any = self.objective.at(parameters)
        self.best = self.best if point.value > self.best.value else point

    def _verdict(self, norm: float, stop: bool, max_iter: int, time_limit: float | None) -> Status | None:
        """Why to stop here, if there is a reason."""
        rows = self.recorder.rows
        if (norm <= self.tol and self._is_flat()) or self._is_certain():
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        if len(rows) > max_iter:
            return Status.MAX_ITER
        if self.state is not None:
            verdict = self.method.verdict(self.state, self.point)
            if verdict is not None:
                return verdict
        return Status.TIME_LIMIT if time_limit is not None and self.recorder.seconds() >= time_limit else None

    def _is_flat(self) -> bool:
        """Whether a gradient norm below the tolerance is right."""
        return True

    def _is_certain(self) -> bool:
        """Whether the gap is small enough, also when it is measured."""
        rows = self.recorder.rows
        if self.gap_tol is None or not rows[-1][2] <= self.gap_tol:
            return False
        self._settle()
        return bool(rows[-1][2] <= self.gap_tol)

    def _settle(self) -> None:
        """Replace the point by what its solver makes of it in the end, and the last row by one that describes it."""
        settled: Any = self.method.settle(self.state, self.point)
        if settled is self.point:
            return
        if self.best is self.point:
            self.best = settled
        self.point, self.recorder.rows[-1] = settled, self.recorder.describe(settled)
        if self.best is settled:
            self.known = settled, self.recorder.rows[-1]

    def _measured(self, point: P) -> tuple[Point, Row]:
        """A point with its exact value and gradient, and the row of the trace that describes it."""
        if self.known is not None and self.known[0] is point:
            return point, (*self.known[1][:3], self.recorder.seconds())
        return point, self.recorder.describe(point)

    def _conclude(self, status: Status, n_iter: int) -> Solution:
        if status is not Status.INTERRUPTED:
            self._settle()
        if status is Status.CONVERGED:
            self.best = self.point
        return self._concluded(*self._measured(self.best), self.recorder.rows, status, n_iter)

    def _concluded(self, point: Point, row: Row, rows: list[Row], status: Status, n_iter: int) -> Solution:
        return conclude(
            *(point, row, rows),
            status=status,
            n_iter=n_iter,
            solver=self.method.name,
            tol=self.tol,
            gap_tol=self.gap_tol,
        )


class _EstimatedRun(_Run[EstimatedPoint]):
    """A run whose points are estimates: what is returned is measured in the end."""

    def __init__(self, objective: Objective, method: AnySolver, point: EstimatedPoint, *options: Any) -> None:
        super().__init__(objective, method, point, *options)
        self.lowest = point

    def _add(self) -> tuple[float, bool]:
        return self.recorder.add(self.point)

    def _move(self, point: EstimatedPoint) -> None:
        self.point = point
        # An estimate of the training loss lags behind its parameters; a measured value does not.
        if not point.held_out or self.method.keeps_last or not point.value > self.best.value:
            self.best = point
        self.lowest = self.lowest if point.value > self.lowest.value else point

    def _keep(self, parameters: FloatArray) -> None:
        if not self.best.held_out:
            self.best = EstimatedPoint(parameters, np.nan, np.full(self.objective.size, np.nan))

    def _is_flat(self) -> bool:
        """An estimate is measured first."""
        return self._measured(self.point)[1][1] <= self.tol

    def _measured(self, point: EstimatedPoint) -> tuple[Point, Row]:
        exact = self.objective.at(point.parameters)
        return exact, self.recorder.describe(exact)

    def _conclude(self, status: Status, n_iter: int) -> Solution:
        rows = self.recorder.rows
        if status is Status.CONVERGED:
            self.best = self.point
        exact, row = self._measured(self.best)
        if not self.best.held_out:
            others = () if status is Status.CONVERGED else (self.lowest, self.first)
            for other in others:  # the start counts only where nothing else is finite
                if other is not self.best and (other is not self.first or not np.isfinite(row[0])):
                    found = self._measured(other)
                    if found[1][0] < row[0] or not np.isfinite(row[0]):
                        (exact, row), self.best = found, other
            if self.best is self.point and rows:
                rows = rows[:-1]  # what was estimated there is now known
        return self._concluded(exact, row, rows, status, n_iter)
