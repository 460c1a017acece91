"""What is told while a solver runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

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
