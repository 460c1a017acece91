"""A likelihood over a convex set, perhaps with an l1 penalty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...core.contracts.batches import Blocks
from ...core.contracts.capabilities import Capability, CentredModel
from ...core.results import FloatArray
from ...numerics.quadratic_program import box_by_products
from ..conjugates import RestrictedConjugate
from ..l1 import check_l1, shortest_subgradient
from ..penalized import OnLikelihood
from .asked import InnerPoint, InnerRay, ModelledObjective, Plane
from .feasible_set import FeasibleSet
from .programs import Multipliers, on_sides, solve_within
from .substitution import Substitution

#: Relative accuracy of programs solved by products, and the most products in one.
PRODUCT_TOLERANCE, MAX_PRODUCTS = 0.02, 400
#: Size of a weight with an l1 penalty, beside the largest, that is rounding.
ZERO = 1e-13


#: What is taken over from the likelihood.
_INHERITED = frozenset({Capability.MODEL, Capability.QUADRATIC_BOUND, Capability.SUBSPACE, Capability.BLOCKS})


class Constrained(OnLikelihood[ModelledObjective]):
    """A likelihood, and ``sum_j l1_j |theta_j|`` if there is an l1, to be minimised over a convex set, never leaving it.

    The stationarity of a point is judged by its KKT residual: what the multipliers of the last quadratic program leave of
    the shortest subgradient, and the products of multipliers and slacks. Programs have variables of their own, see
    `Substitution`.

    Parameters
    ----------
    likelihood : PenalizedObjective
        Any that is smooth. Without quadratic models of its own it is minimised by those that its gradients suggest.
    feasible : FeasibleSet
        Of the same flat parameters; not empty.
    l1 : float or array of shape (size,), optional
        The l1 of each parameter.
    """

    def __init__(self, likelihood: ModelledObjective, feasible: FeasibleSet, l1: float | FloatArray | None = None) -> None:
        if Capability.SMOOTH not in likelihood.capabilities:
            raise ValueError(f"constraints need a smooth objective; {type(likelihood).__name__} is not")
        if feasible.size != likelihood.size:
            raise ValueError(f"the set has {feasible.size} parameters, the likelihood {likelihood.size}")
        super().__init__(likelihood)
        self.feasible = feasible
        given = None if l1 is None else check_l1(l1, self.size)
        self.l1: FloatArray | None = given if given is not None and given.any() else None
        self.variables = Substitution(feasible, self.l1)
        if self.l1 is not None:
            self.l1 = feasible.mean(self.l1)  # what a group pays together, each of its members pays a share of
        inherited = _INHERITED & likelihood.capabilities
        self.capabilities: frozenset[Capability] = frozenset({Capability.SMOOTH, Capability.CONSTRAINED_STEP, *inherited})
        self.demands: frozenset[Capability] = frozenset({Capability.CONSTRAINED_STEP})

    @property
    def blas_threads(self) -> int | None:
        return self.likelihood.blas_threads or 1

    @property
    def dense_cost(self) -> float:
        """Programs over bounds and ties need no matrix. Models of what is not convex are bounds, whose steps are short: the
        curvature that gradients suggest is better (a tenth of the iterations on hidden states)."""
        if not self.likelihood.convex:
            return np.inf
        return 1.0 if self.feasible.is_box else self.likelihood.dense_cost

    def blocks(self, oracle: Callable[..., Any] | None = None) -> Blocks:
        """The dual of the likelihood, with the conjugate of the penalties within the set."""
        dual: Any = self.likelihood
        blocks: Any = dual.blocks(oracle)
        return blocks.under(RestrictedConjugate(dual.penalty, self.size, self.l1, self.feasible))  # type: ignore[no-any-return]

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
            return self.feasible.snap(self.feasible.mean(x))
        plain = Substitution(self.feasible, None)
        z = self.feasible.snap(self.feasible.mean(x))[plain.first]
        unit = np.diag(np.bincount(plain.T.indices).astype(np.float64))
        solved = solve_within(plain, unit, plain.T.T @ (plain.join(z) - x), z)
        found = None if solved is None else self._settled(plain, solved.z)
        if found is None or not self.feasible.contains(found):
            raise ValueError("no feasible start was found: the constraints leave no room, or are badly scaled")
        return found

    def _settled(self, variables: Substitution, z: FloatArray) -> FloatArray:
        """Parameters from variables of a program, without the rounding that can be removed."""
        x = self.feasible.snap(variables.join(z))
        if self.l1 is not None:  # rows that hold weights together leave rounding where the penalty has its kink
            x[(self.l1 > 0.0) & (np.abs(x) <= ZERO * (1.0 + float(np.abs(x).max(initial=0.0))))] = 0.0
        return x

    def minimizer(self, model: CentredModel, guess: Any) -> tuple[FloatArray, Multipliers] | None:
        """Where a quadratic model is smallest within the set, with the l1 penalty."""
        own = self.variables
        center, g = own.split(model.center), own.pull(model.gradient0)
        if self.feasible.is_box and model.precondition is not None:
            lower, upper = own.feasible.lower - center, own.feasible.upper - center
            product, precondition = own.product(model.matvec), own.preconditioner(model.precondition)
            limits = (PRODUCT_TOLERANCE, MAX_PRODUCTS)
            step, _ = box_by_products(product, g, lower, upper, precondition, *limits, own.partners)
            z = on_sides((step >= upper).astype(np.int8) - (step <= lower), own.feasible, center + step)
            return self._settled(own, z), self.no_multipliers
        solved = solve_within(own, own.matrix(self._without_gauge(model.matrix())), g, center, guess)
        return None if solved is None else (self._settled(own, solved.z), solved.multipliers)

    def _without_gauge(self, C: FloatArray) -> FloatArray:
        """C with curvature along "the same intercept in every class", which nothing else determines."""
        where = self.likelihood.free_constants()
        if not len(where):
            return C
        C = C.copy()
        C[np.ix_(where, where)] += np.diag(C)[where].mean() / len(where)
        return C

    def penalty_on_size(self, theta: FloatArray) -> float:
        """``sum_j l1_j |theta_j|``."""
        return 0.0 if self.l1 is None else float((self.l1 * np.abs(theta)).sum())


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
    def unrestricted(self) -> InnerPoint:
        """The same: quadratic models are of the likelihood."""
        return self.inner

    @property
    def parameters(self) -> FloatArray:
        return self.inner.parameters

    @cached_property
    def value(self) -> float:
        return self.inner.value + self.objective.penalty_on_size(self.parameters)

    @cached_property
    def smooth_slope(self) -> FloatArray:
        """What ties, rows and cones leave of the gradient of the smooth part."""
        feasible = self.objective.feasible
        left = self.inner.gradient
        if feasible.rows is not None:
            left = left - feasible.rows.T @ self.multipliers.rows
        for cone, z in zip(feasible.cones, self.multipliers.cones, strict=True):
            left = left + cone.matrix.T @ z
        return feasible.mean(np.asarray(left))

    @cached_property
    def slope(self) -> FloatArray:
        """What the l1 penalty leaves of that: bounds must hold the rest."""
        l1 = self.objective.l1
        return self.smooth_slope if l1 is None else shortest_subgradient(self.smooth_slope, l1, self.parameters)

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

        For every feasible x, ``F(x) >= F + g'(x - theta) + 1/2 |x - theta|^2_penalty + l1'(|x| - |theta|)``, where g is the
        gradient of the smooth part. Multipliers of rows and cones of the right sign bound their part of the linear term by
        the slack products. What they leave is minimised for every parameter by itself, within its bounds. So the gap is
        continuous in the distance to bounds.
        """
        likelihood, feasible, theta = self.objective.likelihood, self.objective.feasible, self.parameters
        if not likelihood.has_gap:
            return np.inf
        penalty, slope = feasible.mean(likelihood.penalty), self.smooth_slope
        if self.objective.l1 is None:
            way = np.minimum(feasible.bound_slack(theta, slope), np.abs(slope) / penalty)
            gains = way * (np.abs(slope) - 0.5 * penalty * way)
        else:
            l1 = self.objective.l1
            best = theta - slope / penalty
            best = np.clip(np.sign(best) * np.maximum(np.abs(best) - l1 / penalty, 0.0), feasible.lower, feasible.upper)
            way = best - theta
            gains = np.maximum(-(slope * way + l1 * (np.abs(best) - np.abs(theta)) + 0.5 * penalty * way * way), 0.0)
        return float(self.complementarity.sum() + gains.sum()) + self.inner.slack

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
        return self.step_within(self.model(kind))

    def step_within(self, model: CentredModel) -> ConstrainedRay | None:
        """The same for any quadratic model of the smooth part that touches it here."""
        found = self.objective.minimizer(model, self.multipliers.active)
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
        value, gradient, hessian = self.inner.evaluate(coordinates)
        l1 = self.origin.objective.l1
        if l1 is None:
            return value, gradient, hessian
        x = self.origin.parameters + coordinates @ self.inner.basis
        slopes = np.asarray(self.inner.basis @ (l1 * np.sign(x)))
        return value + self.origin.objective.penalty_on_size(x), gradient + slopes, hessian

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

    @cached_property
    def rise(self) -> float:
        """By how much the l1 penalty is larger at the target; on the way there it is at most the share of this."""
        o = self.origin.objective
        return o.penalty_on_size(self.target) - o.penalty_on_size(self.origin.parameters)

    @property
    def slope(self) -> float:
        """The derivative of the objective at step 0, where the penalty counts as it does from there to the target."""
        return float(self.origin.inner.gradient @ self.direction) + self.rise

    @property
    def reach(self) -> float:
        """The largest step known to stay feasible and, with an l1 penalty, on this side of its kinks; at least 1."""
        start, furthest = self.origin.parameters, np.inf
        if self.origin.objective.l1 is not None:
            nearer = start * (start - self.target) > 0.0
            furthest = float((start[nearer] / (start[nearer] - self.target[nearer])).min(initial=np.inf))
        return max(1.0, min(furthest, self.origin.objective.feasible.reach(start, self.direction)))

    def at(self, step: float) -> tuple[ConstrainedPoint, float]:
        inner, slope = self.inner.at(step)
        theta = self.target if step == 1.0 else self.origin.objective.feasible.snap(inner.parameters)
        return self.origin._wrapped(inner, theta, self.multipliers), slope + self.rise

    def stay(self) -> ConstrainedPoint:
        """The origin with the target's multipliers."""
        return ConstrainedPoint(self.origin.objective, self.origin.inner, self.multipliers)
