"""Majorization-minimisation with a quadratic bound (Algorithm 2), plain and accelerated."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.protocols import BOUNDS, Capability, Objective, Point
from ..core.results import FloatArray
from ..core.validation import check_choice, check_real

ACCELERATIONS = ("subspace", "anderson", "squarem")
ANDERSON_MEMORY = 5
#: Relative rise of the objective that counts as rounding.
ROUNDING = 4e-16


@dataclass(frozen=True)
class Majorize:
    """Minimise a quadratic upper bound at every iteration: no tuning, and the objective never rises.

    Parameters
    ----------
    bound : str
        Which bound: ``"symmetric"`` (default), ``"symmetric_proved"``, ``"descending"``, ``"given"``, ``"ascending"``,
        ``"bohning"``.
    acceleration : {"subspace", "anderson", "squarem"} or None
        ``"subspace"`` minimises over the plane of the majorization step and the previous step; ``"anderson"`` mixes the
        last five steps; ``"squarem"`` extrapolates from two steps. Each falls back to the plain step whenever that is
        lower. None is the method of the paper.
    step : float
        Multiple of the majorization step, in (0, 2): every value there is monotone.
    """

    bound: str = "symmetric"
    acceleration: str | None = "subspace"
    step: float = 1.0

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, BOUNDS)
        if self.acceleration is not None:
            check_choice("acceleration", self.acceleration, ACCELERATIONS)
        if not 0.0 < check_real("step", self.step) < 2.0:
            raise ValueError(f"step must be in (0, 2), where majorization is monotone; got {self.step!r}")

    @property
    def name(self) -> str:
        return f"majorize ({self.bound}{', ' + self.acceleration if self.acceleration else ''})"

    @property
    def requires(self) -> frozenset[Capability]:
        needs = {Capability.SMOOTH, Capability.QUADRATIC_BOUND}
        return frozenset(needs | {Capability.SUBSPACE} if self.acceleration == "subspace" else needs)

    def start(self, objective: Objective, point: Point) -> dict[str, Any]:
        return {"history": deque(maxlen=ANDERSON_MEMORY + 1)}

    def advance(self, state: dict[str, Any], point: Point) -> Point | None:
        direction = self._direction(point)
        if self.acceleration == "subspace":
            following = _plane_step(point, direction)
        elif self.acceleration == "anderson":
            following = _anderson_step(state["history"], point, direction)
        elif self.acceleration == "squarem":
            following = self._squarem_step(point, direction)
        else:
            following = _move(point, direction)
        # A bound guarantees descent up to rounding; at that level only a smaller gradient still is progress.
        if following.value < point.value:
            return following
        tie = following.value <= point.value + ROUNDING * abs(point.value)
        return following if tie and _norm(following) < _norm(point) else None

    def _direction(self, point: Point) -> FloatArray:
        return -self.step * point.model(self.bound).solve(point.gradient)

    def _squarem_step(self, point: Point, direction: FloatArray) -> Point:
        """theta - 2 a r + a^2 v with a = -|r|/|v|, pulled back until it is no higher than two plain steps."""
        first = _move(point, direction)
        second = _move(first, self._direction(first))
        r = first.parameters - point.parameters
        v = second.parameters - first.parameters - r
        length = float(np.linalg.norm(v))
        if length == 0.0 or second.value > first.value:
            return first if second.value > first.value else second
        a = -float(np.linalg.norm(r)) / length
        for _ in range(20):
            if a >= -1.0:
                break
            trial = _move(point, -2.0 * a * r + a * a * v)
            if trial.value <= second.value:
                return trial
            a = 0.5 * (a - 1.0)
        return second


def _norm(point: Point) -> float:
    return float(np.linalg.norm(point.gradient))


def _move(point: Point, step: FloatArray) -> Point:
    return point.along(step).at(1.0)[0]


def _plane_step(point: Point, direction: FloatArray) -> Point:
    """Damped Newton in the coordinates of (majorization step, last step), from the majorization step itself."""
    plane = point.subspace([direction], momentum=True)
    c = np.zeros(plane.dimension)
    c[0] = 1.0
    value, gradient, hessian = plane.evaluate(c)
    first = float(np.abs(gradient).max())
    for _ in range(10):
        scale = np.sqrt(np.maximum(np.diag(hessian), 1e-300))
        scaled = hessian / np.outer(scale, scale) + 1e-12 * np.eye(len(c))
        move = -np.linalg.solve(scaled, gradient / scale) / scale
        damping = 1.0
        while damping > 1e-3:
            trial = plane.evaluate(c + damping * move)
            if trial[0] <= value:
                break
            damping *= 0.5
        else:
            break
        c = c + damping * move
        value, gradient, hessian = trial
        if float(np.abs(gradient).max()) <= 1e-3 * first:
            break
    return plane.at(c)


def _anderson_step(history: Any, point: Point, residual: FloatArray) -> Point:
    """Anderson mixing of the fixed-point map, kept only if it is lower than the plain step."""
    plain = _move(point, residual)
    history.append((point.parameters, residual))
    if len(history) < 2:
        return plain
    thetas = np.array([theta for theta, _ in history])
    residuals = np.array([r for _, r in history])
    dr = np.diff(residuals, axis=0)
    mix, *_ = np.linalg.lstsq(dr.T, residual, rcond=1e-10)
    step = residual - mix @ (np.diff(thetas, axis=0) + dr)
    mixed = _move(point, step)
    return mixed if mixed.value <= plain.value else plain
