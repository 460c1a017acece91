"""Sums of curvature over mini-batches, in the richest form that stays cheap, and solves with them.

Forms:

- ``"dense"``: the whole matrix, for few parameters.
- ``"shared"``: one Gram matrix for all labels. ``S_i <= s_i I`` with s_i its `peak` gives
  ``sum S_i (x) x x' <= I (x) sum s_i x x'``: still an upper bound, with one matrix as wide as X.
- ``"diagonal"``: for many columns.
- ``"low_rank"``: the exact streaming update of `StreamingLowRank`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.results import FloatArray
from ..features import LabelFeatures, LinearMap
from ..kernels.linalg import CholeskyFactor
from .dense import curvature_matrix
from .low_rank import LowRank, StreamingLowRank, outer_roots
from .potential import PotentialCurvature

#: Parameters up to which the whole matrix is kept, and columns up to which one Gram matrix is.
DENSE_LIMIT, SHARED_LIMIT = 300, 2000
#: Smallest diagonal of what is inverted, relative to its mean.
FLOOR = 1e-10


class CurvatureSum:
    """A running sum of ``A' S A``.

    Parameters
    ----------
    features : LinearMap or LabelFeatures
        A map with the layout of those that will be added.
    rank : int, optional
        Keep a low-rank form with so many directions.
    method : {"exact", "corrected", "original"}
        The streaming update of the low-rank form.
    """

    def __init__(self, features: LinearMap | LabelFeatures, rank: int | None = None, method: str = "exact") -> None:
        self.size = features.size
        self.workers = features.workers
        self.columns = features.columns() if isinstance(features, LinearMap) else None
        self.sum: FloatArray = np.zeros(0)
        self.cushion = 1.0  # how far the form lies above the curvature it sums, about
        if rank is not None:
            self.form = "low_rank"
            self.stream = StreamingLowRank(self.size, rank, method)
        elif self.size <= DENSE_LIMIT or self.columns is None:
            self.form = "dense"
            self.sum = np.zeros((self.size, self.size))
        elif self.columns.shape[1] <= SHARED_LIMIT:
            self.form = "shared"
            self.cushion = 1.0 if len(self.columns) == 1 else 2.0
            self.sum = np.zeros((self.columns.shape[1], self.columns.shape[1]))
        else:
            self.form = "diagonal"
            self.sum = np.zeros(self.size)
        self._inverse: Any = None

    def decay(self, factor: float) -> None:
        """Multiply the sum by a factor."""
        if self.form == "low_rank":
            self.stream.decay(factor)
        else:
            self.sum *= factor

    def add(self, features: Any, potential: PotentialCurvature, factor: float = 1.0) -> None:
        """Add ``factor A' S A`` of some examples."""
        if self.form == "low_rank":
            for rows in outer_roots(features, potential):
                self.stream.add(np.sqrt(factor) * rows)
        elif self.form == "dense":
            self.sum += factor * curvature_matrix(features, potential)
        elif self.form == "shared":
            self.sum += factor * features.gram(potential.peak())
        else:
            diagonal = potential.diagonal().reshape(features.n_examples, -1)
            self.sum += factor * features.squared(diagonal)

    def trace(self) -> float:
        """``sum_i s_i |x_i|^2`` with s_i the peak of S_i (exactly for the shared form, else by twice the mean of S_i)."""
        if self.form == "shared":
            return float(np.trace(self.sum))
        labels = 1 if self.columns is None else len(self.columns)
        share = 1.0 if labels == 1 else 2.0 / labels
        if self.form == "low_rank":
            return share * float(self.stream.S.sum() + self.stream.D.sum())
        return share * float(np.trace(self.sum) if self.form == "dense" else self.sum.sum())

    def prepare(self, penalty: FloatArray, damping: float) -> None:
        """Invert the sum plus ``diag(penalty) + damping I`` for the solves that follow."""
        if self.form == "low_rank":
            V, S, D = self.stream.V, self.stream.S, self.stream.D
            D = D + penalty + damping
            D = np.maximum(D, FLOOR * (D.mean() + S.max(initial=0.0)))
            self._inverse = LowRank(np.zeros(self.size), 0.0, np.zeros(self.size), V.copy(), S.copy(), D)
        elif self.form == "diagonal":
            total = self.sum + penalty + damping
            self._inverse = 1.0 / np.maximum(total, FLOOR * total.mean())
        else:
            matrix = self.sum.copy()
            matrix.flat[:: len(matrix) + 1] += damping + (
                penalty if self.form == "dense" or self.columns is None else penalty[self.columns[0]]
            )
            matrix.flat[:: len(matrix) + 1] += FLOOR * np.trace(matrix) / len(matrix)
            inverse = CholeskyFactor(matrix).solve(np.eye(len(matrix)))
            self._inverse = inverse.astype(np.float32) if self.form == "shared" else inverse

    def solve(self, vector: FloatArray) -> FloatArray:
        """The vector times the inverse that was prepared."""
        if self.form == "low_rank":
            return np.asarray(self._inverse.solve(vector))
        if self.form == "diagonal":
            return np.asarray(self._inverse * vector)
        if self.form == "dense" or self.columns is None:
            return np.asarray(self._inverse @ vector)
        labels, width = self.columns.shape
        rows, product = vector[self.columns].astype(np.float32), np.empty((labels, width), np.float32)
        ranges = self.workers.ranges(width, float(labels) * width * width)
        self.workers.run(_columns_of_product, [(rows, self._inverse, lo, hi, product) for lo, hi in ranges])
        out = np.empty_like(vector)
        out[self.columns] = product
        return out


def _columns_of_product(A: Any, B: Any, lo: int, hi: int, out: Any) -> None:
    out[:, lo:hi] = A @ B[:, lo:hi]
