"""What estimators minimise: a likelihood, with an l1 penalty and within a convex set, if they have these."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from ..core.contracts.objective import Objective
from ..core.results import FloatArray
from .constraints.asked import ModelledObjective
from .constraints.constrained import Constrained, ConstrainedPoint
from .constraints.feasible_set import FeasibleSet
from .l1 import L1, L1Point, SmoothObjective


def restricted(
    likelihood: Objective, l1: float | FloatArray | None = None, feasible: FeasibleSet | None = None
) -> Objective:
    """The objective to minimise.

    Parameters
    ----------
    likelihood : PenalizedObjective
        Smooth, with its quadratic penalty.
    l1 : float or array of shape (size,), optional
        The l1 of each parameter.
    feasible : FeasibleSet, optional
        Where parameters must stay.
    """
    if feasible is not None:
        return Constrained(cast(ModelledObjective, likelihood), feasible, l1)
    if l1 is None or not np.any(l1):
        return likelihood
    return L1(cast(SmoothObjective, likelihood), l1)


def smooth_point(point: Any) -> Any:
    """The point of the likelihood, of a point of `restricted`."""
    if isinstance(point, ConstrainedPoint):
        return point.likelihood
    return point.smooth if isinstance(point, L1Point) else point
