"""An objective on a point plus the span of a few directions, by points and their gradients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.contracts.capabilities import Capability
from ...core.results import FloatArray

#: Step along a direction over which its curvature is measured where there are no Hessian products.
SECANT = 0.25


class Plane:
    """`origin` plus the span of a few directions; curvature by Hessian products, or by differences of gradients.

    Parameters
    ----------
    origin : point
        Its objective makes the others.
    basis : sequence of arrays
    """

    def __init__(self, origin: Any, basis: Sequence[FloatArray]) -> None:
        self.origin = origin
        self.basis: FloatArray = np.array(basis)
        self._exact = Capability.HESSIAN_PRODUCT in origin.objective.capabilities
        self._last: tuple[FloatArray, Any] | None = None

    @property
    def dimension(self) -> int:
        return len(self.basis)

    def evaluate(self, coordinates: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and curvature in the coordinates."""
        point = self.at(coordinates)
        gradient = self.basis @ point.gradient
        if self._exact:
            product = point.hessian_product()
            rows = np.array([self.basis @ product(v) for v in self.basis])
        else:
            rows = np.array([self._difference(point, v) - gradient for v in self.basis]) / SECANT
        return point.value, gradient, np.asarray(0.5 * (rows + rows.T))

    def _difference(self, point: Any, direction: FloatArray) -> FloatArray:
        there = self.origin.objective.at(point.parameters + SECANT * direction)
        return np.asarray(self.basis @ there.gradient)

    def at(self, coordinates: FloatArray) -> Any:
        """The point there; that of the last call is kept."""
        if self._last is not None and np.array_equal(self._last[0], coordinates):
            return self._last[1]
        step = coordinates @ self.basis
        point = self.origin.objective.at(self.origin.parameters + step)
        point.came_by = step
        self._last = np.array(coordinates), point
        return point
