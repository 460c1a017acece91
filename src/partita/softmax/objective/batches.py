"""A likelihood as a stream of mini-batches in random order."""

from __future__ import annotations

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.random import generator
from ...core.results import FloatArray
from ..bounds.accumulate import WHOLE_LIMIT, CurvatureSum
from ..bounds.potential import OuterCurvature, SumCurvature, potential_curvature
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import DenseLinear
from ..features.rows import RowBlocks
from .base import SoftmaxObjective

#: Sampled rows per column for curvature that is estimated from a sample.
ROWS_PER_COLUMN = 5
#: Fewest rows of such a sample.
FEWEST_ROWS = 1000
#: Operations that the whole curvature may cost before it is taken from a sample.
MOST_OPERATIONS = 2e9
#: Square root of the part of squared gradients that is added to the Hessian where it has to last.
LASTING = 0.5
#: Directions that leverages are estimated from: their relative error is about a third.
DRAWS = 16
#: Largest eigenvalue that the curvature of one example can have, of one potential and of one for each label.
HIGHEST_BINARY, HIGHEST = 0.25, 0.5

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

    def whole_curvature(self) -> CurvatureSum | None:
        """An empty sum that keeps the whole matrix, or None if that is too large."""
        total = CurvatureSum(self._train.blocks.block(0, min(1, self.n_examples)), dense_limit=WHOLE_LIMIT)
        return total if total.is_whole else None

    def add_lasting(self, total: CurvatureSum, theta: FloatArray) -> None:
        """Add the Hessian, and a quarter of the sum of squared gradients (the empirical Fisher information).

        Where a label is sure and wrong the Hessian vanishes, but not for long: any step that helps brings it back. The
        quarter is the most that it can then be; in the mean, under the model, the squares are the Hessian itself. Many
        examples are sampled; as a sample may miss what is rare, the diagonal is that of all.
        """
        n, features = self.n_examples, self._train.blocks.block(0, self.n_examples)
        count = n
        if isinstance(features, LinearMap):
            operations = 0.5 * features.n_outputs * (features.n_outputs + 1) * features.product_cost()[1]
            count = min(n, max(FEWEST_ROWS, ROWS_PER_COLUMN * features.n_columns, int(n * MOST_OPERATIONS / operations)))
        start = int(self.rng.integers(0, n - count + 1))
        sample = self._train.blocks.block(start, start + count)
        total.add(sample, self._lasting(theta, start, start + count), n / count)
        if count < n and isinstance(features, LinearMap):
            total.raise_diagonal(features.squared(self._lasting(theta, 0, n).diagonal().reshape(n, -1)))

    def _lasting(self, theta: FloatArray, lo: int, hi: int) -> SumCurvature:
        structure, u = self._train.scores(theta, lo, hi)
        w, edges, workers = self._w[lo:hi], self._edges(lo, hi), self.parent.workers
        _, _, residual = structure.loss(u, self._train.y[lo:hi], w, workers)
        d = LASTING * residual.ravel() / np.repeat(np.sqrt(w), np.diff(edges))
        return SumCurvature(potential_curvature(structure, u, w, "hessian", workers), OuterCurvature(d, edges, workers))

    def leverages(self, total: CurvatureSum) -> tuple[FloatArray, float]:
        """The weight of every example times the mean square of its scores, those of the observed labels taken off, along
        directions drawn from the inverse; and the largest, times the largest curvature that one example can have."""
        features = self._train.blocks.block(0, self.n_examples)
        table = self.table()
        edges = self._edges(0, self.n_examples)
        labels = np.diff(edges)
        single = isinstance(features, LinearMap) and features.n_outputs == 1
        for direction in total.directions(DRAWS, np.random.default_rng(0)):
            if isinstance(features, DenseLinear):
                direction = direction.astype(features.dtype, copy=False)
            u = np.asarray(features.forward(direction), dtype=np.float64).ravel()
            if not single:
                u = u - np.repeat(u[edges[:-1] + self._train.y], labels)
            table += (u * u).reshape(table.shape)
        table *= np.repeat(self._w / DRAWS, labels).reshape(table.shape)
        return table, (HIGHEST_BINARY if single else HIGHEST) * float(table.max())

    def restrained(
        self, change: FloatArray, residual: FloatArray, leverages: FloatArray, gain: float, lo: int, hi: int
    ) -> FloatArray:
        """The change over one plus `gain` times the curvature of each example along what leverages are of.

        With labels k and the observed y, ``u' S u <= sum_k p_k (u_k - u_y)^2``, and p_k is the residual; where it is large
        that is less, as in `add_lasting`.
        """
        w = self._w[lo:hi]
        if not isinstance(self.parent.features, LabelFeatures):
            p = np.abs(residual) / w[:, None]
            return np.asarray(change / (1.0 + gain * (leverages * p * (1.0 - 0.75 * p)).sum(1, keepdims=True)))
        edges = self._edges(lo, hi)
        labels = np.diff(edges)
        p = np.abs(residual) / np.repeat(w, labels)
        curved = np.add.reduceat(leverages * p * (1.0 - 0.75 * p), edges[:-1])
        return np.asarray(change / np.repeat(1.0 + gain * curved, labels))

    def _edges(self, lo: int, hi: int) -> NDArray[np.int64]:
        """Where the scores of the examples lo..hi begin among theirs, and the end."""
        features = self.parent.features
        if isinstance(features, LabelFeatures):
            return np.asarray(self._train.blocks.first[lo : hi + 1] - self._train.blocks.first[lo], dtype=np.int64)
        return np.arange(hi - lo + 1, dtype=np.int64) * features.n_outputs

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
