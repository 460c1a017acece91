"""Expectation-maximisation, plain or accelerated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.protocols import Capability, Objective, Point
from ..core.validation import check_choice

#: How much the longest step may grow after one that was accepted, and the longest of all.
GROWTH, LONGEST = 4.0, 1024.0


@dataclass(frozen=True)
class EM:
    """Steps of EM. With ``"squarem"`` every two are followed by a step along their common trend.

    That step (Varadhan and Roland, 2008) is kept if it is at least as good as the first of the two, else the second is, so
    that the objective never rises.

    Parameters
    ----------
    acceleration : {"squarem", None}
    """

    acceleration: str | None = "squarem"

    def __post_init__(self) -> None:
        if self.acceleration is not None:
            check_choice("acceleration", self.acceleration, ("squarem",))

    @property
    def name(self) -> str:
        return "em"

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.EM_STEP})

    def start(self, objective: Objective, point: Point) -> dict[str, Any]:
        return {"objective": objective, "longest": 1.0}

    def advance(self, state: dict[str, Any], point: Point) -> Point | None:
        objective: Objective = state["objective"]
        first = objective.at(point.em_step())
        if self.acceleration is None:
            return _if_lower(point, first)
        second = first.em_step()
        change = first.parameters - point.parameters
        bend = second - first.parameters - change
        size = float(np.linalg.norm(bend))
        if size == 0.0:
            return _if_lower(point, first)
        length = min(state["longest"], max(1.0, float(np.linalg.norm(change)) / size))
        if length > 1.0:
            far = objective.at(point.parameters + 2.0 * length * change + length**2 * bend)
            if far.value <= min(first.value, point.value):
                if length == state["longest"]:
                    state["longest"] = min(LONGEST, GROWTH * length)
                return far
            state["longest"] = max(1.0, state["longest"] / GROWTH)
        elif state["longest"] == 1.0:
            state["longest"] = GROWTH
        following = objective.at(second)
        return _if_lower(point, following if following.value <= first.value else first)


def _if_lower(point: Point, following: Point) -> Point | None:
    """`following`, unless the objective does not fall any more."""
    return following if following.value < point.value else None
