"""Newton's method within a convex set."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.contracts.capabilities import Capability, ConstrainedRay, HasConstrainedStep
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from .line_search import line_search

#: Slope that a step must reach, relative to the first.
SLOPE = 0.1
#: A point whose value cannot be lowered is kept with new multipliers if they shrink its residual to this share.
BETTER = 0.99


@dataclass(frozen=True)
class ConstrainedState:
    """Whether there are bounds to fall back on."""

    has_bound: bool


@dataclass(frozen=True)
class ConstrainedNewton(Solver[ConstrainedState, Objective, HasConstrainedStep]):
    """Quadratic programs with the Hessian, and a nearly exact search along the feasible segment to their solution.

    Every iterate is feasible. Where the Hessian has vanished, a majorization step is taken instead.
    """

    key = "constrained_newton"

    @property
    def name(self) -> str:
        return "constrained newton"

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.CONSTRAINED_STEP, Capability.MODEL})

    def start(self, objective: Objective, point: Point) -> ConstrainedState:
        return ConstrainedState(Capability.QUADRATIC_BOUND in objective.capabilities)

    def advance(self, state: ConstrainedState, point: HasConstrainedStep) -> Point | None:
        ray = point.constrained_step("hessian")
        following = None if ray is None else search_segment(point, ray)
        if following is None and state.has_bound:
            ray = point.constrained_step("descending")
            following = None if ray is None else search_segment(point, ray)
        return following


def search_segment(point: Point, ray: ConstrainedRay) -> Point | None:
    """A lower point along the ray; else this point with better multipliers, if they are; else None."""
    found = line_search(point, ray, curvature=SLOPE, slope0=ray.slope, limit=ray.reach)
    if found is not None:
        return found[0]
    here = ray.stay()
    return here if _residual(here) < BETTER * _residual(point) else None


def _residual(point: Point) -> float:
    return float(np.abs(point.gradient).max(initial=0.0))
