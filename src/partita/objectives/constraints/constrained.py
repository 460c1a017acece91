"""A likelihood over a convex set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from ...core.contracts.capabilities import Capability, HasModel, HasSubspace, Product, QuadraticModel, Subspace
from ...core.contracts.objective import Objective
from ...core.contracts.point import Ray
from ...core.results import FloatArray, IntArray
from ...numerics.quadratic_program import OPTIMAL, Program, box_by_products, solve_program
from ..penalized import OnLikelihood
from .conic import solve_conic
from .conic_refinement import refine
from .constraint import Constraint
from .feasibility import check_feasible
from .feasible_set import FeasibleSet

#: Parameters up to which a program over rows or cones is formed (a matrix of their square).
SIZE_LIMIT = 8000
#: Relative accuracy of programs solved by products, and the most products in one.
PRODUCT_TOLERANCE, MAX_PRODUCTS = 0.02, 400


class HasColumns(Protocol):
    """A feature map with a weight for each output and column: what constraints on coefficients refer to."""

    @property
    def size(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    def columns(self) -> Any:
        """The places of the weights of each output in the flat vector."""
        ...


def compile_constraints(constraints: Sequence[Constraint], features: HasColumns) -> FeasibleSet:
    """The flat set of all constraints together; a ValueError names those that conflict."""
    positions = np.asarray(features.columns())[:, : features.n_columns]
    parts = [constraint.compile(positions, features.size) for constraint in constraints]
    whole = FeasibleSet.intersection(features.size, parts)
    check_feasible(constraints, parts, whole)
    if not whole.is_box and features.size > SIZE_LIMIT:
        raise ValueError(
            f"constraints other than bounds need a {features.size} x {features.size} matrix; the limit is {SIZE_LIMIT}. "
            "Use Box or Ball(norm=inf) only, or fewer features"
        )
    return whole


@dataclass(frozen=True)
class Multipliers:
    """Lagrange multipliers of rows and cones (those of bounds follow from the gradient), and the active set."""

    rows: FloatArray
    cones: tuple[FloatArray, ...] = ()
    active: Any = field(default=None, repr=False)


class CentredModel(QuadraticModel, Protocol):
    """A quadratic with its center, the gradient there, and what products with it are preconditioned by, if they are."""

    @property
    def center(self) -> FloatArray: ...
    @property
    def gradient0(self) -> FloatArray: ...
    @property
    def precondition(self) -> Product | None: ...


class Plane(Subspace, Protocol):
    """A subspace with its basis."""

    @property
    def basis(self) -> FloatArray: ...
    def at(self, coordinates: FloatArray) -> InnerPoint: ...


class InnerRay(Ray, Protocol):
    """A half-line."""

    def at(self, step: float) -> tuple[InnerPoint, float]: ...


class InnerPoint(HasModel, HasSubspace, Protocol):
    """A point of the likelihood; its parameters may be moved by rounding."""

    parameters: FloatArray

    def model(self, kind: str) -> CentredModel: ...
    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> Plane: ...
    def along(self, direction: FloatArray) -> InnerRay: ...


class ModelledObjective(Objective, Protocol):
    """A penalised objective that offers `Capability.MODEL`: see `PenalizedObjective`."""

    @property
    def penalty(self) -> FloatArray: ...
    @property
    def has_gap(self) -> bool: ...
    def free_constants(self) -> IntArray: ...
    def at(self, parameters: FloatArray) -> InnerPoint: ...


class Constrained(OnLikelihood[ModelledObjective]):
    """A likelihood to be minimised over a convex set, never leaving it.

    The stationarity of a point is judged by its KKT residual: what the multipliers of the last quadratic program leave of
    the gradient, and the products of multipliers and slacks.

    Parameters
    ----------
    likelihood : PenalizedObjective
        With quadratic models.
    feasible : FeasibleSet
        Of the same flat parameters; not empty.
    """

    def __init__(self, likelihood: ModelledObjective, feasible: FeasibleSet) -> None:
        if feasible.size != likelihood.size:
            raise ValueError(f"the set has {feasible.size} parameters, the likelihood {likelihood.size}")
        super().__init__(likelihood)
        self.feasible = feasible
        inherited = {Capability.MODEL, Capability.QUADRATIC_BOUND, Capability.SUBSPACE} & likelihood.capabilities
        self.capabilities: frozenset[Capability] = frozenset({Capability.SMOOTH, Capability.CONSTRAINED_STEP, *inherited})
        self.demands: frozenset[Capability] = frozenset({Capability.CONSTRAINED_STEP})

    @property
    def blas_threads(self) -> int | None:
        return self.likelihood.blas_threads or 1

    def at(self, parameters: FloatArray) -> ConstrainedPoint:
        """The objective seen from feasible `parameters`."""
        worst = self.feasible.violation(np.asarray(parameters, dtype=np.float64))
        if worst > 0.0:
            raise ValueError(f"the parameters violate the constraints by {worst:.3g}; project them first")
        return ConstrainedPoint(self, self.likelihood.at(parameters), self.no_multipliers)

    @cached_property
    def no_multipliers(self) -> Multipliers:
        rows = 0 if self.feasible.rows is None else self.feasible.rows.shape[0]
        return Multipliers(np.zeros(rows), tuple(np.zeros(len(cone.offset)) for cone in self.feasible.cones))

    def project(self, parameters: FloatArray) -> FloatArray:
        """The nearest feasible parameters."""
        x = np.asarray(parameters, dtype=np.float64)
        if self.feasible.is_box or self.feasible.contains(x):
            return self.feasible.snap(x)
        solved = self._program(np.eye(self.size), np.zeros(self.size), x, None)
        if solved is None or not self.feasible.contains(solved[0]):
            raise ValueError("no feasible start was found: the constraints leave no room, or are badly scaled")
        return solved[0]

    def _program(
        self, C: FloatArray, g: FloatArray, center: FloatArray, guess: Any
    ) -> tuple[FloatArray, Multipliers] | None:
        """``min 1/2 s'Cs + g's`` over feasible ``center + s``; None if the program was not solved."""
        feasible = self.feasible
        if feasible.cones:
            conic = refine(solve_conic(C, g, feasible, center), C, g, feasible, center)
            multipliers = Multipliers(conic.row_multipliers, conic.cone_multipliers)
            return (feasible.snap(conic.x), multipliers) if conic.solved else None
        values, (low, high) = feasible.row_values(center), feasible.row_bounds()
        program = Program(C, g, feasible.lower - center, feasible.upper - center, feasible.rows, low - values, high - values)
        result = solve_program(program, guess)
        if result.status != OPTIMAL:
            return None
        side = result.active[: self.size]
        x = np.where(side < 0, feasible.lower, np.where(side > 0, feasible.upper, center + result.x))
        return feasible.snap(x), Multipliers(result.row_multipliers, (), result.active)

    def minimizer(self, model: CentredModel, guess: Any) -> tuple[FloatArray, Multipliers] | None:
        """Where a quadratic model is smallest within the set."""
        center = model.center
        if self.feasible.is_box and model.precondition is not None:
            lower, upper = self.feasible.lower - center, self.feasible.upper - center
            step, _ = box_by_products(
                *(model.matvec, model.gradient0, lower, upper, model.precondition, PRODUCT_TOLERANCE, MAX_PRODUCTS)
            )
            x = np.where(step <= lower, self.feasible.lower, np.where(step >= upper, self.feasible.upper, center + step))
            return self.feasible.snap(x), self.no_multipliers
        C = model.matrix()
        return self._program(self._without_gauge(C), model.gradient0, center, guess)

    def _without_gauge(self, C: FloatArray) -> FloatArray:
        """C with curvature along "the same intercept in every class", which nothing else determines."""
        where = self.likelihood.free_constants()
        if not len(where):
            return C
        C = C.copy()
        C[np.ix_(where, where)] += np.diag(C)[where].mean() / len(where)
        return C


class ConstrainedPoint:
    """A feasible point of a constrained likelihood, with the multipliers of the program that led to it."""

    objective: Constrained
    inner: InnerPoint
    multipliers: Multipliers

    def __init__(self, objective: Constrained, inner: InnerPoint, multipliers: Multipliers) -> None:
        self.objective, self.inner, self.multipliers = objective, inner, multipliers

    @property
    def likelihood(self) -> InnerPoint:
        """The point of the likelihood."""
        return self.inner

    @property
    def parameters(self) -> FloatArray:
        return self.inner.parameters

    @property
    def value(self) -> float:
        return self.inner.value

    @cached_property
    def slope(self) -> FloatArray:
        """What rows and cones leave of the gradient: bounds must hold the rest."""
        feasible = self.objective.feasible
        left = self.inner.gradient
        if feasible.rows is not None:
            left = left - feasible.rows.T @ self.multipliers.rows
        for cone, z in zip(feasible.cones, self.multipliers.cones, strict=True):
            left = left + cone.matrix.T @ z
        return np.asarray(left)

    @cached_property
    def held(self) -> FloatArray:
        """Multipliers of bounds, continuous in the distance to them."""
        return self.objective.feasible.held(self.parameters, self.slope)

    @property
    def stationarity(self) -> FloatArray:
        """What rows, cones and bounds leave of the gradient."""
        return self.slope - self.held

    @cached_property
    def complementarity(self) -> FloatArray:
        """Products of multipliers and slacks: one for each row, one for each cone."""
        feasible, x = self.objective.feasible, self.parameters
        products = np.zeros(0)
        if feasible.rows is not None:
            values, mu = feasible.row_values(x), self.multipliers.rows
            with np.errstate(invalid="ignore"):
                below, above = mu * (values - feasible.row_lower), mu * (values - feasible.row_upper)
            products = np.maximum(np.where(mu > 0.0, below, np.where(mu < 0.0, above, 0.0)), 0.0)
        cones = [
            max(0.0, float(z @ (cone.offset - cone.matrix @ x)))
            for cone, z in zip(feasible.cones, self.multipliers.cones, strict=True)
        ]
        return np.concatenate([products, cones])

    @cached_property
    def gradient(self) -> FloatArray:
        """The KKT residual: stationarity, then products of multipliers and slacks. Zero exactly at the optimum."""
        slack = self.objective.feasible.bound_slack(self.parameters, self.slope)
        bounds = self.held * np.where(self.held != 0.0, slack, 0.0)
        return np.concatenate([self.stationarity, bounds, self.complementarity])

    @property
    def gap(self) -> float:
        """A bound on ``F - optimum``; inf without penalty.

        For every feasible x, ``F(x) >= F + g'(x - theta) + 1/2 |x - theta|^2_penalty``. Multipliers of rows and cones of
        the right sign bound their part of the linear term by the slack products. What they leave, a slope for every
        parameter, is minimised with the penalty within the bounds: a way of ``slope / penalty``, or to the bound if that
        is nearer. So the gap is continuous in the distance to bounds.
        """
        likelihood = self.objective.likelihood
        if not likelihood.has_gap:
            return np.inf
        penalty, slope = likelihood.penalty, np.abs(self.slope)
        way = np.minimum(self.objective.feasible.bound_slack(self.parameters, self.slope), slope / penalty)
        return float(self.complementarity.sum() + np.sum(way * (slope - 0.5 * penalty * way)))

    @property
    def active(self) -> bool:
        """Whether a constraint holds with equality or pushes."""
        if self.objective.feasible.tight(self.parameters):
            return True
        return any(float(np.abs(z).max(initial=0.0)) > 1e-9 * self.objective.scale for z in self.multipliers.cones)

    def _wrapped(self, inner: InnerPoint, theta: FloatArray, multipliers: Multipliers) -> ConstrainedPoint:
        inner.parameters = theta  # differs by rounding: bounds and ties hold exactly
        return ConstrainedPoint(self.objective, inner, multipliers)

    def along(self, direction: FloatArray) -> ConstrainedRay:
        ray = self.inner.along(direction)
        return ConstrainedRay(self, ray, self.parameters + direction, self.multipliers)

    def model(self, kind: str) -> CentredModel:
        """That of the likelihood, which knows nothing of the set."""
        return self.inner.model(kind)

    def constrained_step(self, kind: str) -> ConstrainedRay | None:
        """The ray to the feasible minimiser of the model of `kind`; None if that could not be found."""
        found = self.objective.minimizer(self.model(kind), self.multipliers.active)
        if found is None:
            return None
        target, multipliers = found
        return ConstrainedRay(self, self.inner.along(target - self.parameters), target, multipliers)

    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> ConstrainedSubspace:
        return ConstrainedSubspace(self, self.inner.subspace(directions, momentum))


class ConstrainedSubspace:
    """A plane through a point; its points may be infeasible."""

    origin: ConstrainedPoint
    inner: Plane

    def __init__(self, origin: ConstrainedPoint, inner: Plane) -> None:
        self.origin, self.inner = origin, inner

    @property
    def dimension(self) -> int:
        return self.inner.dimension

    def evaluate(self, coordinates: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return self.inner.evaluate(coordinates)

    def reach(self, coordinates: FloatArray, move: FloatArray) -> float:
        """The largest t for which ``coordinates + t move`` is known to be feasible."""
        x = self.origin.parameters + coordinates @ self.inner.basis
        return self.origin.objective.feasible.reach(x, move @ self.inner.basis)

    def at(self, coordinates: FloatArray) -> ConstrainedPoint:
        inner = self.inner.at(coordinates)
        theta = self.origin.objective.feasible.snap(inner.parameters)
        return self.origin._wrapped(inner, theta, self.origin.multipliers)


class ConstrainedRay:
    """The half-line from a point towards a feasible target (at step 1); its points carry the target's multipliers."""

    origin: ConstrainedPoint
    inner: InnerRay
    target: FloatArray
    multipliers: Multipliers

    def __init__(self, origin: ConstrainedPoint, inner: InnerRay, target: FloatArray, multipliers: Multipliers) -> None:
        self.origin, self.inner, self.target, self.multipliers = origin, inner, target, multipliers

    @property
    def direction(self) -> FloatArray:
        return self.inner.direction

    @property
    def slope(self) -> float:
        """The derivative of the objective at step 0."""
        return float(self.origin.inner.gradient @ self.direction)

    @property
    def reach(self) -> float:
        """The largest step known to stay feasible, at least 1."""
        return max(1.0, self.origin.objective.feasible.reach(self.origin.parameters, self.direction))

    def at(self, step: float) -> tuple[ConstrainedPoint, float]:
        inner, slope = self.inner.at(step)
        theta = self.target if step == 1.0 else self.origin.objective.feasible.snap(inner.parameters)
        return self.origin._wrapped(inner, theta, self.multipliers), slope

    def stay(self) -> ConstrainedPoint:
        """The origin with the target's multipliers."""
        return ConstrainedPoint(self.origin.objective, self.origin.inner, self.multipliers)
