"""What objectives with a quadratic penalty share: its part of values and gradients, the gap, the plainest ray."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np

from ..core.contracts.capabilities import Product
from ..core.contracts.objective import Objective, ObjectiveBase
from ..core.contracts.point import Point, Ray
from ..core.results import FloatArray, IntArray

InnerT = TypeVar("InnerT", bound=Objective)
P = TypeVar("P", bound="PenalizedPoint")


def check_penalty(penalty: float | FloatArray, size: int) -> FloatArray:
    """The l2 of each parameter, finite and non-negative."""
    values = np.asarray(penalty, dtype=np.float64)
    if values.shape != (size,):
        values = np.broadcast_to(values, (size,))
    if not np.isfinite(values).all() or values.min(initial=0.0) < 0.0:
        raise ValueError("penalty must be finite and non-negative")
    return values


def quadratic_gap(gradient: FloatArray, penalty: FloatArray | float) -> float:
    """``sum_j g_j^2 / (2 penalty_j)``, at least ``F - minimum`` for a convex loss with a penalty above zero everywhere.

    F lies above its tangent plus half the penalty of the step, whose minimum that is. For a likelihood it is the duality gap
    at the dual point that the marginals are.
    """
    if isinstance(penalty, float):
        return 0.5 * float(gradient @ gradient) / penalty
    return float(0.5 * np.sum(gradient**2 / penalty))


def diagonal_scaling(diagonal: FloatArray, least: FloatArray | float, power: float) -> Product:
    """v -> v over a power of a diagonal, of which what is below `least` counts as that."""
    scaling = np.maximum(diagonal, least) ** -power
    return lambda v: scaling * v


class PenalizedObjective(ObjectiveBase):
    """``F(theta) = loss(theta) + 1/2 sum_j penalty_j theta_j^2``, with a Hessian that is known by its products if at all.

    Attributes
    ----------
    penalty : array of shape (size,)
        The l2 of each parameter.
    center : array of shape (size,), optional
        Where the penalty is zero. Default: at zero.
    convex : bool
        Whether the loss is.
    """

    penalty: FloatArray
    center: FloatArray | None = None
    convex: bool = True

    @cached_property
    def has_gap(self) -> bool:
        """Whether points have a `gap`: where the loss is convex and every parameter has a penalty."""
        return self.convex and bool(self.penalty.min(initial=np.inf) > 0.0)

    def penalty_value(self, theta: FloatArray) -> float:
        """What the penalty adds to the value."""
        # no BLAS: it would split long vectors over threads, which spin on afterwards
        away = theta if self.center is None else theta - self.center
        return 0.5 * float((self.penalty * away * away).sum())

    def penalty_gradient(self, theta: FloatArray) -> FloatArray:
        """What the penalty adds to the gradient."""
        return self.penalty * (theta if self.center is None else theta - self.center)

    @property
    def slope(self) -> FloatArray | None:
        """The linear term beside a penalty around zero; None if there is none."""
        return None if self.center is None else -self.penalty * self.center

    def free_constants(self) -> IntArray:
        """Parameters without a penalty that a common constant may be added to, changing nothing; none in general."""
        return np.zeros(0, np.int64)

    @property
    def dense_cost(self) -> float:
        """Forming the Hessian takes as many products as there are parameters."""
        return float(self.size)

    @property
    def blas_threads(self) -> int | None:
        """Matrices are narrow, if there are any: one thread."""
        return 1

    @abstractmethod
    def at(self, parameters: FloatArray) -> PenalizedPoint: ...


class PenalizedPoint(ABC):
    """A penalised objective at one parameter vector: what does not depend on the loss."""

    objective: PenalizedObjective
    parameters: FloatArray
    value: float

    @property
    @abstractmethod
    def gradient(self) -> FloatArray: ...

    @property
    def gap(self) -> float:
        """See `quadratic_gap`; inf where it is none."""
        o = self.objective
        return quadratic_gap(self.gradient, o.penalty) + self.slack if o.has_gap else np.inf

    @property
    def slack(self) -> float:
        """What the value may lack because sums were not carried to their end; `gap` has it included."""
        return 0.0

    def along(self, direction: FloatArray) -> Ray:
        """The half-line in a direction."""
        return PlainRay(self, direction)

    def divergence(self, c: float) -> float:
        """``sum_i w_i KL(q_i || p_i)`` for ``q_i = e_{y_i} + c (p_i - e_{y_i})``, or inf if that is not known (see `l1`)."""
        return 0.0 if c == 1.0 else np.inf


class PlainRay(Generic[P]):
    """A penalised objective on a half-line. A step costs as much as a new point."""

    direction: FloatArray

    def __init__(self, origin: P, direction: FloatArray) -> None:
        self.origin, self.direction = origin, direction

    def at(self, step: float) -> tuple[P, float]:
        """The point at `step`, and the slope there."""
        point: Any = self.origin.objective.at(self.origin.parameters + step * self.direction)
        return point, self.slope(point)

    def slope(self, point: Point) -> float:
        """The derivative along the direction; no BLAS, as for the value."""
        return float((point.gradient * self.direction).sum())


class DotRay(PlainRay[P]):
    """The same for few parameters, where BLAS has nothing to split."""

    def slope(self, point: Point) -> float:
        return float(point.gradient @ self.direction)


class OnLikelihood(ObjectiveBase, Generic[InnerT]):
    """What objectives that add something to a likelihood take from it."""

    size: int
    scale: float
    n_examples: int

    def __init__(self, likelihood: InnerT) -> None:
        self.likelihood = likelihood
        self.size, self.scale, self.n_examples = likelihood.size, likelihood.scale, likelihood.n_examples

    @property
    def dense_cost(self) -> float:
        return self.likelihood.dense_cost

    @property
    def strong_cost(self) -> float:
        return self.likelihood.strong_cost
