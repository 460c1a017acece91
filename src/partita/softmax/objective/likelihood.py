"""Penalised negative log-likelihood of a log-linear model."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Self

import numpy as np

from ...core.contracts.capabilities import BOUNDS, Capability, LowRankModel, Product
from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice
from ...objectives.bounds.low_rank import LowRank
from ...objectives.penalized import PenalizedPoint
from ..bounds.low_rank import low_rank_model
from ..bounds.potential import KINDS, PotentialCurvature, RankOneCurvature, ScalarCurvature, potential_curvature
from ..bounds.quadratic import GaugeFactor, Quadratic
from ..features.linear_layouts import DenseLinear
from ..kernels import newton
from ..structure import Categorical
from .base import SoftmaxObjective
from .batches import Batches
from .leverages import LeveragedBatches
from .preconditioner import make_preconditioner, strong_cost, strong_preconditioner

#: Quadratic models are solved by a Cholesky factor up to so many parameters, and never above so many;
ALWAYS_FACTORED, NEVER_FACTORED = 100, 5000
#: in between, if forming the matrix costs at most so many products with it.
FACTOR_COST = 50.0
#: Parameters up to which one compiled call does a whole Newton step.
COMPILED_STEP_UP_TO = 150
#: Entries of dense X from which Hessian products are worth a float32 copy.
SINGLE_PRECISION_FROM = 50_000

#: What likelihoods of labels offer, known or not.
COMMON = frozenset(
    {
        *(Capability.SMOOTH, Capability.SUBSPACE, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER),
        *(Capability.MODEL, Capability.QUADRATIC_BOUND, Capability.LOW_RANK_BOUND),
    }
)
WITHOUT_TRIAL = COMMON | {Capability.BATCHES, Capability.HESSIAN}
ALL = WITHOUT_TRIAL | {Capability.NEWTON_TRIAL}


class SoftmaxPoint(PenalizedPoint):
    """A loss of scores at one parameter vector: scores are known, the rest is computed when asked for.

    Moving along a direction costs one product with the data however many steps are tried, because scores are linear.
    """

    marginals: FloatArray
    residual: FloatArray
    value: float

    objective: SoftmaxObjective[Any]

    def __init__(
        self,
        objective: SoftmaxObjective[Any],
        theta: FloatArray,
        u: FloatArray,
        known: tuple[float, FloatArray, FloatArray] | None = None,
    ) -> None:
        self.objective = objective
        self.parameters = theta
        self.u = u
        if known is None:
            o = objective
            loss, self.marginals, self.residual = o.loss(u)
            self.value = loss + o.penalty_value(theta)
            if o.linear is not None:
                self.value += float(o.linear @ theta)
        else:
            self.value, self.marginals, self.residual = known
        self._came_by: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def gradient(self) -> FloatArray:
        o, features = self.objective, self.objective.features
        gradient = features.adjoint(self.residual)
        features.remove_mean(gradient)
        if o.linear is not None:
            gradient = gradient + o.linear
        return gradient + o.penalty_gradient(self.parameters)

    @property
    def likelihood(self) -> SoftmaxPoint:
        """The point itself: what points with more than a likelihood call theirs."""
        return self

    def moved(self, step: FloatArray, image: FloatArray) -> SoftmaxPoint:
        """The point after a step, whose scores are `image`."""
        point: SoftmaxPoint = self.objective.view(self.parameters + step, self.u + image)
        point._came_by = (step, image)
        return point

    def along(self, direction: FloatArray) -> LikelihoodRay:
        return LikelihoodRay(self, direction, self.objective.features.forward(direction))

    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> LikelihoodSubspace:
        """Span of `directions`, and with `momentum` of the step that led here (which costs no product)."""
        images = [self.objective.features.forward(direction) for direction in directions]
        basis = list(directions)
        if momentum and self._came_by is not None:
            basis.append(self._came_by[0])
            images.append(self._came_by[1])
        return LikelihoodSubspace(self, np.array(basis), np.array(images))

    @cached_property
    def hessian_curvature(self) -> PotentialCurvature:
        """The Hessian of the loss in the scores."""
        o = self.objective
        return potential_curvature(o.structure, self.u, o.weights, "hessian", o.workers)

    @cached_property
    def _hessian(self) -> Quadratic:
        return self._quadratic("hessian")

    def _quadratic(self, kind: str) -> Quadratic:
        o = self.objective
        if kind == "hessian":
            potential = self.hessian_curvature
        else:
            potential = potential_curvature(o.structure, self.u, o.weights, kind, o.workers)
        dense = o.size <= ALWAYS_FACTORED or (o.size <= NEVER_FACTORED and o.dense_cost <= FACTOR_COST)
        precondition = None if dense else (lambda v: self._preconditioner(v))  # made when first needed
        return Quadratic(
            o.features, potential, o.penalty, self.parameters, self.value, self.gradient, kind in BOUNDS, precondition
        )

    def model(self, kind: str) -> Quadratic:
        """The quadratic of `kind` (see `partita.softmax.bounds.potential`) that touches the objective here."""
        check_choice("bound", kind, KINDS)
        return self._hessian if kind == "hessian" else self._quadratic(kind)

    def low_rank_model(self, kind: str, rank: int, method: str, allow_invalid: bool, start: LowRankModel | None) -> LowRank:
        """A low-rank quadratic above the one of `kind` (see `partita.objectives.bounds.low_rank`)."""
        return low_rank_model(self.model(kind), rank, method, allow_invalid, start)

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> approximately H^-1 v; `strong` is closer and costs `objective.strong_cost` products to build."""
        return strong_preconditioner(self) if strong else self._preconditioner

    @cached_property
    def _preconditioner(self) -> Product:
        return make_preconditioner(self)


