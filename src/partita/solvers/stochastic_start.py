"""A few epochs of stochastic gradient descent, then another solver."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..core.protocols import Capability, Objective, Point, Solver
from ..core.validation import check_count
from .lbfgs import LBFGS


@dataclass(frozen=True)
class StochasticStart:
    """Epochs of steps on single examples as the first iteration, the mean of the later half of them, then `finish`.

    Parameters
    ----------
    finish : Solver
        What goes on from there.
    epochs : int
        Number of epochs.
    random_state : int or None
        Seed of the order of the examples.
    """

    finish: Solver = field(default_factory=LBFGS)
    epochs: int = 5
    random_state: int | None = 0

    def __post_init__(self) -> None:
        check_count("epochs", self.epochs, minimum=1)

    @property
    def name(self) -> str:
        return f"stochastic start, {self.finish.name}"

    @property
    def requires(self) -> frozenset[Capability]:
        return self.finish.requires | {Capability.SWEEPS}

    def start(self, objective: Objective, point: Point) -> dict[str, Any]:
        return {"objective": objective, "inner": None}

    def advance(self, state: dict[str, Any], point: Point) -> Point | None:
        if state["inner"] is None:
            started = self._sweep(state["objective"], point)
            lower = started if started.value < point.value else point
            state["inner"] = self.finish.start(state["objective"], lower)
            if lower is started:
                return started
        following: Point | None = self.finish.advance(state["inner"], point)
        return following

    def _sweep(self, objective: Objective, point: Point) -> Point:
        sweeps = objective.sweeps(point.parameters, self.random_state)
        total, count = np.zeros(objective.size), 0
        for epoch in range(self.epochs):
            sweeps.advance()
            if 2 * epoch >= self.epochs - 1:
                total, count = total + sweeps.parameters(), count + 1
        return objective.at(total / count)
