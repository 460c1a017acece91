"""Penalised negative log-likelihood of a log-linear model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.weights import held_down
from ...core.parallel import Workers
from ...core.protocols import BOUNDS, Capability
from ...core.results import FloatArray
from ...core.validation import check_choice, check_weights
from ..bounds.low_rank import LowRank, low_rank_model
from ..bounds.potential import KINDS, PotentialCurvature, RankOneCurvature, ScalarCurvature, potential_curvature
from ..bounds.quadratic import GaugeFactor, Quadratic
from ..features.labels import LabelFeatures
from ..features.linear import DenseLinear, LinearMap, SparseLinear
from ..kernels import newton
from ..structure import Binary, Categorical
from .batches import Batches
from .preconditioner import make_preconditioner, strong_cost, strong_preconditioner

#: Quadratic models are solved by a Cholesky factor up to so many parameters, and never above so many;
ALWAYS_FACTORED, NEVER_FACTORED = 100, 5000
#: in between, if forming the matrix costs at most so many products with it.
FACTOR_COST = 50.0
#: Dense columns from which BLAS may use all threads.
HEAVY_COLUMNS = 400
#: Parameters up to which one compiled call does a whole Newton step.
COMPILED_STEP_UP_TO = 150
#: Entries of dense X from which Hessian products are worth a float32 copy.
SINGLE_PRECISION_FROM = 50_000

WITHOUT_TRIAL = frozenset(
    {
        *(Capability.SMOOTH, Capability.SUBSPACE, Capability.BATCHES),
        *(Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER, Capability.HESSIAN),
        *(Capability.QUADRATIC_BOUND, Capability.LOW_RANK_BOUND),
    }
)
ALL = WITHOUT_TRIAL | {Capability.NEWTON_TRIAL}


class Likelihood:
    """``F(theta) = sum_i w_i (log Z_i - s_{i, y_i}) + linear . theta + 1/2 sum_j penalty_j theta_j^2``, a sum over examples.

    The scores are ``s = A theta + log h``; ``linear`` is zero unless given.
    The one place where signs and shapes are fixed: solvers minimise F, a sum (not a mean) over examples; theta is the flat
    vector of the feature map A; the gradient is ``A' r + linear + penalty * theta`` with ``r = w (p - e_y)``; curvature in
    theta is ``A' S A + diag(penalty)``.

    Parameters
    ----------
    features : LinearMap or LabelFeatures
        The map A.
    structure : Categorical or Binary
        The outputs; its base measure h enters the scores.
    y : array of int
        Each example's label, as a position in its label set.
    weights : array, optional
        Example weights.
    penalty : float or array of shape (size,)
        The l2 of each parameter.
    linear : array of shape (size,), optional
        Coefficients of a linear term.
    """

    def __init__(
        self,
        features: LinearMap | LabelFeatures,
        structure: Categorical,
        y: ArrayLike,
        *,
        weights: Any = None,
        penalty: float | FloatArray = 0.0,
        linear: FloatArray | None = None,
        workers: Workers | None = None,
    ) -> None:
        self.features = features
        self.structure = structure
        self.workers = workers or features.workers
        self.y: NDArray[np.int64] = _labels(y)
        self.weights = check_weights("weights", weights, features.n_examples)
        self.size = features.size
        self.scale = float(held_down(self.weights).sum())
        self.penalty = np.asarray(penalty, dtype=np.float64)
        if self.penalty.shape != (self.size,):
            self.penalty = np.broadcast_to(self.penalty, (self.size,))
        if not np.isfinite(self.penalty).all() or self.penalty.min(initial=0.0) < 0.0:
            raise ValueError("penalty must be finite and non-negative")
        self.linear = None if linear is None else np.ascontiguousarray(linear, dtype=np.float64)
        if self.linear is not None and (self.linear.shape != (self.size,) or not np.isfinite(self.linear).all()):
            raise ValueError(f"linear must be finite with shape ({self.size},), got {self.linear.shape}")
        _check_shapes(features, structure)
        self.sampled: dict[str, Any] = {}
        self.has_offset = bool(np.any(structure.offset))
        if isinstance(structure, Binary):
            counts: Any = 2
        else:
            counts = structure.n_labels or np.diff(structure.offsets(features.n_examples))
        if self.y.shape != (features.n_examples,) or self.y.min() < 0 or (self.y >= counts).any():
            raise ValueError(f"y must hold one label per example ({features.n_examples}), each in its label set")
        self.has_gap = bool(self.penalty.min(initial=np.inf) > 0.0)
        self.capabilities = WITHOUT_TRIAL
        if isinstance(features, DenseLinear) and features.size <= COMPILED_STEP_UP_TO and self.linear is None:
            self.capabilities = ALL if GaugeFactor.applies(features, self.penalty) else WITHOUT_TRIAL
        if self.linear is not None:  # mini-batches know nothing of it
            self.capabilities = self.capabilities - {Capability.BATCHES}

    @property
    def dense_cost(self) -> float:
        """Cost of the Hessian as a matrix and its factor, in units of one Hessian product (from operation counts)."""
        if isinstance(self.features, LabelFeatures):
            return float(self.size)
        n = self.features.n_outputs
        product, gram = self.features.product_cost()
        return (0.5 * n * (n + 1) * gram + self.size**3 / 12.0) / max(product, 1.0)

    @property
    def strong_cost(self) -> float:
        """Cost of a strong preconditioner in the same units; inf if there is none."""
        return strong_cost(self)

    @property
    def blas_threads(self) -> int | None:
        """One, unless matrices are so large that BLAS is the main work, or so small that there is no BLAS."""
        columns = self.features.size if isinstance(self.features, LabelFeatures) else self.features.n_columns
        heavy = columns >= HEAVY_COLUMNS and not isinstance(self.features, SparseLinear)
        return None if heavy or Capability.NEWTON_TRIAL in self.capabilities else 1

    @cached_property
    def small_problem(self) -> tuple[FloatArray, FloatArray, Any]:
        """X' with its row of ones, the penalty of each column, and its places in the flat vector."""
        features = self.features
        assert isinstance(features, DenseLinear)
        X = np.column_stack([features.X, np.ones(len(features.X))]) if features.intercept else features.X
        columns = features.columns()
        return np.ascontiguousarray(X.T), self.penalty[columns[0]], columns

    def batches(self, random_state: Any = None, validation: float = 0.0) -> Batches:
        """The examples as mini-batches in random order, a part of them held out."""
        return Batches(self, random_state, validation)

    def at(self, parameters: FloatArray) -> LikelihoodPoint:
        """The objective seen from `parameters`."""
        theta = np.ascontiguousarray(parameters, dtype=np.float64)
        u = self.features.forward(theta)
        if self.has_offset:
            u = u + self.structure.offset
        return self.view(theta, u)

    def view(self, theta: FloatArray, u: FloatArray) -> LikelihoodPoint:
        """The point with parameters theta, whose scores u are known."""
        return LikelihoodPoint(self, theta, u)

    def loss(self, u: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The loss at scores u, the marginals, and its gradient in u."""
        return self.structure.loss(u, self.y, self.weights, self.workers)

    def subspace(self, u: FloatArray, images: FloatArray, c: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """The loss at u + sum_a c_a images[a], its gradient and Hessian in c."""
        return self.structure.subspace(u, images, c, self.y, self.weights, self.workers)


class OnLikelihood:
    """What objectives that add something to a likelihood take from it."""

    def __init__(self, likelihood: Likelihood) -> None:
        self.likelihood = likelihood
        self.size, self.scale = likelihood.size, likelihood.scale

    @property
    def dense_cost(self) -> float:
        return self.likelihood.dense_cost

    @property
    def strong_cost(self) -> float:
        return self.likelihood.strong_cost


def _labels(y: ArrayLike) -> NDArray[np.int64]:
    labels = np.asarray(y)
    if labels.dtype.kind not in "iu":
        raise ValueError(f"y must hold integers, the position of each label; got {labels.dtype}")
    return np.ascontiguousarray(labels, dtype=np.int64)


def _check_shapes(features: LinearMap | LabelFeatures, structure: Categorical) -> None:
    """The map must write as many potentials as the structure reads."""
    if isinstance(features, LabelFeatures):
        fits = not isinstance(structure, Binary) and np.array_equal(
            np.diff(structure.offsets(features.n_examples)), features.counts
        )
        written = "the label counts of the features"
    else:
        fits = features.n_outputs == (1 if isinstance(structure, Binary) else structure.n_labels)
        written = f"{features.n_outputs} potentials per example"
    if not fits:
        raise ValueError(f"the feature map gives {written}, which is not what {type(structure).__name__} expects")


class LikelihoodPoint:
    """The likelihood at one parameter vector: scores are known, the rest is computed when asked for.

    Moving along a direction costs one product with the data however many steps are tried, because scores are linear.
    """

    def __init__(
        self,
        objective: Likelihood,
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
            # no BLAS: it would split long vectors over threads, which spin on afterwards
            self.value = loss + 0.5 * float((o.penalty * theta * theta).sum())
            if o.linear is not None:
                self.value += float(o.linear @ theta)
        else:
            self.value, self.marginals, self.residual = known
        self._came_by: tuple[FloatArray, FloatArray] | None = None

    @cached_property
    def gradient(self) -> FloatArray:
        features = self.objective.features
        gradient = features.adjoint(self.residual)
        if isinstance(features, LinearMap):
            features.remove_mean(gradient)
        if self.objective.linear is not None:
            gradient = gradient + self.objective.linear
        return gradient + self.objective.penalty * self.parameters

    @property
    def gap(self) -> float:
        """The duality gap at the dual point given by the marginals, ``sum g_j^2 / (2 penalty_j)``; inf without penalty."""
        penalty = self.objective.penalty
        return float(0.5 * np.sum(self.gradient**2 / penalty)) if self.objective.has_gap else np.inf

    def _moved(self, step: FloatArray, image: FloatArray) -> LikelihoodPoint:
        point = self.objective.view(self.parameters + step, self.u + image)
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

    def low_rank_model(self, kind: str, rank: int, method: str, allow_invalid: bool, start: LowRank | None) -> LowRank:
        """A low-rank quadratic above the one of `kind` (see `partita.softmax.bounds.low_rank`)."""
        return low_rank_model(self.model(kind), rank, method, allow_invalid, start)

    def hessian_product(self, precise: bool = True) -> Callable[[FloatArray], FloatArray]:
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

    def newton_trial(self) -> tuple[LikelihoodRay, LikelihoodPoint, float, float] | None:
        """The Newton direction and the point at the best step along it, in one compiled call."""
        o, features = self.objective, self.objective.features
        assert isinstance(features, DenseLinear)
        XT, penalty, columns = o.small_problem
        T = self.parameters[columns]
        P, R, U, image = (np.empty_like(self.u) for _ in range(4))
        D, T1, G1 = (np.empty_like(T) for _ in range(3))
        status, length, value, slope = newton.trial(
            *(XT, o.weights, o.y, o.structure.offsets(len(self.u)), self.marginals, self.gradient[columns], T, self.u),
            *(penalty, D, image, P, R, U, T1, G1),
        )
        if status:
            return None
        theta, gradient, step = np.empty(o.size), np.empty(o.size), np.empty(o.size)
        theta[columns], gradient[columns], step[columns] = T1, G1, D
        point = LikelihoodPoint(o, theta, U, (value, P, R))
        point.gradient = gradient
        return LikelihoodRay(self, step, image), point, length, slope

    def preconditioner(self, strong: bool = False) -> Callable[[FloatArray], FloatArray]:
        """v -> approximately H^-1 v; `strong` is closer and costs `objective.strong_cost` products to build."""
        return strong_preconditioner(self) if strong else self._preconditioner

    @cached_property
    def _preconditioner(self) -> Callable[[FloatArray], FloatArray]:
        return make_preconditioner(self)


class LikelihoodRay:
    """The likelihood on a half-line."""

    def __init__(self, origin: LikelihoodPoint, direction: FloatArray, image: FloatArray) -> None:
        self.origin, self.direction, self.image = origin, direction, image

    def at(self, step: float) -> tuple[LikelihoodPoint, float]:
        point = self.origin._moved(step * self.direction, step * self.image)
        slope = float(np.vdot(point.residual, self.image))
        slope += float((self.origin.objective.penalty * point.parameters) @ self.direction)
        if self.origin.objective.linear is not None:
            slope += float(self.origin.objective.linear @ self.direction)
        return point, slope


class LikelihoodSubspace:
    """The likelihood on a point plus the span of a few directions."""

    def __init__(self, origin: LikelihoodPoint, basis: FloatArray, images: FloatArray) -> None:
        self.origin, self.basis, self.images = origin, basis, images
        penalty = origin.objective.penalty
        self._linear = basis @ (penalty * origin.parameters)
        self._quadratic = (basis * penalty) @ basis.T
        self._constant = 0.5 * float((penalty * origin.parameters) @ origin.parameters)
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

    def at(self, coordinates: FloatArray) -> LikelihoodPoint:
        return self.origin._moved(coordinates @ self.basis, np.tensordot(coordinates, self.images, 1))
