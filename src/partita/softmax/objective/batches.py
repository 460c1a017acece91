"""A likelihood as a stream of mini-batches in random order."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np

from ...core.random import generator
from ...core.results import FloatArray
from ..bounds.accumulate import CurvatureSum
from ..bounds.potential import potential_curvature
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import DenseLinear
from ..features.rows import RowBlocks
from .base import SoftmaxObjective

#: Sampled rows per column for curvature that is estimated from a sample.
ROWS_PER_COLUMN = 5
#: Fewest rows of such a sample.
FEWEST_ROWS = 1000

ObjectiveT = TypeVar("ObjectiveT", bound=SoftmaxObjective[Any])


class Batches(Generic[ObjectiveT]):
    """Shuffled examples of a likelihood, some of them held out.

    Attributes
    ----------
    n_examples : int
        Examples to train on.
    penalty : array of shape (size,)
        The training part's share of the penalty.
    scale : float
        The total weight of the training part.
    """

    def __init__(self, objective: ObjectiveT, random_state: Any = None, validation: float = 0.0) -> None:
        self.parent = objective
        self.rng: np.random.Generator = generator(random_state)
        order = self.rng.permutation(np.flatnonzero(objective.weights))
        held = round(validation * len(order))
        if held >= len(order):
            raise ValueError(f"validation={validation!r} leaves no example to train on")
        self.size: int = objective.size
        self._held = _Part(objective, order[:held]) if held else None
        self._train = _Part(objective, order[held:])
        self._w = self._train.w
        self.n_examples: int = len(self._w)
        self.scale: float = float(self._w.sum())
        self.penalty: FloatArray = objective.penalty * (self.scale / float(objective.weights.sum()))

    def shuffled(self, batch_size: int) -> list[tuple[int, int]]:
        """The mini-batches of one epoch in random order."""
        edges = np.linspace(0, self.n_examples, max(1, round(self.n_examples / batch_size)) + 1).astype(int).tolist()
        return [(edges[b], edges[b + 1]) for b in self.rng.permutation(len(edges) - 1)]

    def weight(self, lo: int, hi: int) -> float:
        """The total weight of a batch."""
        return float(self._w[lo:hi].sum())

    def table(self) -> FloatArray:
        """Room for the residual of every example."""
        features = self.parent.features
        if isinstance(features, LabelFeatures):
            return np.zeros(int(features.counts[self._train.order].sum()))
        return np.zeros((self.n_examples, features.n_outputs))

    def slots(self, lo: int, hi: int) -> slice:
        """Where the examples lo..hi are in the table."""
        if isinstance(self.parent.features, LabelFeatures):
            return slice(int(self._train.blocks.first[lo]), int(self._train.blocks.first[hi]))
        return slice(lo, hi)

    def evaluate(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, FloatArray]:
        """The loss of a batch, without the penalty, and its gradient in the scores."""
        structure, u = self._train.scores(theta, lo, hi)
        loss, _, residual = structure.loss(u, self._train.y[lo:hi], self._w[lo:hi], self.parent.workers)
        return loss, residual

    def pull_back(self, residual: FloatArray, lo: int, hi: int) -> FloatArray:
        """The gradient in the parameters of a batch's gradient in the scores."""
        features = self._train.blocks.block(lo, hi)
        if isinstance(features, LinearMap):
            flat = features.adjoint(residual.astype(features.dtype, copy=False)).astype(np.float64, copy=False)
            features.remove_mean(flat)
            return np.asarray(flat)
        return np.asarray(features.adjoint(residual))

    def problem(self, lo: int, hi: int) -> ObjectiveT:
        """The likelihood of a batch with its share of the penalty."""
        o = self.parent
        share = self.weight(lo, hi) / self.scale
        structure = o.structure.take(self._train.order[lo:hi])
        features = self._train.blocks.block(lo, hi)
        return type(o)(features, structure, self._train.y[lo:hi], weights=self._w[lo:hi], penalty=share * self.penalty)

    def curvature(self, rank: int | None = None, method: str = "exact") -> CurvatureSum:
        """An empty sum of curvature."""
        return CurvatureSum(self._train.blocks.block(0, min(1, self.n_examples)), rank, method)

    def add_curvature(self, total: CurvatureSum, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add the curvature of `kind` of a batch at theta."""
        structure, u = self._train.scores(theta, lo, hi)
        potential = potential_curvature(structure, u, self._w[lo:hi], kind, self.parent.workers)
        total.add(self._train.blocks.block(lo, hi), potential, factor)

    def sample_rows(self) -> tuple[int, int]:
        """A random run of examples, enough to estimate curvature from."""
        features = self.parent.features
        columns = features.n_columns if isinstance(features, LinearMap) else features.size
        count = min(self.n_examples, max(FEWEST_ROWS, ROWS_PER_COLUMN * columns))
        start = int(self.rng.integers(0, self.n_examples - count + 1))
        return start, start + count

    def held_out(self, theta: FloatArray) -> float | None:
        """The loss of the held-out examples, scaled to the training part; None if there are none."""
        if self._held is None:
            return None
        part = self._held
        structure, u = part.scores(theta, 0, len(part.y))
        loss, _, _ = structure.loss(u, part.y, part.w, self.parent.workers)
        return float(loss * self.scale / part.w.sum())


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
