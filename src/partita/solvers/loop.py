"""The one loop: tracing, timing, callbacks, limits and interrupts for every solver."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.errors import CapabilityError
from ..core.interrupts import is_interrupt, pass_on_in_search
from ..core.parallel import blas_limit
from ..core.protocols import Callback, Capability, EstimatedPoint, Objective, Point, Progress, Solver
from ..core.results import FloatArray, Row, Solution, Status, conclude, measure
from ..core.validation import check_count, check_real
from .auto import make_solver

CHEAPER = "Choose a solver that needs less, such as 'lbfgs', 'cg' or 'steepest'."


class _Recorder:
    """Keeps the trace and tells the callbacks."""

    def __init__(self, solver: str, scale: float, callbacks: Iterable[Callback]) -> None:
        self.solver, self.scale = solver, scale
        self.callbacks = tuple(callbacks)
        self.start = time.perf_counter()
        self.rows: list[Row] = []

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def add(self, point: Point) -> tuple[float, bool]:
        """Record a point; return its scaled gradient norm and whether a callback asks to stop."""
        row = measure(point, self.scale, self.seconds())
        self.rows.append(row)
        stop = False
        for callback in self.callbacks:
            progress = Progress(self.solver, len(self.rows) - 1, *row, parameters=point.parameters)
            stop = bool(callback(progress)) or stop
        return row[1], stop


def check_capabilities(solver: Solver, objective: Objective) -> None:
    """Raise a CapabilityError that names what the objective lacks for this solver, or demands of it."""
    demands: frozenset[Capability] = getattr(objective, "demands", frozenset())
    unused = sorted(demands - getattr(solver, "uses", frozenset()), key=lambda c: c.name)
    if unused:
        wants = "; ".join(capability.value for capability in unused)
        raise CapabilityError(
            f"solver {solver.name} cannot minimise {type(objective).__name__}: it does not use {wants}, and would leave the "
            "constraints. Choose 'auto', 'majorize' or ConstrainedNewton()."
        )
    missing = sorted(solver.requires - objective.capabilities, key=lambda c: c.name)
    instead: frozenset[Capability] | None = getattr(solver, "instead", None)
    if missing and not (instead and instead <= objective.capabilities):
        wants = "; ".join(capability.value for capability in missing)
        raise CapabilityError(
            f"solver {solver.name} cannot minimise {type(objective).__name__}: the objective must offer {wants}. "
            + _advice(objective)
        )


def _advice(objective: Objective) -> str:
    offers = objective.capabilities
    if Capability.SMOOTH in offers and not getattr(objective, "demands", None):
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
    # Mini-batches are too small for threads in BLAS to pay. The start is evaluated with as many threads as all points
    # after it: with another number the last digit may be another one.
    with blas_limit(1 if hasattr(method, "first") else objective.blas_threads):
        if hasattr(objective, "project"):
            theta = objective.project(theta)
        point: Any = method.first(objective, theta) if hasattr(method, "first") else objective.at(theta)
        if not isinstance(point, EstimatedPoint) and not np.isfinite(point.value):
            raise ValueError("the objective is not finite at the start; choose another start")
        return _Run(objective, method, point, tol, gap_tol, callbacks).solution(max_iter, time_limit)


def _no_verdict(state: Any, point: Point) -> Status | None:
    return None


class _Run:
    """One run of a solver: where it is, the best it met, and what it returns in the end."""

    def __init__(
        self,
        objective: Objective,
        method: Solver,
        point: Any,
        tol: float,
        gap_tol: float | None,
        callbacks: Iterable[Callback],
    ) -> None:
        self.objective, self.method, self.tol, self.gap_tol = objective, method, tol, gap_tol
        self.recorder = _Recorder(method.name, objective.scale, callbacks)
        self.first = self.point = self.best = self.lowest = point
        self.estimated = isinstance(point, EstimatedPoint)
        self.state: Any = None
        self.known: tuple[Any, Row] | None = None  # the best point and its row, where points are exact

    def solution(self, max_iter: int, time_limit: float | None) -> Solution:
        """Iterate until there is a reason to stop."""
        rows = self.recorder.rows
        try:
            norm, stop = self._add()
            status = self._verdict(norm, stop, max_iter, time_limit)
            while status is None:
                self.state = self.method.start(self.objective, self.point) if self.state is None else self.state
                following = self.method.advance(self.state, self.point)
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
            within = getattr(self.state, "interrupted_at", None)
            if self.point is self.first and within is None:
                raise KeyboardInterrupt from error  # there is nothing to keep
            status = Status.INTERRUPTED
            if within is not None and not self.best.held_out:
                self.best = EstimatedPoint(within, np.nan, np.full(self.objective.size, np.nan))
        return self._conclude(status, max(0, len(rows) - 1))

    def _add(self) -> tuple[float, bool]:
        norm, stop = self.recorder.add(self.point)
        if self.best is self.point and not self.estimated:
            self.known = self.best, self.recorder.rows[-1]
        return norm, stop

    def _move(self, point: Any) -> None:
        self.point = point
        # An estimate of the training loss lags behind its parameters; a measured value does not.
        last = (self.estimated and not point.held_out) or getattr(self.method, "keeps_last", False)
        self.best = point if last or not point.value > self.best.value else self.best
        self.lowest = self.lowest if point.value > self.lowest.value else point

    def _verdict(self, norm: float, stop: bool, max_iter: int, time_limit: float | None) -> Status | None:
        """Why to stop here, if there is a reason."""
        rows = self.recorder.rows
        if (norm <= self.tol and self._is_flat()) or (self.gap_tol is not None and rows[-1][2] <= self.gap_tol):
            return Status.CONVERGED
        if stop:
            return Status.CALLBACK
        if len(rows) > max_iter:
            return Status.MAX_ITER
        if self.state is not None:
            verdict: Status | None = getattr(self.method, "verdict", _no_verdict)(self.state, self.point)
            if verdict is not None:
                return verdict
        return Status.TIME_LIMIT if time_limit is not None and self.recorder.seconds() >= time_limit else None

    def _is_flat(self) -> bool:
        """Whether a gradient norm below the tolerance is right: one that was estimated is measured first."""
        return not self.estimated or self._measured(self.point)[1][1] <= self.tol

    def _measured(self, point: Any) -> tuple[Any, Row]:
        """A point with its exact value and gradient, and the row of the trace that describes it."""
        if self.known is not None and self.known[0] is point:
            return point, (*self.known[1][:3], self.recorder.seconds())
        exact = self.objective.at(point.parameters) if isinstance(point, EstimatedPoint) else point
        return exact, measure(exact, self.recorder.scale, self.recorder.seconds())

    def _conclude(self, status: Status, n_iter: int) -> Solution:
        rows = self.recorder.rows
        if status is Status.CONVERGED:
            self.best = self.point
        exact, row = self._measured(self.best)
        if self.estimated and not self.best.held_out:
            others = () if status is Status.CONVERGED else (self.lowest, self.first)
            for other in others:  # the start counts only where nothing else is finite
                if other is not self.best and (other is not self.first or not np.isfinite(row[0])):
                    found = self._measured(other)
                    if found[1][0] < row[0] or not np.isfinite(row[0]):
                        (exact, row), self.best = found, other
            if self.best is self.point and rows:
                rows = rows[:-1]  # what was estimated there is now known
        return conclude(
            *(exact, row, rows),
            status=status,
            n_iter=n_iter,
            solver=self.method.name,
            tol=self.tol,
            gap_tol=self.gap_tol,
        )
