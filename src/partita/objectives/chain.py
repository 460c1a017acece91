"""Penalised negative log-likelihood of chains."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ..core.parallel import Workers
from ..core.protocols import Capability
from ..core.results import FloatArray, IntArray
from ..core.validation import check_weights
from ..features.chain import ChainFeatures
from ..kernels import chain as kernels
from ..structures.chain_sums import ChainSums
from .chain_batches import ChainBatches, observed
from .chain_sweeps import ChainSweeps
from .l1 import mixture_divergence

Pair = tuple[FloatArray, FloatArray]

#: The power of the diagonal of the Hessian that scales conjugate gradients.
POWER = 0.5
#: Smallest part of the diagonal at uniform probabilities that counts: without l2, what vanishes would be scaled without end.
LEAST_CURVATURE = 0.01


class ChainLikelihood:
    """``F(theta) = sum_i w_i (log Z_i - score of y_i) + 1/2 sum_j penalty_j theta_j^2``, a sum over chains."""

    def __init__(
        self,
        features: ChainFeatures,
        y: IntArray,
        *,
        weights: Any = None,
        penalty: float | FloatArray = 0.0,
        workers: Workers | None = None,
    ) -> None:
        self.features = features
        self.workers = workers or features.workers
        self.weights = check_weights("weights", weights, features.n_examples)
        self.y = y
        self.size = features.size
        lengths = np.diff(features.offsets)
        self.scale = float(self.weights @ lengths)
        self.penalty = np.broadcast_to(np.asarray(penalty, dtype=np.float64), (self.size,))
        self.has_gap = bool(self.penalty.min(initial=np.inf) > 0.0)
        self.capabilities = frozenset(
            {Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER, Capability.BATCHES}
        )
        if self.has_gap and np.ptp(self.penalty) == 0.0:
            self.capabilities |= {Capability.SWEEPS}
        self.observed = self._statistics(y)

    def _statistics(self, y: IntArray) -> FloatArray:
        """The features of the observed labels, summed with weights."""
        f = self.features
        return f.adjoint(*observed(y, f.offsets, self.weights, f.n_labels))

    def batches(self, random_state: Any = None, validation: float = 0.0) -> ChainBatches:
        """The chains as mini-batches in random order, a part of them held out."""
        return ChainBatches(self, random_state, validation)

    def sweeps(self, theta: FloatArray, random_state: Any = None) -> ChainSweeps:
        """Stochastic gradient descent on single chains."""
        return ChainSweeps(self, theta, random_state)

    @property
    def dense_cost(self) -> float:
        return float(self.size)

    @property
    def strong_cost(self) -> float:
        return np.inf

    @property
    def blas_threads(self) -> int | None:
        return 1

    @cached_property
    def least_diagonal(self) -> FloatArray:
        """A floor under the diagonal of the Hessian where that scales steps."""
        f, n = self.features, self.features.n_labels
        lengths = np.diff(f.offsets)
        p = np.repeat(self.weights, lengths)[:, None] * np.full(n, (1.0 - 1.0 / n) / n if n > 1 else 1.0)
        C = np.full((n, n), float(self.weights @ (lengths - 1)) / (n * n))
        return np.maximum(LEAST_CURVATURE * f.squared(p, C), 1e-12)

    def at(self, parameters: FloatArray) -> ChainPoint:
        theta = np.ascontiguousarray(parameters, dtype=np.float64)
        return ChainPoint(self, theta, self.features.forward(theta))


class ChainPoint:
    def __init__(self, objective: ChainLikelihood, theta: FloatArray, scores: Pair) -> None:
        self.objective, self.parameters, self.scores = objective, theta, scores
        o = objective
        self.sums = ChainSums(*scores, o.features.offsets, o.weights, o.workers)
        self.value = self.sums.loss - float((o.observed * theta).sum()) + 0.5 * float((o.penalty * theta * theta).sum())

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        return o.features.adjoint(self.sums.P, self.sums.C) - o.observed + o.penalty * self.parameters

    @property
    def gap(self) -> float:
        penalty = self.objective.penalty
        return float(0.5 * np.sum(self.gradient**2 / penalty)) if self.objective.has_gap else np.inf

    def divergence(self, c: float) -> float:
        """See `mixture_divergence`."""
        o, (U, A) = self.objective, self.scores
        score = np.empty(len(o.weights))
        kernels.scores(U, A, o.features.offsets, o.y, 0, len(score), score)
        return mixture_divergence(score - self.sums.log_z, o.weights, c)

    def along(self, direction: FloatArray) -> ChainRay:
        return ChainRay(self, direction, self.objective.features.forward(direction))

    def hessian_product(self, precise: bool = True) -> Callable[[FloatArray], FloatArray]:
        features, penalty = self.objective.features, self.objective.penalty

        def product(v: FloatArray) -> FloatArray:
            return features.adjoint(*self.sums.product(*features.forward(v))) + penalty * v

        return product

    def preconditioner(self, strong: bool = False) -> Callable[[FloatArray], FloatArray]:
        scaling = np.maximum(self._diagonal, self.objective.least_diagonal) ** -POWER
        return lambda v: scaling * v

    @cached_property
    def _diagonal(self) -> FloatArray:
        """The diagonal of the Hessian, as if attributes met every label independently of the rest."""
        o, sums = self.objective, self.sums
        w = np.repeat(np.where(o.weights > 0.0, o.weights, 1.0), np.diff(o.features.offsets))[:, None]
        return o.features.squared(sums.P * (1.0 - sums.P / w), sums.C) + o.penalty


class ChainRay:
    def __init__(self, origin: ChainPoint, direction: FloatArray, image: Pair) -> None:
        self.origin, self.direction, self.image = origin, direction, image
        self._observed = float((origin.objective.observed * direction).sum())

    def at(self, step: float) -> tuple[ChainPoint, float]:
        o, (U, A), (dU, dA) = self.origin, self.origin.scores, self.image
        point = ChainPoint(o.objective, o.parameters + step * self.direction, (U + step * dU, A + step * dA))
        slope = float(np.vdot(point.sums.P, dU)) + float(np.vdot(point.sums.C, dA)) - self._observed
        return point, slope + float((o.objective.penalty * point.parameters) @ self.direction)
