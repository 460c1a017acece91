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
        self._blocks = RowBlocks(objective.features, self.order)
        self._held_blocks = RowBlocks(objective.features, self.held) if len(self.held) else None

    def room(self) -> FloatArray:
        features = self.parent.features
        if isinstance(features, LabelFeatures):
            return np.zeros(int(features.counts[self.order].sum()))
        return np.zeros((self.n_examples, features.n_outputs))

    def places(self, lo: int, hi: int) -> slice:
        if isinstance(self.parent.features, LabelFeatures):
            return slice(int(self._blocks.first[lo]), int(self._blocks.first[hi]))
        return slice(lo, hi)

    def loss(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, FloatArray]:
        rows = self.order[lo:hi]
        structure, u = self._scores(self._blocks.block(lo, hi), rows, theta)
        return self.parent.loss_of(rows, structure, u)

    def gradient(self, residual: FloatArray, lo: int, hi: int) -> FloatArray:
        features = self._blocks.block(lo, hi)
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
        return self.parent.of_rows(rows, self._blocks.block(lo, hi), structure, share * self.penalty)

    def curvature(self, rank: int | None = None, method: str = "exact") -> CurvatureSum:
        """An empty sum of curvature."""
        return CurvatureSum(self._blocks.block(0, min(1, self.n_examples)), rank, method)

    def add_curvature(self, total: CurvatureSum, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add the curvature of `kind` of a batch at theta: that of the log-partition functions."""
        rows, features = self.order[lo:hi], self._blocks.block(lo, hi)
        structure, u = self._scores(features, rows, theta)
        potential = potential_curvature(structure, u, self.parent.weights[rows], kind, self.parent.workers)
        total.add(features, potential, factor)

    @property
    def sample_size(self) -> int:
        features = self.parent.features
        columns = features.n_columns if isinstance(features, LinearMap) else features.size
        return max(SAMPLE, ROWS_PER_COLUMN * columns)

    def held_loss(self, theta: FloatArray) -> float:
        assert self._held_blocks is not None
        structure, u = self._scores(self._held_blocks.block(0, len(self.held)), self.held, theta)
        return self.parent.loss_of(self.held, structure, u)[0]

    def _scores(self, features: Any, rows: Any, theta: FloatArray) -> tuple[Any, FloatArray]:
        """The structure and the scores, base measure included, of some examples."""
        structure = self.parent.structure.take(rows)
        if isinstance(features, DenseLinear):
            theta = theta.astype(features.dtype, copy=False)
        u = np.asarray(features.forward(theta), dtype=np.float64)
        return structure, u + structure.offset if self.parent.has_offset else u
