"""Expectation-maximisation (an E-step and an M-step in each iteration), plain or accelerated by SQUAREM."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..core.contracts.capabilities import Capability, HasEMStep
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_choice

#: How much the longest step may grow after one that was accepted, and the longest of all.
GROWTH, LONGEST = 4.0, 1024.0


class EMObjective(Objective, Protocol):
    """An objective whose points offer steps of EM."""

    def at(self, parameters: FloatArray) -> HasEMStep: ...


@dataclass
class EMState:
    """The objective, and the longest step along a trend that is tried."""

    objective: EMObjective
    longest: float = 1.0


@dataclass(frozen=True)
class EM(Solver[EMState, EMObjective, HasEMStep]):
    """Steps of EM. With ``"squarem"`` every two are followed by a step along their common trend.

    That step (Varadhan and Roland, 2008) is kept if it is at least as good as the first of the two, else the second is, so
    that the objective never rises.

    Parameters
    ----------
    acceleration : {"squarem", None}
    """

    key = "em"
    acceleration: str | None = "squarem"

    def __post_init__(self) -> None:
        if self.acceleration is not None:
            check_choice("acceleration", self.acceleration, ("squarem",))

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.EM_STEP})

    def start(self, objective: EMObjective, point: HasEMStep) -> EMState:
        return EMState(objective)

    def advance(self, state: EMState, point: HasEMStep) -> Point | None:
        objective = state.objective
        first = objective.at(point.em_step())
        if self.acceleration is None:
            return _if_lower(point, first)
        second = first.em_step()
        change = first.parameters - point.parameters
        bend = second - first.parameters - change
        size = float(np.linalg.norm(bend))
        if size == 0.0:
            return _if_lower(point, first)
        length = min(state.longest, max(1.0, float(np.linalg.norm(change)) / size))
        if length > 1.0:
            far = objective.at(point.parameters + 2.0 * length * change + length**2 * bend)
            if far.value <= min(first.value, point.value):
                if length == state.longest:
                    state.longest = min(LONGEST, GROWTH * length)
                return far
            state.longest = max(1.0, state.longest / GROWTH)
        elif state.longest == 1.0:
            state.longest = GROWTH
        following = objective.at(second)
        return _if_lower(point, following if following.value <= first.value else first)


def _if_lower(point: Point, following: Point) -> Point | None:
    """`following`, unless the objective does not fall any more."""
    return following if following.value < point.value else None
