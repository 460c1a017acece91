"""A solver from several starts at once."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..core.parallel import Workers, blas_limit
from ..core.results import FloatArray, Solution, Status
from ..report import ProgressPrinter
from ..solvers import minimize


def run_starts(
    objective: Any,
    starts: Sequence[FloatArray],
    solver: Any,
    *,
    max_iter: int,
    tol: float,
    verbose: int,
    n_jobs: int | None,
) -> tuple[Solution, list[Solution | None]]:
    """The lowest end, and the ends of all starts, which run in threads.

    An interrupt ends all; starts that had not begun give None.
    """
    stop = threading.Event()

    def run(number: int, start: FloatArray) -> Solution | None:
        if stop.is_set():
            return None
        callbacks: list[Any] = [lambda _: stop.is_set()]
        if verbose:
            name = "" if len(starts) == 1 else f"start {number + 1} of {len(starts)}, "
            callbacks.append(ProgressPrinter(0.5 if verbose == 1 else 0.0, name))
        try:
            solution = minimize(*(objective, start, solver), max_iter=max_iter, tol=tol, callbacks=callbacks)
        except BaseException:
            stop.set()
            raise
        if solution.status is Status.INTERRUPTED:
            stop.set()
        return solution

    # One limit around all: each run would put back what it found, in the order in which they happen to end.
    with blas_limit(1 if len(starts) > 1 else None):
        try:
            solutions = Workers(n_jobs).run(run, list(enumerate(starts)))
        finally:
            stop.set()
    best = min((s for s in solutions if s is not None), key=lambda s: s.value)
    if any(s is None or s.status is Status.INTERRUPTED for s in solutions):
        best = replace(best, status=Status.INTERRUPTED)
    return best, solutions
