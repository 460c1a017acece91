"""Penalised negative log-likelihood of chains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ..bounds.chain import DenseChains, LineBound
from ..bounds.partition import PartitionBound
from ..core.parallel import Workers
from ..core.protocols import Capability
from ..core.results import FloatArray, IntArray
from ..core.validation import check_weights
from ..features.chain import ChainFeatures
from ..structures.chain_sums import ChainSums
from .chain_bounds import ChainSubspace, bound_capabilities, dense_chains, line_bound, quadratic_bound

Pair = tuple[FloatArray, FloatArray]

#: The power of the diagonal of the Hessian that scales conjugate gradients.
POWER = 0.5


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
        self.capabilities = frozenset({Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER})
        self.capabilities |= bound_capabilities(features)
        self.observed = self._statistics(y)

    def _statistics(self, y: IntArray) -> FloatArray:
        """The features of the observed labels, summed with weights."""
        f = self.features
        n = f.n_labels
        per_position = np.repeat(self.weights, np.diff(f.offsets))
        R = np.zeros((f.n_positions, n))
        R[np.arange(f.n_positions), y] = per_position
        inner = np.ones(f.n_positions, bool)
        inner[f.offsets[:-1]] = False
        where = np.flatnonzero(inner)
        C = np.bincount(y[where - 1] * n + y[where], weights=per_position[where], minlength=n * n).reshape(n, n)
        return f.adjoint(R, C)

    @property
    def dense_cost(self) -> float:
        return float(self.size)

    @cached_property
    def dense(self) -> DenseChains:
        """The features written out, for bounds as matrices."""
        return dense_chains(self.features)

    @property
    def strong_cost(self) -> float:
        return np.inf

    @property
    def blas_threads(self) -> int | None:
        return 1

    def at(self, parameters: FloatArray) -> ChainPoint:
        theta = np.ascontiguousarray(parameters, dtype=np.float64)
        return ChainPoint(self, theta, self.features.forward(theta))


class ChainPoint:
    came_by: FloatArray | None = None

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

    def model(self, kind: str) -> PartitionBound:
        """The quadratic above the objective of `kind`, see `partita.bounds.chain`."""
        return quadratic_bound(self, kind)

    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> ChainSubspace:
        """Span of `directions`, and with `momentum` of the step that led here."""
        return ChainSubspace(self, directions, momentum)

    def along(self, direction: FloatArray) -> ChainRay:
        return ChainRay(self, direction, self.objective.features.forward(direction))

    def hessian_product(self, precise: bool = True) -> Callable[[FloatArray], FloatArray]:
        features, penalty = self.objective.features, self.objective.penalty

        def product(v: FloatArray) -> FloatArray:
            return features.adjoint(*self.sums.product(*features.forward(v))) + penalty * v

        return product

    def preconditioner(self, strong: bool = False) -> Callable[[FloatArray], FloatArray]:
        scaling = self._diagonal**-POWER
        return lambda v: scaling * v

    @cached_property
    def _diagonal(self) -> FloatArray:
        """The diagonal of the Hessian, as if attributes met every label independently of the rest."""
        o, sums = self.objective, self.sums
        w = np.repeat(o.weights, np.diff(o.features.offsets))[:, None]
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

    def bound(self, radius: float = np.inf) -> LineBound:
        """A quadratic above the objective on this half-line, tightest for steps up to `radius`."""
        return line_bound(self.origin, self.direction, self.image, radius)
