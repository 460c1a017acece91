"""What an objective may offer beyond a value and a gradient, and the type of a point that does.

An objective declares its capabilities, a solver those that it requires; the loop compares the two before any work. From then
on a solver calls what it required without asking, and its points have the type of that protocol. What is offered by the
objective itself, not by its points, is in `batches`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from enum import Enum
from typing import Protocol, Self

from ..results import FloatArray, IntArray
from .point import Point, Ray

#: A linear map from parameters to parameters, as a function.
Product = Callable[[FloatArray], FloatArray]


class Capability(Enum):
    """What an objective can offer. The text completes "the objective must offer ..."."""

    SMOOTH = "a gradient without jumps (an l1 penalty has jumps)"
    WORKING_SET = "descent on some of its coordinates (point.descend)"
    ORTHANT = "steps that end where a parameter would change its sign (point.orthant_step)"
    HESSIAN_PRODUCT = "products with its Hessian (point.hessian_product)"
    PRECONDITIONER = "an approximate inverse Hessian (point.preconditioner)"
    MODEL = "a convex quadratic with its curvature, known by products (point.model('hessian'))"
    HESSIAN = "its Hessian as a matrix (point.model('hessian'))"
    QUADRATIC_BOUND = "a quadratic upper bound (point.model(bound))"
    LINE_BOUND = "a quadratic upper bound along a line (ray.bound)"
    LOW_RANK_BOUND = "a low-rank quadratic upper bound (point.low_rank_model)"
    BATCHES = "its examples as mini-batches (objective.batches)"
    SWEEPS = "epochs of steps on single examples (objective.sweeps)"
    BLOCKS = "a dual with a block for each example and a solver for the best configuration (objective.blocks)"
    NEWTON_TRIAL = "a Newton direction and a point along it in one call (point.newton_trial)"
    SUBSPACE = "its value and derivatives within a small subspace (point.subspace)"
    EM_STEP = "hidden variables, of which EM takes expectations; here all is known (point.em_step)"
    CONSTRAINED_STEP = "the minimiser of a quadratic model within its constraints (point.constrained_step)"

    # Members are singletons, and sets of them are compared in every fit: by address, not by name in Python.
    __hash__ = object.__hash__


#: Names of the quadratic upper bounds that `point.model` may offer (`partita.softmax.bounds.potential` describes them).
BOUNDS = ("bohning", "symmetric", "symmetric_proved", "descending", "given", "ascending")

#: Ways to a low-rank bound (`partita.objectives.bounds.low_rank` describes them); the last is no bound.
LOW_RANK = ("lanczos", "exact", "corrected", "original")


class HasHessianProduct(Point, Protocol):
    """`Capability.HESSIAN_PRODUCT`."""

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v; with ``precise=False`` rounding to single precision is allowed."""
        ...


class HasPreconditioner(Point, Protocol):
    """`Capability.PRECONDITIONER`."""

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> approximately H^-1 v; `strong` is closer and costs `objective.strong_cost` products to build."""
        ...


class QuadraticModel(Protocol):
    """A quadratic ``value + g'(x - center) + (x - center)' C (x - center) / 2`` that touches the objective at `center`."""

    @property
    def is_bound(self) -> bool: ...

    def value(self, parameters: FloatArray) -> float: ...
    def matvec(self, vector: FloatArray) -> FloatArray: ...
    def solve(self, vector: FloatArray) -> FloatArray: ...
    def trace(self) -> float: ...
    def matrix(self) -> FloatArray: ...


class CentredModel(QuadraticModel, Protocol):
    """A quadratic with its center, the gradient there, and what products with it are preconditioned by, if they are."""

    @property
    def center(self) -> FloatArray: ...
    @property
    def gradient0(self) -> FloatArray: ...
    @property
    def precondition(self) -> Product | None: ...


class HasModel(Point, Protocol):
    """`Capability.MODEL` and `HESSIAN`, by the name ``"hessian"``; `QUADRATIC_BOUND`, by those of `BOUNDS`."""

    def model(self, kind: str) -> QuadraticModel:
        """The quadratic of `kind` that touches the objective here."""
        ...


class LowRankModel(QuadraticModel, Protocol):
    """A quadratic whose curvature is a matrix of low rank and a diagonal."""

    @property
    def V(self) -> FloatArray:
        """The directions of the former, as rows."""
        ...

    def inflated(self) -> Self:
        """The same with twice the diagonal, for when an estimated eigenvalue was too small."""
        ...


class HasLowRankModel(Point, Protocol):
    """`Capability.LOW_RANK_BOUND`."""

    def low_rank_model(
        self, kind: str, rank: int, method: str, allow_invalid: bool, start: LowRankModel | None
    ) -> LowRankModel:
        """A low-rank quadratic above the one of `kind`; `start` is one from a point nearby."""
        ...


class HasNewtonTrial(Point, Protocol):
    """`Capability.NEWTON_TRIAL`."""

    def newton_trial(self) -> tuple[Ray, Point, float, float] | None:
        """The ray along the Newton direction, a point on it, its step and slope; None if the Hessian is singular."""
        ...


class Subspace(Protocol):
    """The objective on ``point + span(directions)``."""

    @property
    def dimension(self) -> int: ...

    def evaluate(self, coordinates: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian in the coordinates."""
        ...

    def at(self, coordinates: FloatArray) -> Point: ...


