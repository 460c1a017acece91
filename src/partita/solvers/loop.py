"""The one loop: tracing, timing, callbacks, limits and interrupts for every solver."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..core.errors import CapabilityError
from ..core.parallel import blas_limit
from ..core.protocols import Callback, Capability, EstimatedPoint, Objective, Point, Progress, Solver
from ..core.results import FloatArray, Solution, Status, Trace
from ..core.validation import check_count, check_real
from .auto import make_solver

CHEAPER = "Choose a solver that needs less, such as 'lbfgs', 'cg' or 'steepest'."


class _Recorder:
    """Keeps the trace and tells the callbacks."""

    def __init__(self, solver: str, scale: float, callbacks: Iterable[Callback]) -> None:
        self.solver, self.scale = solver, scale
        self.callbacks = tuple(callbacks)
        self.start = time.perf_counter()
        self.rows: list[tuple[float, float, float, float]] = []

    def seconds(self) -> float:
        return time.perf_counter() - self.start

    def add(self, point: Point) -> tuple[float, bool]:
        """Record a point; return its scaled gradient norm and whether a callback asks to stop."""
        norm = float(np.abs(point.gradient).max(initial=0.0)) / self.scale
        row = (point.value, norm, point.gap, self.seconds())
        self.rows.append(row)
        stop = False
        for callback in self.callbacks:
            progress = Progress(self.solver, len(self.rows) - 1, *row, parameters=point.parameters)
            stop = bool(callback(progress)) or stop
        return norm, stop

    def trace(self) -> Trace:
        return Trace(*np.array(self.rows, dtype=np.float64).reshape(-1, 4).T.copy())


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
        Stop when the largest absolute entry of the gradient, divided by `objective.scale`, is at most `tol`.
    gap_tol : float, optional
        Stop also when the gap, a certified bound on what the objective is above its minimum, is at most so large.
    time_limit : float, optional
        Seconds.
    callbacks : iterable of callables
        Each is called with a `Progress` after every iteration; a true return value stops the solver.

    Returns
    -------
    Solution
        The best point met, why the solver stopped, and the trace. A keyboard interrupt returns it too.
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
        return _run(objective, method, point, max_iter, tol, gap_tol, time_limit, callbacks)


def _no_verdict(state: Any, point: Point) -> Status | None:
    return None


def _run(
    objective: Objective,
    method: Solver,
    point: Point,
    max_iter: int,
    tol: float,
    gap_tol: float | None,
    time_limit: float | None,
    callbacks: Iterable[Callback],
) -> Solution:
    recorder = _Recorder(method.name, objective.scale, callbacks)
    best: Any = point
    lowest: Any = point
    status: Status | None = None
    state: Any = None
    try:
        norm, stop = recorder.add(point)
        while status is None:
            if norm <= tol or (gap_tol is not None and recorder.rows[-1][2] <= gap_tol):
                status = Status.CONVERGED
            elif stop:
                status = Status.CALLBACK
            elif len(recorder.rows) > max_iter:
                status = Status.MAX_ITER
            elif state is not None and (verdict := getattr(method, "verdict", _no_verdict)(state, point)) is not None:
                status = verdict
            elif time_limit is not None and recorder.seconds() >= time_limit:
                status = Status.TIME_LIMIT
            else:
                state = method.start(objective, point) if state is None else state
                following = method.advance(state, point)
                if following is None:
                    status = Status.PRECISION
                elif not np.isfinite(following.value):
                    status = Status.DIVERGED
                else:
                    point = following
                    # An estimate of the training loss lags behind its parameters; a measured value does not.
                    last = (isinstance(point, EstimatedPoint) and not point.held_out) or getattr(method, "keeps_last", False)
                    best = point if last or not point.value > best.value else best
                    lowest = lowest if point.value > lowest.value else point
                    norm, stop = recorder.add(point)
    except KeyboardInterrupt:
        status = Status.INTERRUPTED
        within = getattr(state, "interrupted_at", None)
        if within is not None and not best.held_out:
            best = EstimatedPoint(within, np.nan, np.full(objective.size, np.nan))
    if status is Status.CONVERGED:
        best = point
    if status is Status.UNSTABLE:
        best = lowest
    if isinstance(best, EstimatedPoint):
        exact = objective.at(best.parameters)
        if best is point and not best.held_out:
            recorder.rows[-1] = (exact.value, *recorder.rows[-1][1:])
        best = exact
    trace = recorder.trace()
    return Solution(best.parameters, best.value, status, max(0, len(trace) - 1), trace, method.name, best)
