"""The seams: what a solver may ask of an objective, and what the loop asks of a solver.

Solvers minimise. A *point* is an objective seen from one parameter vector; everything that can be computed there is
computed when first asked for and kept.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from .results import FloatArray, IntArray


class Capability(Enum):
    """What an objective can offer beyond a value and a gradient. The text completes "the objective must offer ..."."""

    SMOOTH = "a gradient without jumps (an l1 penalty has jumps)"
    WORKING_SET = "descent on some of its coordinates (point.descend)"
    ORTHANT = "steps that end where a parameter would change its sign (point.orthant_step)"
    HESSIAN_PRODUCT = "products with its Hessian (point.hessian_product)"
    PRECONDITIONER = "an approximate inverse Hessian (point.preconditioner)"
    HESSIAN = "its Hessian as a matrix (point.model('hessian'))"
    QUADRATIC_BOUND = "a quadratic upper bound (point.model(bound))"
    LINE_BOUND = "a quadratic upper bound along a line (ray.bound)"
    LOW_RANK_BOUND = "a low-rank quadratic upper bound (point.low_rank_model)"
    BATCHES = "its examples as mini-batches (objective.batches)"
    SWEEPS = "epochs of steps on single examples (objective.sweeps)"
    BLOCKS = "a dual with a block for each example and a solver for the best configuration (objective.blocks)"
    NEWTON_TRIAL = "a Newton direction and a point along it in one call (point.newton_trial)"
    SUBSPACE = "its value and derivatives within a small subspace (point.subspace)"
    EM_STEP = "the parameters after an iteration of EM (point.em_step)"
    CONSTRAINED_STEP = "the minimiser of a quadratic model within its constraints (point.constrained_step)"

    # Members are singletons, and sets of them are compared in every fit: by address, not by name in Python.
    __hash__ = object.__hash__


#: Names of the quadratic upper bounds that `point.model` may offer (`partita.softmax.bounds.potential` describes them).
BOUNDS = ("bohning", "symmetric", "symmetric_proved", "descending", "given", "ascending")

#: Ways to a low-rank bound (`partita.softmax.bounds.low_rank` describes them); the last is no bound.
LOW_RANK = ("lanczos", "exact", "corrected", "original")


class QuadraticModel(Protocol):
    """A quadratic ``value + g'(x - center) + (x - center)' C (x - center) / 2`` that touches the objective at `center`."""

    @property
    def is_bound(self) -> bool: ...

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


class LineBound(Protocol):
    """A quadratic above the objective on a half-line, tighter the shorter the stretch."""

    def curvature(self, radius: float = math.inf) -> float: ...
    def step(self, relaxation: float = 1.0) -> float:
        """A step that lowers the objective, for a relaxation in (0, 2); at 1 the bound falls most."""
        ...


class BoundedRay(Ray, Protocol):
    """A ray with `LINE_BOUND`."""

    def bound(self, radius: float = math.inf) -> LineBound:
        """Valid for all steps, tightest for those up to `radius`."""
        ...


class ConstrainedRay(Ray, Protocol):
    """The way from a feasible point to the feasible minimiser of a quadratic model, at step 1.

    `slope` is the derivative at step 0, `reach` the largest step known to be feasible (at least 1). Points on the way carry
    the multipliers found with the minimiser; `stay` is the origin with them.
    """

    @property
    def slope(self) -> float: ...
    @property
    def reach(self) -> float: ...
    def stay(self) -> Point: ...


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
    def low_rank_model(self, kind: str, rank: int, method: str, allow_invalid: bool, start: Any) -> Any: ...
    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> Subspace: ...
    def constrained_step(self, kind: str) -> ConstrainedRay | None:
        """Towards the feasible minimiser of the model of `kind`; None if that could not be found."""
        ...

    def em_step(self) -> FloatArray:
        """Parameters that fit best what is expected, here, of what is unknown."""
        ...

    @property
    def smooth(self) -> Point:
        """The part of the objective without jumps; it alone has curvature."""
        ...

    def orthant_step(self, step: FloatArray) -> Point:
        """The point after a step in which parameters with jumps at zero stop there.

        Between the two points the objective is smooth, and `gradient` is its gradient at the first.
        """
        ...

    def descend(self, coordinates: IntArray, tolerance: float) -> Point:
        """A lower point that differs in these coordinates only, where their gradient is at most `tolerance` if possible.

        Coordinates that carry no penalty are always among them.
        """
        ...


class Objective(Protocol):
    """A function to minimise.

    Where it is not smooth, `point.gradient` is the shortest subgradient: zero at the minimum and only there.
    `scale` is what gradients are divided by before they are compared with a tolerance: the total weight of the data, in
    which a few heavy examples count no more than many others (`core.arrays.weights.held_down`).
    `dense_cost` is the cost of forming and factoring the Hessian, `strong_cost` that of a strong preconditioner, both in
    units of one Hessian product. `blas_threads` is the most threads that dense linear algebra should take meanwhile, None
    for no limit. `costly_rays`, where it is true, says that a step along a ray costs nearly as much as a new point.

    An objective over a convex set also has `demands`, the capabilities that a solver must use (its `uses`) to stay in the
    set, and `project`, which moves a start into it. For a point of such an objective, `gradient` is the KKT residual.
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
    def batches(self, random_state: Any = None, validation: float = 0.0) -> BatchSource: ...
    def sweeps(self, theta: FloatArray, random_state: Any = None) -> Sweeps: ...
    def blocks(self) -> Blocks: ...


