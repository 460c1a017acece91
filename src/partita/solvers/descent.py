"""Steepest descent and nonlinear conjugate gradients: the papers' first-order rivals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from .line_search import line_search


def _first_step(point: Point) -> float:
    return 1.0 / max(1.0, float(np.linalg.norm(point.gradient)))


@dataclass
class DescentState:
    """The step to try first."""

    step: float


@dataclass(frozen=True)
class SteepestDescent(Solver[DescentState, Objective, Point]):
    """Steps along the negative gradient with a nearly exact line search."""

    key = "steepest"

    def start(self, objective: Objective, point: Point) -> DescentState:
        return DescentState(_first_step(point))

    def advance(self, state: DescentState, point: Point) -> Point | None:
        found = line_search(point, point.along(-point.gradient), state.step)
        if found is None:
            return None
        state.step = found[1]
        return found[0]


@dataclass
class ConjugateState:
    """The next direction, and the step to try first."""

    direction: FloatArray
    step: float


@dataclass(frozen=True)
class ConjugateGradient(Solver[ConjugateState, Objective, Point]):
    """Nonlinear conjugate gradients (Polak-Ribière, restarted when it would not descend)."""

    key = "cg"

    def start(self, objective: Objective, point: Point) -> ConjugateState:
        return ConjugateState(-point.gradient, _first_step(point))

    def advance(self, state: ConjugateState, point: Point) -> Point | None:
        direction = state.direction
        found = line_search(point, point.along(direction), state.step)
        if found is None:
            direction = -point.gradient
            found = line_search(point, point.along(direction), _first_step(point))
            if found is None:
                return None
        following, step = found
        old, new = point.gradient, following.gradient
        ratio = max(0.0, float(new @ (new - old)) / float(old @ old))
        state.direction = -new + ratio * direction
        slope = float(new @ state.direction)
        if not slope < 0.0:
            state.direction, slope = -new, -float(new @ new)
        if slope < 0.0:  # the same first-order decrease as the last step
            state.step = step * min(10.0, float(old @ direction) / slope)
        return following
