"""Proximal Newton steps on a working set of coordinates, for objectives with an l1 penalty."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..core.contracts.capabilities import Capability, HasWorkingSet
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import IntArray
from ..core.validation import check_count, check_real

#: How much further a round goes whose working set holds every violation.
THOROUGH = 1.0 / 30.0
#: Relative rise of the objective that counts as rounding.
ROUNDING = 4e-16


@dataclass
class WorkingState:
    """Whether the next round is the first."""

    first: bool = True


@dataclass(frozen=True)
class ProximalNewton(Solver[WorkingState, Objective, HasWorkingSet]):
    """Proximal Newton steps on a working set, which grows by the coordinates that violate optimality most.

    Parameters
    ----------
    working_set : int
        Coordinates in the first working set, at least. Later ones hold the support and up to as many more.
    reduction : float
        Each round works until the violations within its working set are at most this share of the largest one, or a
        thirtieth of that if the set holds all that violate: it may then be the last round.
    """

    key = "proximal"
    working_set: int = 50
    reduction: float = 0.3

    def __post_init__(self) -> None:
        check_count("working_set", self.working_set, minimum=1)
        if not 0.0 < check_real("reduction", self.reduction) < 1.0:
            raise ValueError(f"reduction must be in (0, 1), got {self.reduction!r}")

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.WORKING_SET})

    def start(self, objective: Objective, point: Point) -> WorkingState:
        return WorkingState()

    def advance(self, state: WorkingState, point: HasWorkingSet) -> Point | None:
        origin = point
        if state.first:  # free coordinates first: before, the other violations mean little
            state.first = False
            point = point.descend(np.empty(0, np.int64), 0.0)
        worst = float(np.abs(point.gradient).max(initial=0.0))
        following = point
        if worst > 0.0:
            coordinates, complete = self._coordinates(point)
            following = point.descend(coordinates, self.reduction * worst * (THOROUGH if complete else 1.0))
        if following.value < origin.value:
            return following
        tie = following.value <= origin.value + ROUNDING * abs(origin.value)
        return following if tie and _worst(following) < _worst(origin) else None

    def _coordinates(self, point: Point) -> tuple[IntArray, bool]:
        """The support and the worst violators, in increasing order, and whether those are all."""
        support = point.parameters != 0.0
        violation = np.where(support, 0.0, np.abs(point.gradient))
        inside = int(np.count_nonzero(support))
        room = max(self.working_set - inside, inside)
        complete = int(np.count_nonzero(violation)) <= room
        if not complete:
            bar = np.partition(violation, -room)[-room]
            violation[violation < bar] = 0.0
        return np.flatnonzero(support | (violation > 0.0)), complete


def _worst(point: Point) -> float:
    return float(np.abs(point.gradient).max(initial=0.0))
