"""Mini-batches of a likelihood whose classes are known, with what each example may contribute to the curvature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray
from ...objectives.batches import SAMPLE
from ..bounds.accumulate import WHOLE_LIMIT, CurvatureSum
from ..bounds.potential import OuterCurvature, SumCurvature, potential_curvature
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import DenseLinear
from .batches import ROWS_PER_COLUMN, Batches

#: Operations that the whole curvature may cost before it is taken from a sample.
MOST_OPERATIONS = 2e9
#: Square root of the part of squared gradients that is added to the Hessian where it has to last.
LASTING = 0.5
#: Directions that leverages are estimated from: their relative error is about a third.
DRAWS = 16
#: Largest eigenvalue that the curvature of one example can have, of one potential and of one for each label.
HIGHEST_BINARY, HIGHEST = 0.25, 0.5


class LeveragedBatches(Batches[Any]):
    """See `LeveragedSource`. The likelihood has no linear term."""

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
            count = min(n, max(SAMPLE, ROWS_PER_COLUMN * features.n_columns, int(n * MOST_OPERATIONS / operations)))
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
        table = self.room()
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
        return np.asarray(np.arange(hi - lo + 1) * features.n_outputs, dtype=np.int64)