class Sweeps(Protocol):
    """Stochastic gradient descent on single examples, in its own representation of the parameters."""

    def advance(self) -> None:
        """One epoch."""
        ...

    def parameters(self) -> FloatArray:
        """Where it is."""
        ...


class Blocks(Protocol):
    """The dual of a penalised likelihood, with a block of marginals for each example, at one place.

    Its objective is minimised, and is nowhere below minus the minimum of the likelihood's.
    """

    n_blocks: int

    @property
    def parameters(self) -> FloatArray:
        """Those that belong to the marginals."""
        ...

    def value(self) -> float: ...
    def step(self, block: int, size: float | None) -> float:
        """Move a block towards its best configuration, by a part or as far as is best; returns what the gap was."""
        ...

    def step_all(self, size: float | None) -> float:
        """Move all blocks at once by the same part; returns the gap."""
        ...


class CurvatureSum(Protocol):
    """A running sum of the curvature of mini-batches."""

    cushion: float

    def decay(self, factor: float) -> None: ...
    def copy(self) -> CurvatureSum: ...
    def prepare(self, penalty: FloatArray, batch_size: float | None = None, damping: float = 0.0) -> None: ...
    def solve(self, vector: FloatArray) -> FloatArray: ...


class BatchSource(Protocol):
    """The examples of an objective in random order, as mini-batches lo..hi; see `partita.softmax.objective.batches`.

    Residuals can be subtracted, and stored in the table at the slots of their batch; beyond that they are the source's own.
    """

    n_examples: int
    size: int
    scale: float
    penalty: FloatArray

    def shuffled(self, batch_size: int) -> list[tuple[int, int]]: ...
    def weight(self, lo: int, hi: int) -> float: ...
    def table(self) -> Any: ...
    def slots(self, lo: int, hi: int) -> Any: ...
    def evaluate(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, Any]: ...
    def pull_back(self, residual: Any, lo: int, hi: int) -> FloatArray: ...
    def problem(self, lo: int, hi: int) -> Objective: ...
    def curvature(self, rank: int | None = None, method: str = "exact") -> Any: ...
    def add_curvature(self, total: Any, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None: ...
    def sample_rows(self) -> tuple[int, int]: ...
    def held_out(self, theta: FloatArray) -> float | None: ...


class Solver(Protocol):
    """An optimiser. Options are its constructor's; it is a value and keeps nothing between runs.

    `requires` is what it needs of the objective. `start` returns the method's private state; `advance` returns the next
    point, or None when no step lowers the objective. A stochastic solver's points are estimates (`EstimatedPoint`), one per
    epoch; it has two more methods: `first`, the point it starts from, and `verdict`, a reason of its own to stop.
    """

    @property
    def name(self) -> str: ...
    @property
    def requires(self) -> frozenset[Capability]: ...
    def start(self, objective: Objective, point: Point) -> Any: ...
    def advance(self, state: Any, point: Point) -> Point | None: ...


@dataclass(frozen=True)
class EstimatedPoint:
    """Parameters after an epoch, with the value and gradient that the mini-batches suggest.

    `held_out` says that the value was measured on held-out examples; the best of those is kept, not the last.
    """

    parameters: FloatArray
    value: float
    gradient: FloatArray
    held_out: bool = False
    gap: float = math.inf

    def along(self, direction: FloatArray) -> Ray:
        raise NotImplementedError("an estimated point has no exact values along a line")


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
