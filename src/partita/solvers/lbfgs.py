"""Limited-memory BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.protocols import Capability, Objective, Point
from ..core.results import FloatArray
from ..core.validation import check_count
from .line_search import line_search


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        Number of steps remembered.
    """

    memory: int = 10

    def __post_init__(self) -> None:
        check_count("memory", self.memory, minimum=1)

    @property
    def name(self) -> str:
        return "lbfgs"

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.SMOOTH})

    def start(self, objective: Objective, point: Point) -> dict[str, Any]:
        return {"pairs": deque(maxlen=self.memory)}

    def advance(self, state: dict[str, Any], point: Point) -> Point | None:
        pairs = state["pairs"]
        direction = -two_loop(pairs, point.gradient)
        first = 1.0 if pairs else 1.0 / max(1.0, float(np.linalg.norm(point.gradient)))
        found = line_search(point, point.along(direction), first)
        if found is None and pairs:
            pairs.clear()
            first = 1.0 / max(1.0, float(np.linalg.norm(point.gradient)))
            found = line_search(point, point.along(-point.gradient), first)
        if found is None:
            return None
        following = found[0]
        add_pair(pairs, following.parameters - point.parameters, following.gradient - point.gradient)
        return following


def add_pair(pairs: Any, s: FloatArray, y: FloatArray) -> None:
    """Remember a step and the change of the gradient along it, if they show curvature."""
    sy, yy = float(s @ y), float(y @ y)
    if sy > 1e-14 * float(np.linalg.norm(s)) * np.sqrt(yy) and sy * yy > 0.0:
        pairs.append((s, y, 1.0 / sy))


def two_loop(pairs: Any, gradient: FloatArray, precondition: Callable[[FloatArray], FloatArray] = lambda v: v) -> FloatArray:
    """The approximate inverse Hessian that the pairs (s, y, 1 / s'y) suggest, times the gradient.

    It begins as a multiple of `precondition`.
    """
    q = gradient.copy()
    coefficients = []
    for s, y, rho in reversed(pairs):
        a = rho * float(s @ q)
        q -= a * y
        coefficients.append(a)
    q = precondition(q)
    if pairs:
        _, y, rho = pairs[-1]
        q = q / (rho * float(y @ precondition(y)))
    for (s, y, rho), a in zip(pairs, reversed(coefficients), strict=True):
        q += (a - rho * float(y @ q)) * s
    return q