class HasSubspace(Point, Protocol):
    """`Capability.SUBSPACE`."""

    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> Subspace:
        """The span of `directions`, and with `momentum` of the step that led here."""
        ...


class LineBound(Protocol):
    """A quadratic above the objective on a half-line, tighter the shorter the stretch."""

    def curvature(self, radius: float = math.inf) -> float: ...
    def step(self, relaxation: float = 1.0) -> float:
        """A step that lowers the objective, for a relaxation in (0, 2); at 1 the bound falls most."""
        ...


class BoundedRay(Ray, Protocol):
    """A ray that is bounded from above."""

    def bound(self, radius: float = math.inf) -> LineBound:
        """Valid for all steps, tightest for those up to `radius`."""
        ...


class HasLineBound(Point, Protocol):
    """`Capability.LINE_BOUND`."""

    def along(self, direction: FloatArray) -> BoundedRay: ...


class HasWorkingSet(Point, Protocol):
    """`Capability.WORKING_SET`."""

    def descend(self, coordinates: IntArray, tolerance: float) -> Self:
        """A lower point that differs in these coordinates only, where their gradient is at most `tolerance` if possible.

        Coordinates that carry no penalty are always among them.
        """
        ...


class HasOrthantStep(Point, Protocol):
    """`Capability.ORTHANT`."""

    @property
    def smooth(self) -> Point:
        """The part of the objective without jumps; it alone has curvature."""
        ...

    def orthant_step(self, step: FloatArray) -> Self:
        """The point after a step in which parameters with jumps at zero stop there.

        Between the two points the objective is smooth, and `gradient` is its gradient at the first.
        """
        ...


class HasEMStep(Point, Protocol):
    """`Capability.EM_STEP`."""

    def em_step(self) -> FloatArray:
        """Parameters that fit best what is expected, here, of what is unknown."""
        ...


class FeasibleSubspace(Subspace, Protocol):
    """A subspace through a feasible point, of which only a part is feasible."""

    def reach(self, coordinates: FloatArray, move: FloatArray) -> float:
        """The largest t for which ``coordinates + t move`` is known to be feasible."""
        ...


class FeasiblePoint(Point, Protocol):
    """A point of a convex set."""

    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> FeasibleSubspace: ...


class ConstrainedRay(Ray, Protocol):
    """The way from a feasible point to the feasible minimiser of a quadratic model, at step 1.

    Points on the way carry the multipliers found with the minimiser.
    """

    @property
    def slope(self) -> float:
        """The derivative at step 0."""
        ...

    @property
    def reach(self) -> float:
        """The largest step known to be feasible, at least 1."""
        ...

    def stay(self) -> FeasiblePoint:
        """The origin with the new multipliers."""
        ...


class HasConstrainedStep(Point, Protocol):
    """`Capability.CONSTRAINED_STEP`."""

    @property
    def unrestricted(self) -> Point:
        """The part of the objective without constraints and jumps: quadratic models are of this part."""
        ...

    def step_within(self, model: CentredModel) -> ConstrainedRay | None:
        """Towards the feasible minimiser of a quadratic that touches that part here; None if none was found."""
        ...

    def constrained_step(self, kind: str) -> ConstrainedRay | None:
        """Towards the feasible minimiser of the model of `kind`; None if that could not be found."""
        ...
