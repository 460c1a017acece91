"""What is told while a solver runs, and the points of solvers that do not evaluate the objective."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..results import FloatArray
from .point import Ray


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration."""

    solver: str
    iteration: int
    objective: float
    gradient_norm: float
    gap: float
    seconds: float
    parameters: FloatArray


#: Called after each iteration; a true answer stops the solver.
Callback = Callable[[Progress], "bool | None"]


@dataclass(frozen=True)
class EstimatedPoint:
    """The point of a stochastic solver: parameters after an epoch, with the value and gradient that mini-batches suggest.

    `held_out` says that the value was measured on held-out examples; the best of those is kept, not the last.
    """

    parameters: FloatArray
    value: float
    gradient: FloatArray
    held_out: bool = False
    gap: float = math.inf

    def along(self, direction: FloatArray) -> Ray:
        raise NotImplementedError("an estimated point has no exact values along a line")


@dataclass(frozen=True)
class DualPoint:
    """The point of a solver in the dual, which never evaluates the objective: its value is what that is at most.

    ``value - gap`` is at most the minimum. `certified` says that both were measured here, by a call of the solver for each
    example, and not collected on the way; `n_calls` how often best configurations were asked for so far. The gradient is not
    known.
    """

    parameters: FloatArray
    value: float
    gap: float
    certified: bool
    n_calls: int

    @property
    def gradient(self) -> FloatArray:
        return np.full(len(self.parameters), np.inf)

    def along(self, direction: FloatArray) -> Ray:
        raise NotImplementedError("a point of the dual has no values of the objective along a line")
