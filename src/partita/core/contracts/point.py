"""An objective seen from one place: what every solver may ask."""

from __future__ import annotations

from typing import Protocol

from ..results import FloatArray


class Point(Protocol):
    """An objective at one parameter vector. What can be computed there is computed when first asked for, and kept.

    These five members are all that every objective has; the rest are capabilities.
    """

    @property
    def parameters(self) -> FloatArray:
        """Where it is."""
        ...

    @property
    def value(self) -> float:
        """The objective."""
        ...

    @property
    def gradient(self) -> FloatArray:
        """Its gradient; where there are jumps, the shortest subgradient; over a set, the KKT residual.

        Zero at the minimum, and of convex objectives only there.
        """
        ...

    @property
    def gap(self) -> float:
        """A certified bound on how far the value is above the minimum; inf if there is none."""
        ...

    def along(self, direction: FloatArray) -> Ray:
        """The half-line from here."""
        ...


class Ray(Protocol):
    """The objective along a half-line from a point."""

    @property
    def direction(self) -> FloatArray: ...

    def at(self, step: float) -> tuple[Point, float]:
        """The point at `step`, and the slope there."""
        ...