class Likelihood(SoftmaxObjective["LikelihoodPoint"]):
    """``F(theta) = sum_i w_i (log Z_i - s_{i, y_i}) + linear . theta + 1/2 sum_j penalty_j theta_j^2``, a sum over examples.

    The loss is convex, with ``r = w (p - e_y)``. See `SoftmaxObjective` for the parameters.
    """

    def _offers(self) -> frozenset[Capability]:
        if self.linear is not None:
            return WITHOUT_TRIAL
        features = self.features
        if isinstance(features, DenseLinear) and features.size <= COMPILED_STEP_UP_TO:
            return ALL if GaugeFactor.applies(features, self.penalty) else WITHOUT_TRIAL
        return WITHOUT_TRIAL

    @property
    def strong_cost(self) -> float:
        """Cost of a strong preconditioner in units of one Hessian product; inf if there is none."""
        return strong_cost(self.features, self.penalty)

    @cached_property
    def small_problem(self) -> tuple[newton.SmallProblem, Any]:
        """What `kernels.newton.trial` minimises, and the places of its weights in the flat vector."""
        features = self.features
        assert isinstance(features, DenseLinear)
        X = np.column_stack([features.X, np.ones(len(features.X))]) if features.intercept else features.X
        columns = features.columns()
        targets = self.structure.targets(self.y, self.weights)
        return newton.SmallProblem(np.ascontiguousarray(X.T), targets, self.penalty[columns[0]]), columns

    def batches(self, random_state: Any = None, validation: float = 0.0) -> Batches[Self]:
        """The examples as mini-batches in random order, a part of them held out."""
        kind = Batches if self.slope is not None else LeveragedBatches
        return kind(self, random_state, validation)

    def of_rows(self, rows: IntArray, features: Any, structure: Categorical, penalty: FloatArray) -> Self:
        return type(self)(features, structure, self.y[rows], weights=self.weights[rows], penalty=penalty)

    def loss_of(self, rows: IntArray, structure: Categorical, u: FloatArray) -> tuple[float, FloatArray]:
        loss, _, residual = structure.loss(u, self.y[rows], self.weights[rows], self.workers)
        return loss, residual

    def view(self, theta: FloatArray, u: FloatArray) -> LikelihoodPoint:
        return LikelihoodPoint(self, theta, u)

    def loss(self, u: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return self.structure.loss(u, self.y, self.weights, self.workers)

    def subspace(self, u: FloatArray, images: FloatArray, c: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return self.structure.subspace(u, images, c, self.y, self.weights, self.workers)


class LikelihoodPoint(SoftmaxPoint):
    """The likelihood at one parameter vector."""

    objective: Likelihood

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v; with ``precise=False`` possibly in single precision, which is enough inside conjugate gradients."""
        features = self.objective.features
        potential = self.hessian_curvature
        if precise or not isinstance(features, DenseLinear) or features.X.size < SINGLE_PRECISION_FROM:
            return self._hessian.matvec  # never factored here
        assert isinstance(potential, RankOneCurvature | ScalarCurvature)
        single, top = features.single(), potential.top
        D = potential.D.astype(single.dtype)
        penalty = self.objective.penalty

        def product(v: FloatArray) -> FloatArray:
            data = single.curvature_product(D, top, v)
            single.remove_mean(data)
            return data + penalty * v

        return product

    @cached_property
    def iterate(self) -> newton.Iterate:
        """What `newton_trial` begins with; it leaves that of the point that it finds."""
        _, columns = self.objective.small_problem
        return newton.Iterate(self.parameters[columns], self.gradient[columns], self.u, self.marginals, self.residual)

    def newton_trial(self) -> tuple[LikelihoodRay, LikelihoodPoint, float, float] | None:
        """The Newton direction and the point at the best step along it, in one compiled call."""
        o, here = self.objective, self.iterate
        problem, columns = o.small_problem
        T, _, u, P, R = here
        # one by one: a generator would take longer than the arithmetic on small data
        there = newton.Iterate(np.empty_like(T), np.empty_like(T), np.empty_like(u), np.empty_like(P), np.empty_like(R))
        D, image = np.empty_like(T), np.empty_like(u)
        status, length, value, slope = newton.trial(problem, here, D, image, there)
        if status:
            return None
        theta, gradient, step = np.empty(o.size), np.empty(o.size), np.empty(o.size)
        theta[columns], gradient[columns], step[columns] = there.theta, there.g, D
        point = LikelihoodPoint(o, theta, there.U, (value, there.P, there.R))
        point.gradient, point.iterate = gradient, there
        return LikelihoodRay(self, step, image), point, length, slope


class LikelihoodRay:
    """A loss of scores on a half-line."""

    origin: SoftmaxPoint
    direction: FloatArray
    image: FloatArray

    def __init__(self, origin: SoftmaxPoint, direction: FloatArray, image: FloatArray) -> None:
        self.origin, self.direction, self.image = origin, direction, image

    def at(self, step: float) -> tuple[SoftmaxPoint, float]:
        """The point at `step`, and the slope there."""
        point = self.origin.moved(step * self.direction, step * self.image)
        slope = float(np.vdot(point.residual, self.image))
        slope += float(self.origin.objective.penalty_gradient(point.parameters) @ self.direction)
        if self.origin.objective.linear is not None:
            slope += float(self.origin.objective.linear @ self.direction)
        return point, slope


class LikelihoodSubspace:
    """A loss of scores on a point plus the span of a few directions."""

    origin: SoftmaxPoint
    basis: FloatArray
    images: FloatArray

    def __init__(self, origin: SoftmaxPoint, basis: FloatArray, images: FloatArray) -> None:
        self.origin, self.basis, self.images = origin, basis, images
        penalized = origin.objective
        self._linear = basis @ penalized.penalty_gradient(origin.parameters)
        self._quadratic = (basis * penalized.penalty) @ basis.T
        self._constant = penalized.penalty_value(origin.parameters)
        linear = origin.objective.linear
        if linear is not None:
            self._linear = self._linear + basis @ linear
            self._constant += float(linear @ origin.parameters)

    @property
    def dimension(self) -> int:
        return len(self.basis)

    def evaluate(self, coordinates: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian in the coordinates; no product with the data."""
        loss, gradient, hessian = self.origin.objective.subspace(self.origin.u, self.images, coordinates)
        bend = self._quadratic @ coordinates
        value = loss + self._constant + float(coordinates @ (self._linear + 0.5 * bend))
        return value, gradient + self._linear + bend, hessian + self._quadratic

    def at(self, coordinates: FloatArray) -> SoftmaxPoint:
        return self.origin.moved(coordinates @ self.basis, np.tensordot(coordinates, self.images, 1))
