"""The seams: what a solver may ask of an objective, and what the loop asks of a solver.

Solvers minimise. A *point* is an objective seen from one parameter vector; everything that can be computed there is
computed when first asked for and kept.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from .results import FloatArray, IntArray


class Capability(Enum):
    """What an objective can offer beyond a value and a gradient. The text completes "the objective must offer ..."."""

    SMOOTH = "a gradient without jumps (an l1 penalty has jumps)"
    WORKING_SET = "descent on some of its coordinates (point.descend)"
    HESSIAN_PRODUCT = "products with its Hessian (point.hessian_product)"
    PRECONDITIONER = "an approximate inverse Hessian (point.preconditioner)"
    HESSIAN = "its Hessian as a matrix (point.model('hessian'))"
    QUADRATIC_BOUND = "a quadratic upper bound (point.model(bound))"
    NEWTON_TRIAL = "a Newton direction and a point along it in one call (point.newton_trial)"
    SUBSPACE = "its value and derivatives within a small subspace (point.subspace)"


#: Names of the quadratic upper bounds that `point.model` may offer (`partita.bounds.potential` describes them).
BOUNDS = ("bohning", "symmetric", "symmetric_proved", "descending", "given", "ascending")


class QuadraticModel(Protocol):
    """A quadratic ``value + g'(x - center) + (x - center)' C (x - center) / 2`` that touches the objective at `center`."""

    is_bound: bool

    def value(self, parameters: FloatArray) -> float: ...
    def matvec(self, vector: FloatArray) -> FloatArray: ...
    def solve(self, vector: FloatArray) -> FloatArray: ...
    def trace(self) -> float: ...
    def matrix(self) -> FloatArray: ...


class Ray(Protocol):
    """The objective along a half-line from a point."""

    @property
    def direction(self) -> FloatArray: ...

    def at(self, step: float) -> tuple[Point, float]:
        """Return the point at `step` and the slope there."""
        ...


class Subspace(Protocol):
    """The objective on ``point + span(directions)``."""

    @property
    def dimension(self) -> int: ...

    def evaluate(self, coordinates: FloatArray) -> tuple[float, FloatArray, FloatArray]: ...
    def at(self, coordinates: FloatArray) -> Point: ...


class Point(Protocol):
    """An objective at one parameter vector. Only the first five members are needed of every objective."""

    @property
    def parameters(self) -> FloatArray: ...
    @property
    def value(self) -> float: ...
    @property
    def gradient(self) -> FloatArray: ...
    @property
    def gap(self) -> float: ...
    def along(self, direction: FloatArray) -> Ray: ...

    def hessian_product(self, precise: bool = True) -> Callable[[FloatArray], FloatArray]: ...
    def newton_trial(self) -> tuple[Ray, Point, float, float] | None:
        """Ray along the Newton direction, a point on it, its step and slope; None if the Hessian is singular."""
        ...

    def preconditioner(self, strong: bool = False) -> Callable[[FloatArray], FloatArray]: ...
    def model(self, kind: str) -> QuadraticModel: ...
    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> Subspace: ...
    def descend(self, coordinates: IntArray, tolerance: float) -> Point:
        """A lower point that differs in these coordinates only, where their gradient is at most `tolerance` if possible.

        Coordinates that carry no penalty are always among them.
        """
        ...


class Objective(Protocol):
    """A function to minimise.

    Where it is not smooth, `point.gradient` is the shortest subgradient: zero at the minimum and only there.
    `scale` is what gradients are divided by before they are compared with a tolerance (the total weight of the data).
    `dense_cost` is the cost of forming and factoring the Hessian, `strong_cost` that of a strong preconditioner, both in
    units of one Hessian product. `blas_threads` is the most threads that dense linear algebra should take meanwhile, None
    for no limit.
    """

    size: int
    scale: float
    capabilities: frozenset[Capability]

    @property
    def dense_cost(self) -> float: ...
    @property
    def strong_cost(self) -> float: ...
    @property
    def blas_threads(self) -> int | None: ...
    def at(self, parameters: FloatArray) -> Point: ...


class Solver(Protocol):
    """An optimiser. Options are its constructor's; it is a value and keeps nothing between runs.

    `requires` is what it needs of the objective. `start` returns the method's private state; `advance` returns the next
    point, or None when no step lowers the objective.
    """

    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> frozenset[Capability]: ...
    def start(self, objective: Objective, point: Point) -> Any: ...
    def advance(self, state: Any, point: Point) -> Point | None: ...


@dataclass(frozen=True)
class Progress:
    """What a callback sees after each iteration."""

    solver: str
    iteration: int
    objective: float
    gradient_norm: float
    gap: float
    seconds: float
    parameters: FloatArray


Callback = Callable[[Progress], "bool | None"]
