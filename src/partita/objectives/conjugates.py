"""What duals know of the penalty: its conjugate ``phi(d) = max_theta d'theta - R(theta)`` and where that is reached."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np

from ..core.errors import NumericalError
from ..core.results import FloatArray
from .constraints.feasible_set import FeasibleSet
from .constraints.programs import solve_within
from .constraints.substitution import Substitution


class QuadraticConjugate:
    """Of ``R(theta) = 1/2 sum_j penalty_j theta_j^2``.

    Parameters
    ----------
    penalty : float or array
        Above zero.
    """

    def __init__(self, penalty: float | FloatArray) -> None:
        self.penalty = penalty

    def parameters(self, d: FloatArray) -> FloatArray:
        """Where the maximum is."""
        return d / self.penalty

    def value(self, d: FloatArray) -> float:
        """phi."""
        return 0.5 * float(d @ (d / self.penalty))

    def along(self, theta: FloatArray, image: FloatArray) -> Callable[[float], float]:
        """``image' theta(d - step image)`` from the parameters at d: the slope of ``-phi`` at steps, or one that is below.

        Where parameters are held back by more than the quadratic penalty they move less (a projection does not expand), so
        that what a step gains is at least what this slope promises.
        """
        rise, bend = float(theta @ image), float(image @ (image / self.penalty))
        return lambda step: rise - step * bend


class RestrictedConjugate(QuadraticConjugate):
    """Of that and ``sum_j l1_j |theta_j|`` within a convex set: smooth in d too, but parameters are not linear in it.

    Steps are found by the quadratic above phi that has the curvature of the penalty.

    Over bounds and ties a maximum is a soft threshold that is cut off at the bounds; over rows and cones it is a quadratic
    program.

    Parameters
    ----------
    penalty : float or array
        Above zero.
    size : int
        Number of parameters.
    l1 : array of shape (size,), optional
    feasible : FeasibleSet, optional
    """

    def __init__(
        self,
        penalty: float | FloatArray,
        size: int,
        l1: FloatArray | None = None,
        feasible: FeasibleSet | None = None,
    ) -> None:
        super().__init__(np.broadcast_to(np.asarray(penalty, dtype=np.float64), (size,)))
        self.l1 = np.zeros(size) if l1 is None else l1
        self.feasible = FeasibleSet.everything(size) if feasible is None else feasible
        self.groups = Substitution(self.feasible, None)
        # programs take an l1 penalty by two parts of each weight
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._parts = self.groups if l1 is None or self.feasible.is_box else Substitution(self.feasible, l1)

    def parameters(self, d: FloatArray) -> FloatArray:
        if self._last is None or self._last[0] is not d:
            self._last = d, self._threshold(d) if self.feasible.is_box else self._program(d)
        return self._last[1]

    def _threshold(self, d: FloatArray) -> FloatArray:
        strength, penalty, lower, upper = self._by_group
        pull = self._sum(d)
        z = np.sign(pull) * np.maximum(np.abs(pull) - strength, 0.0) / penalty
        return self.groups.join(np.minimum(np.maximum(z, lower), upper))

    def _sum(self, values: FloatArray) -> FloatArray:
        """Sums over tied groups."""
        numbers = self.feasible.numbers
        return values if numbers is None else np.bincount(numbers, values).astype(np.float64)

    @cached_property
    def _by_group(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """l1, penalty, lower and upper bound of each group."""
        within = self.groups.feasible
        return self._sum(self.l1), self._sum(np.asarray(self.penalty)), within.lower, within.upper

    def _program(self, d: FloatArray) -> FloatArray:
        own, C = self._parts, self._matrix
        z = np.zeros(own.size)
        for _ in range(
            1 if own is self.groups else 2
        ):  # C of parts is singular, which solvers mend by a little: again from there
            found = solve_within(own, C, C @ z + own.pull(-d), z)
            if found is None:
                raise NumericalError("the parameters of a dual were not found: the constraints are badly scaled")
            z = found.z
        return self.feasible.snap(own.join(z))

    @cached_property
    def _matrix(self) -> FloatArray:
        return self._parts.matrix(np.diag(self.penalty))

    def value(self, d: FloatArray) -> float:
        theta = self.parameters(d)
        return float(d @ theta - 0.5 * (self.penalty * theta) @ theta - self.l1 @ np.abs(theta))
