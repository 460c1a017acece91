"""Whether a solver stopped far from where it should have."""

from __future__ import annotations

import warnings
from typing import Any

from ..core.errors import ConvergenceWarning
from ..core.results import Solution, Status

#: Multiple of tol above which stopping for want of a descending step deserves a warning.
FAR = 100.0


def warn_if_short(estimator: Any, solution: Solution, stacklevel: int = 4) -> None:
    """Warn when a fit ended before its tolerance, with cause and cure."""
    status = solution.status
    near = status is Status.PRECISION and solution.trace.gradient_norm[-1] <= FAR * estimator.tol
    if not status.ok and not near:
        warnings.warn(f"{type(estimator).__name__} {status}", ConvergenceWarning, stacklevel=stacklevel)
