"""Whether a solver, or an engine within it, stopped far from where it should have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ..core.contracts.progress import DualPoint
from ..core.errors import ConvergenceWarning
from ..core.results import Result, Solution, Status, Trace
from ..core.warn import warn

#: Multiple of tol above which stopping for want of a descending step deserves a warning.
FAR = 100.0
#: Gradient of the mean loss above which a stochastic solver that no longer improves deserves one.
FAR_STALLED = 0.01


def warn_if_short(estimator: Any, solution: Solution, also: str = "", held_out: bool = True) -> None:
    """Warn when a fit ended before its tolerance, or for the reason in `also`, with cause and cure.

    A loss that no longer improves is a good end on held-out data; if it is that of training (`held_out` is False), only
    where the gradient is small.
    """
    status = solution.status
    if status is Status.CONVERGED and not also:
        return
    norm = solution.trace.gradient_norm[-1]
    short = not status.ok
    if status is Status.PRECISION:
        short = norm > FAR * estimator.tol
    elif status is Status.STALLED and not held_out:
        short = norm > max(FAR_STALLED, FAR * estimator.tol)
    reasons = [*([str(status)] if short else []), *([also] if also else [])]
    if reasons:
        warn(f"{type(estimator).__name__} {'; '.join(reasons)}", ConvergenceWarning)


def unsettled(*results: Result | None) -> str:
    """What is to be said of the results of engines at the end of a fit: nothing if all are as good as was asked for."""
    for result in results:
        if result is not None and not result.status.ok:
            return f"ended with a likelihood that is not right: engine {result.engine} has {result.status}"
    return ""


def certified_gap(point: Any) -> float:
    """What the objective is at most above its minimum; inf where that is not known, or was not measured in the end."""
    return np.inf if isinstance(point, DualPoint) and not point.certified else float(point.gap)


def joined(first: Solution, then: Solution) -> Solution:
    """Two runs, the second from where the first ended, as one. That place is told as the second sees it."""
    parts = [
        np.concatenate([getattr(first.trace, name)[:-1], getattr(then.trace, name) + shift])
        for name, shift in (("objective", 0.0), ("gradient_norm", 0.0), ("gap", 0.0), ("seconds", first.trace.seconds[-1]))
    ]
    return replace(then, n_iter=first.n_iter + then.n_iter, trace=Trace(*parts))
