"""What majorization asks of the likelihood of chains: a quadratic above it, and its value within a plane."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, TypeVar

import numpy as np

from ...core.results import FloatArray
from ...softmax import PartitionBound
from ..bounds import DenseChains, LineBound, chain_bound, line_curvatures
from ..features.chain import ChainFeatures
from .base import ChainObjectivePoint

#: Parameters and operations up to which a bound is formed as a matrix: half a second. Lines are far cheaper.
DENSE_PARAMETERS, DENSE_OPERATIONS = 300, 1e9
#: Labels up to which curvatures are joined by positive parts, not summed.
POSITIVE_LABELS = 5

P = TypeVar("P", bound=ChainObjectivePoint)


def is_dense(features: ChainFeatures) -> bool:
    """Whether the quadratic above log Z is the one that is formed as a matrix: a little tighter, for few parameters."""
    operations = float(features.n_positions) * (features.n_labels * features.size) ** 2
    return features.size <= DENSE_PARAMETERS and operations <= DENSE_OPERATIONS


def dense_chains(features: ChainFeatures) -> DenseChains:
    """The features written out, one parameter after the other."""
    n, d = features.n_labels, features.size
    unary, pairs = np.empty((features.n_positions, n, d)), np.empty((n, n, d))
    for j, unit in enumerate(np.eye(d)):
        unary[:, :, j], pairs[:, :, j] = features.forward(unit)
    return DenseChains(unary, pairs, features.offsets)


def quadratic_bound(point: ChainObjectivePoint, dense: DenseChains, kind: str) -> PartitionBound:
    """A quadratic above the objective that touches it at `point`; `dense` are the features, written out."""
    o = point.objective
    upper = "positive" if o.features.n_labels <= POSITIVE_LABELS else "sum"
    loss = chain_bound(dense, point.parameters, weights=o.weights, bound=kind, upper=upper, scores=point.scores)
    loss.curvature.flat[:: o.size + 1] += o.penalty
    return PartitionBound(point.parameters, point.value, point.gradient, loss.curvature)


def line_bound(
    point: ChainObjectivePoint, direction: FloatArray, image: tuple[FloatArray, FloatArray], radius: float
) -> LineBound:
    """A quadratic above the objective on the half-line from `point`; `image` are the scores of `direction`. Tightest for
    steps up to `radius`."""
    o = point.objective
    slope, penalty = float((point.gradient * direction).sum()), float((o.penalty * direction**2).sum())
    parts = line_curvatures(point.scores, image, o.features.offsets, radius, point.sums.ranges, o.workers)
    return LineBound(slope, penalty, o.weights, radius, *parts)


class ChainSubspace(Generic[P]):
    """The objective on a point plus the span of a few directions; no products with the data."""

    def __init__(self, origin: P, directions: Sequence[FloatArray], momentum: bool) -> None:
        self.origin = origin
        last = origin.came_by if momentum else None
        basis = [*directions] if last is None else [*directions, last]
        self.basis: FloatArray = np.array(basis)
        self.images: list[tuple[FloatArray, FloatArray]] = [
            origin.objective.features.forward(direction) for direction in basis
        ]

    @property
    def dimension(self) -> int:
        return len(self.basis)

    def _scores(self, coordinates: FloatArray) -> tuple[FloatArray, FloatArray]:
        U, A = self.origin.scores
        for c, (dU, dA) in zip(coordinates, self.images, strict=True):
            U, A = U + c * dU, A + c * dA
        return U, A

    def evaluate(self, coordinates: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and Hessian in the coordinates."""
        o, point = self.origin.objective, self.at(coordinates)
        gradient = self._inner(*point.residual()) + self.basis @ (o.penalty_gradient(point.parameters) - o.observed)
        hessian = np.array([self._inner(*point.residual_change(*image)) for image in self.images])
        return point.value, gradient, hessian + (self.basis * o.penalty) @ self.basis.T

    def _inner(self, R: FloatArray, C: FloatArray) -> FloatArray:
        return np.array([float(np.vdot(R, dU)) + float(np.vdot(C, dA)) for dU, dA in self.images])

    def at(self, coordinates: FloatArray) -> P:
        step = coordinates @ self.basis
        point = type(self.origin)(self.origin.objective, self.origin.parameters + step, self._scores(coordinates))
        point.came_by = step
        return point
