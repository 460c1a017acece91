"""Orthant-wise quasi-Newton steps (OWL-QN), for smooth objectives with an l1 penalty.

Newton steps by conjugate gradients within the orthant were tried and lost: too many parameters reach zero on the way, and
the rest of the step is then wrong.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..core.contracts.capabilities import Capability, HasOrthantStep, HasPreconditioner, Product
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_count, check_flag
from .lbfgs import Pair, add_pair, identity, two_loop

#: Part of the decrease that the slope promises which a step must bring.
DECREASE = 1e-4
#: Step halvings before a direction is given up.
MAX_HALVINGS = 30
#: Relative rise of the objective that counts as rounding.
ROUNDING = 4e-16
#: Steps after which the preconditioner is made anew.
REFRESH = 20


class OrthantPoint(HasOrthantStep, HasPreconditioner, Protocol):
    """What a point is asked for; the preconditioner only where it is offered."""


@dataclass
class OrthantState:
    """The steps remembered, and the preconditioner if there is one."""

    pairs: deque[Pair]
    scaled: bool
    precondition: Product = identity
    steps: int = 0


@dataclass(frozen=True)
class OWLQN(Solver[OrthantState, Objective, OrthantPoint]):
    """Orthant-wise limited-memory quasi-Newton, on the parameters that are not zero or ought not to be.

    Parameters
    ----------
    memory : int
        Number of steps remembered.
    precondition : bool
        Begin from the objective's approximate inverse Hessian, if it offers one; False is the method of Andrew and Gao.
    """

    key = "owlqn"
    memory: int = 20
    precondition: bool = True

    def __post_init__(self) -> None:
        check_count("memory", self.memory, minimum=1)
        check_flag("precondition", self.precondition)

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.ORTHANT})

    def start(self, objective: Objective, point: Point) -> OrthantState:
        scaled = self.precondition and Capability.PRECONDITIONER in objective.capabilities
        return OrthantState(deque(maxlen=self.memory), scaled)

    def advance(self, state: OrthantState, point: OrthantPoint) -> Point | None:
        if state.scaled and state.steps % REFRESH == 0:
            state.precondition = point.preconditioner()
        state.steps += 1
        return _step(state.pairs, point, state.precondition)


def _free(point: Point) -> Any:
    """Which parameters are not zero or ought not to be."""
    return (point.parameters != 0.0) | (point.gradient != 0.0)


def _step(pairs: deque[Pair], point: OrthantPoint, precondition: Product) -> Point | None:
    """A step by the curvature that the pairs show among the free parameters; down the gradient if that fails."""
    free, following = np.flatnonzero(_free(point)), None
    gradient = point.gradient[free]

    def spread(v: FloatArray) -> FloatArray:
        full = np.zeros_like(point.gradient)
        full[free] = v
        return full

    def scale(v: FloatArray) -> FloatArray:
        return precondition(spread(v))[free]

    inside: list[Pair] = []
    for s, y, _ in pairs:
        add_pair(inside, s[free], y[free])
    if inside:
        following = _search(point, spread(-two_loop(inside, gradient, scale)))
    if following is None:
        pairs.clear()
        direction = -scale(gradient)
        following = _search(point, spread(direction), 1.0 / max(1.0, float(np.linalg.norm(direction))))
    if following is not None:
        add_pair(pairs, following.parameters - point.parameters, following.smooth.gradient - point.smooth.gradient)
    return following


def _search(point: OrthantPoint, direction: FloatArray, step: float = 1.0) -> OrthantPoint | None:
    """The first of the halved steps that lowers the objective enough; None if there is none.

    Parameters that are zero move against their gradient only. Where differences of values are lost to rounding, the
    gradient decides.
    """
    gradient = point.gradient
    direction = np.where((point.parameters == 0.0) & (direction * gradient >= 0.0), 0.0, direction)
    if not float(gradient @ direction) < 0.0:
        return None
    noise = ROUNDING * abs(point.value)
    for _ in range(MAX_HALVINGS):
        trial = point.orthant_step(step * direction)
        slope = float(gradient @ (trial.parameters - point.parameters))
        if slope < 0.0 and trial.value <= point.value + DECREASE * slope:
            return trial
        if slope > -noise and trial.value <= point.value + noise:
            return trial if _worst(trial) < _worst(point) else None
        step *= 0.5
    return None


def _worst(point: Point) -> float:
    return float(np.abs(point.gradient).max(initial=0.0))
