"""A few epochs of stochastic gradient descent, then another solver."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np

from ...core.contracts.batches import HasSweeps
from ...core.contracts.capabilities import Capability
from ...core.contracts.point import Point
from ...core.contracts.solver import AnySolver, Solver
from ...core.validation import check_count
from ..lbfgs import LBFGS


@dataclass
class StartState:
    """The objective, and the state of the solver that goes on, once it has begun."""

    objective: HasSweeps
    inner: Any = None


@dataclass(frozen=True)
class StochasticStart(Solver[StartState, HasSweeps, Point]):
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

    key = "stochastic_start"
    finish: AnySolver = field(default_factory=LBFGS)
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

    def with_seed(self, seed: Any) -> Self:
        return replace(self, random_state=seed)

    def start(self, objective: HasSweeps, point: Point) -> StartState:
        return StartState(objective)

    def advance(self, state: StartState, point: Point) -> Point | None:
        if state.inner is None:
            started = self._sweep(state.objective, point)
            lower = started if started.value < point.value else point
            state.inner = self.finish.start(state.objective, lower)
            if lower is started:
                return started
        return self.finish.advance(state.inner, point)

    def _sweep(self, objective: HasSweeps, point: Point) -> Point:
        sweeps = objective.sweeps(point.parameters, self.random_state)
        total, count = np.zeros(objective.size), 0
        for epoch in range(self.epochs):
            sweeps.advance()
            if 2 * epoch >= self.epochs - 1:
                total, count = total + sweeps.parameters(), count + 1
        return objective.at(total / count)
