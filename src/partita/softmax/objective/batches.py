"""A likelihood of labels as a stream of mini-batches in random order: views of a copy of the data in that order."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from ...core.results import FloatArray
from ...objectives.batches import SAMPLE, ShuffledExamples
from ..bounds.accumulate import CurvatureSum
from ..bounds.potential import potential_curvature
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import DenseLinear
from ..features.rows import RowBlocks
from .base import SoftmaxObjective

#: Sampled rows per column for curvature that is estimated from a sample.
ROWS_PER_COLUMN = 5

ObjectiveT = TypeVar("ObjectiveT", bound=SoftmaxObjective[Any])


class Batches(ShuffledExamples[FloatArray, slice], Generic[ObjectiveT]):
    """Shuffled examples of a likelihood; residuals are one number for each example and label."""

    def __init__(self, objective: ObjectiveT, random_state: Any = None, validation: float = 0.0) -> None:
        super().__init__(objective, objective.weights, objective.penalty, random_state, validation, objective.slope)
        self.parent = objective
        self._held = _Part(objective, self.held) if len(self.held) else None
        self._train = _Part(objective, self.order)
        self._w = self._train.w

    def room(self) -> FloatArray:
        features = self.parent.features
        if isinstance(features, LabelFeatures):
            return np.zeros(int(features.counts[self.order].sum()))
        return np.zeros((self.n_examples, features.n_outputs))

    def places(self, lo: int, hi: int) -> slice:
        if isinstance(self.parent.features, LabelFeatures):
            return slice(int(self._train.blocks.first[lo]), int(self._train.blocks.first[hi]))
        return slice(lo, hi)

    def loss(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, FloatArray]:
        return self._train.loss(theta, lo, hi)

    def gradient(self, residual: FloatArray, lo: int, hi: int) -> FloatArray:
        features = self._train.blocks.block(lo, hi)
        if isinstance(features, LinearMap):
            flat = features.adjoint(residual.astype(features.dtype, copy=False)).astype(np.float64, copy=False)
            features.remove_mean(flat)
            return np.asarray(flat)
        return np.asarray(features.adjoint(residual))

    def problem(self, lo: int, hi: int) -> ObjectiveT:
        """The likelihood of a batch with its share of the penalty."""
        share = self.weight(lo, hi) / self.scale
        rows = self.order[lo:hi]
        structure = self.parent.structure.take(rows)
        return self.parent.of_rows(rows, self._train.blocks.block(lo, hi), structure, share * self.penalty)

    def curvature(self, rank: int | None = None, method: str = "exact") -> CurvatureSum:
        """An empty sum of curvature."""
        return CurvatureSum(self._train.blocks.block(0, min(1, self.n_examples)), rank, method)

    def add_curvature(self, total: CurvatureSum, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add the curvature of `kind` of a batch at theta: that of the log-partition functions."""
        structure, u = self._train.scores(theta, lo, hi)
        potential = potential_curvature(structure, u, self._w[lo:hi], kind, self.parent.workers)
        total.add(self._train.blocks.block(lo, hi), potential, factor)

    @property
    def sample_size(self) -> int:
        features = self.parent.features
        columns = features.n_columns if isinstance(features, LinearMap) else features.size
        return max(SAMPLE, ROWS_PER_COLUMN * columns)

    def held_loss(self, theta: FloatArray) -> float:
        assert self._held is not None
        return self._held.loss(theta, 0, len(self.held))[0]


class _Part:
    """Some examples of a likelihood, copied in their order."""

    def __init__(self, objective: SoftmaxObjective[Any], order: Any) -> None:
        self.objective, self.order = objective, order
        self.blocks = RowBlocks(objective.features, order)
        self.y, self.w = objective.y[order], objective.weights[order]

    def scores(self, theta: FloatArray, lo: int, hi: int) -> tuple[Any, FloatArray]:
        """The structure and the scores, base measure included, of the examples lo..hi."""
        structure = self.objective.structure.take(self.order[lo:hi])
        features = self.blocks.block(lo, hi)
        if isinstance(features, DenseLinear):
            theta = theta.astype(features.dtype, copy=False)
        u = np.asarray(features.forward(theta), dtype=np.float64)
        return structure, u + structure.offset if self.objective.has_offset else u

    def loss(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, FloatArray]:
        """Their loss, and its gradient in the scores."""
        structure, u = self.scores(theta, lo, hi)
        return self.objective.loss_of(self.order[lo:hi], structure, u)
