"""A solver from several starts at once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..core import Callback
from ..core.interrupts import pass_on_in_search
from ..core.parallel import Workers, blas_limit
from ..core.results import FloatArray, Solution, Status
from ..report.progress import progress_printers
from ..solvers.loop import minimize


def run_starts(
    objective: Any,
    starts: Sequence[FloatArray | Callable[[], FloatArray]],
    solver: Any,
    *,
    max_iter: int,
    tol: float,
    verbose: int,
    n_jobs: int | None,
) -> tuple[Solution, list[Solution | None]]:
    """The lowest end, and the ends of all starts, which run in threads.

    A start may be a function that makes it when its turn comes. An interrupt ends all; starts that had not begun give None.
    It is raised if there are no others.
    """
    stop = threading.Event()

    def run(number: int, start: FloatArray | Callable[[], FloatArray]) -> Solution | None:
        if stop.is_set():
            return None
        name = "" if len(starts) == 1 else f"start {number + 1} of {len(starts)}, "
        callbacks: list[Callback] = [lambda _: stop.is_set(), *progress_printers(verbose, name)]
        try:
            first = start() if callable(start) else start
            solution = minimize(*(objective, first, solver), max_iter=max_iter, tol=tol, callbacks=callbacks)
        except BaseException:
            stop.set()
            raise
        if solution.status is Status.INTERRUPTED:
            stop.set()
        return solution

    # One limit around all: each run would put back what it found, in the order in which they happen to end.
    with blas_limit(1 if len(starts) > 1 else None):
        solutions = Workers(n_jobs).run(run, list(enumerate(starts)), interrupted=stop.set)
    if stop.is_set():
        pass_on_in_search()
    found = [solution for solution in solutions if solution is not None]
    if not found:
        raise KeyboardInterrupt
    best = min(found, key=lambda solution: solution.value)
    return replace(best, status=Status.INTERRUPTED) if stop.is_set() else best, solutions


def end_values(solutions: list[Solution | None]) -> FloatArray:
    """The objective that each start led to, NaN where an interrupt came first."""
    return np.array([np.nan if solution is None else solution.value for solution in solutions])


def rough_fit(objective: Any, start: FloatArray | None, solver: Any, max_iter: int, tol: float) -> FloatArray:
    """Parameters after a few iterations, to start from. An interrupt is raised: there is nothing to keep yet."""
    solution = minimize(*(objective, start, solver), max_iter=max_iter, tol=tol)
    if solution.status is Status.INTERRUPTED:
        raise KeyboardInterrupt
    return solution.parameters
