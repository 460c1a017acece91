"""Sums of curvature over mini-batches, in the richest form that stays cheap, and solves with them.

Forms:

- ``"dense"``: the whole matrix, for few parameters.
- ``"shared"``: one Gram matrix for all labels. ``S_i <= s_i I`` with s_i its `peak` gives
  ``sum S_i (x) x x' <= I (x) sum s_i x x'``: still an upper bound, with one matrix as wide as X.
- ``"diagonal"``: for many columns.
- ``"low_rank"``: the exact streaming update of `StreamingLowRank`.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.linalg import solve_triangular

from ...core.parallel import Workers
from ...core.results import FloatArray
from ...numerics import dense
from ...numerics.linalg import CholeskyFactor
from ...objectives.bounds.low_rank import LowRank, StreamingLowRank
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import DenseLinear
from .low_rank import outer_roots
from .potential import PotentialCurvature
from .quadratic import curvature_matrix

#: Parameters up to which the whole matrix is kept, and columns up to which one Gram matrix is.
DENSE_LIMIT, SHARED_LIMIT = 300, 2000
#: Parameters up to which the whole matrix is worth its price to solvers that need no other form.
WHOLE_LIMIT = 1000
#: Part of the diagonal that is added to it before inverting.
FLOOR = 1e-10
#: Steps by a diagonal: in units of the longest that is safe on a plain quadratic, and at most. Chosen on chains.
CUSHION, MOST_CUSHION = 2.0, 3.0
#: Columns from which the inverse is kept in single precision.
SINGLE_FROM = 200


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
    dense_limit : int
        Parameters up to which the whole matrix is kept.
    """

    def __init__(
        self,
        features: LinearMap | LabelFeatures,
        rank: int | None = None,
        method: str = "exact",
        dense_limit: int = DENSE_LIMIT,
    ) -> None:
        self.size: int | Any = features.size
        self.workers: Workers = features.workers
        self.columns: Any | None = features.columns() if isinstance(features, LinearMap) else None
        self.sum: FloatArray = np.zeros(0)
        self.cushion: float = 1.0  # how far the form lies above the curvature it sums, about
        if rank is not None:
            self.form: str = "low_rank"
            self.stream: StreamingLowRank = StreamingLowRank(self.size, rank, method)
        elif self.size <= dense_limit or self.columns is None:
            self.form = "dense"
            self.sum = np.zeros((self.size, self.size))
        elif self.columns.shape[1] <= SHARED_LIMIT:
            self.form = "shared"
            self.cushion = 1.0 if len(self.columns) == 1 else 2.0
            self.sum = np.zeros((self.columns.shape[1], self.columns.shape[1]))
        else:
            self.form = "diagonal"
            self.sum = np.zeros(self.size)
        self._squares, self._counts = np.zeros(self.size), np.zeros(self.size)
        self._inverse: Any = None
        self._root: tuple[FloatArray, FloatArray] | None = None  # R and s, where the inverse is diag(s) (R'R)^-1 diag(s)

    @property
    def is_whole(self) -> bool:
        """Whether nothing but the curvature is in it: the whole matrix, or the Gram matrix of the only label."""
        return self.form == "dense" or (self.form == "shared" and self.columns is not None and bool(len(self.columns) == 1))

    def copy(self) -> CurvatureSum:
        """One that can be added to while this one stays as it is."""
        twin = copy.copy(self)
        if self.form == "low_rank":
            twin.stream = self.stream.copy()
        return twin

    def decay(self, factor: float) -> None:
        """Multiply the sum by a factor."""
        if self.form == "low_rank":
            self.stream.decay(factor)
        else:
            self.sum = factor * self.sum

    def add(self, features: Any, potential: PotentialCurvature, factor: float = 1.0) -> None:
        """Add ``factor A' S A`` of some examples."""
        squares, counts = features.magnitudes()
        self._squares, self._counts = self._squares + squares, self._counts + counts
        if self.form == "low_rank":
            for rows in outer_roots(features, potential):
                self.stream.add(np.sqrt(factor) * rows)
        elif self.form == "dense":
            self.sum = self.sum + factor * curvature_matrix(features, potential)
        elif self.form == "shared":
            self.sum = self.sum + factor * _gram(features, potential.peak())
        else:
            diagonal = potential.diagonal().reshape(features.n_examples, -1)
            self.sum = self.sum + factor * features.squared(diagonal)

    def raise_diagonal(self, diagonal: FloatArray) -> None:
        """Add to the diagonal of a whole sum what it lacks to another."""
        lacking = np.maximum(diagonal - self._diagonal(), 0.0)
        lacking = lacking if self.form == "dense" or self.columns is None else lacking[self.columns[0]]
        self.sum.flat[:: len(self.sum) + 1] += lacking

    def _diagonal(self) -> FloatArray:
        """The diagonal of the sum, one entry per parameter."""
        if self.form == "low_rank":
            return np.asarray(self.stream.S @ self.stream.V**2 + self.stream.D)
        if self.form == "diagonal":
            return self.sum
        if self.form == "dense" or self.columns is None:
            return np.diag(self.sum)
        diagonal = np.zeros(self.size)
        diagonal[self.columns] = np.diag(self.sum)
        return diagonal

    def _damping(self, batch_size: float) -> FloatArray:
        """A diagonal about as large as the largest eigenvalue of the curvature of `batch_size` examples scaled to all.

        In units in which every column's non-zero entries have mean square one, that is ``sum_i s_i |x_i|^2 / batch_size``,
        with s_i the peak of S_i (twice its mean, where only the sum over labels is known). Those units make it follow any
        rescaling of the columns.
        """
        labels = 1 if self.columns is None else len(self.columns)
        share = 2.0 / labels if labels > 1 and self.form != "shared" else 1.0 / labels
        return damping_diagonal(self._diagonal(), self._squares, self._counts, share / batch_size)

    def prepare(self, penalty: FloatArray, batch_size: float | None = None, damping: float = 0.0) -> None:
        """Invert the sum plus ``diag(penalty)`` plus a multiple of the damping for batches of a size."""
        total = penalty if batch_size is None or damping == 0.0 else penalty + damping * self._damping(batch_size)
        total = total + floor(self._diagonal())
        if self.form == "low_rank":
            V, S = self.stream.V.copy(), self.stream.S.copy()
            self._inverse = LowRank(np.zeros(self.size), 0.0, np.zeros(self.size), V, S, self.stream.D + total)
        elif self.form == "diagonal":
            self._inverse = 1.0 / (self.sum + total)
        else:
            matrix = self.sum.copy()
            shared = self.form == "shared" and self.columns is not None
            matrix.flat[:: len(matrix) + 1] += total[self.columns[0]] if shared else total  # type: ignore[index]
            scale = 1.0 / np.sqrt(np.diag(matrix))
            factor = CholeskyFactor(scale[:, None] * matrix * scale)
            inverse = factor.solve(np.diag(scale))
            inverse *= scale[:, None]
            inverse = np.ascontiguousarray(inverse)
            self._root = (factor.factor, scale) if self.is_whole else None
            single = shared and len(scale) > (WHOLE_LIMIT if self.is_whole else SINGLE_FROM)
            self._inverse = inverse.astype(np.float32) if single else inverse

    def directions(self, count: int, rng: np.random.Generator) -> FloatArray:
        """Rows drawn from the normal distribution whose covariance is the inverse that was prepared; of a whole sum only."""
        if self._root is None:
            raise ValueError(f"directions are drawn from a whole matrix that was prepared; this sum is {self.form}")
        factor, scale = self._root
        draws = solve_triangular(factor, rng.standard_normal((len(scale), count)), lower=False).T * scale
        if self.form == "dense" or self.columns is None:
            return np.asarray(np.ascontiguousarray(draws))
        out: FloatArray = np.empty_like(draws)
        out[:, self.columns[0]] = draws
        return out

    def solve(self, vector: FloatArray) -> FloatArray:
        """The vector times the inverse that was prepared."""
        if self.form == "low_rank":
            return np.asarray(self._inverse.solve(vector))
        if self.form == "diagonal":
            return np.asarray(self._inverse * vector)
        if self.form == "dense" or self.columns is None:
            return np.asarray(self._inverse @ vector)
        labels, width = self.columns.shape
        rows = vector[self.columns].astype(self._inverse.dtype)
        product = np.empty((width, labels), rows.dtype)  # the inverse is symmetric: its rows serve as columns
        arguments = (self._inverse, rows, np.zeros(labels, rows.dtype))
        ranges = self.workers.ranges(width, float(labels) * width * width)
        self.workers.run(dense.forward, [(*arguments, lo, hi, product) for lo, hi in ranges])
        out = np.empty_like(vector)
        out[self.columns] = product.T
        return out


def damping_diagonal(diagonal: FloatArray, squares: FloatArray, counts: FloatArray, share: float) -> FloatArray:
    """``share`` times the trace, in units in which every column's non-zero entries have mean square one."""
    unit = squares / np.maximum(counts, 1.0)
    known = unit > 0.0
    unit = np.where(known, unit, 1.0)
    return np.asarray(share * float((diagonal / unit)[known].sum()) * unit)


def floor(diagonal: FloatArray) -> FloatArray:
    """What is added to a diagonal before it is inverted."""
    return FLOOR * np.maximum(diagonal, max(FLOOR * float(diagonal.mean()), 1e-300))


class DiagonalSum:
    """A running sum of diagonals of curvature, for maps that know no matrices.

    Parameters
    ----------
    squares, counts : arrays of shape (size,)
        Sum of squares and number of the entries that are not zero, of the column of each parameter.
    labels : int
        Number of labels.
    """

    def __init__(self, squares: FloatArray, counts: FloatArray, labels: int) -> None:
        self.sum: FloatArray = np.zeros(len(squares))
        self._squares, self._counts, self._labels = squares, counts, labels
        self._inverse = self.sum
        self.cushion: float = MOST_CUSHION

    def copy(self) -> DiagonalSum:
        """One that can be added to while this one stays as it is."""
        return copy.copy(self)

    def decay(self, factor: float) -> None:
        """Multiply the sum by a factor."""
        self.sum = factor * self.sum

    def add(self, diagonal: FloatArray, factor: float = 1.0, ratio: float = 0.0) -> None:
        """Add ``factor`` times a diagonal, of which the curvature is at most `ratio` times."""
        self.sum = self.sum + factor * diagonal
        self.cushion = min(MOST_CUSHION, CUSHION / max(ratio, 1e-300))

    def prepare(self, penalty: FloatArray, batch_size: float | None = None, damping: float = 0.0) -> None:
        """See `CurvatureSum.prepare`."""
        total = penalty + floor(self.sum)
        if batch_size is not None and damping > 0.0:
            share = 2.0 / (self._labels * batch_size)
            total = total + damping * damping_diagonal(self.sum, self._squares, self._counts, share)
        self._inverse = 1.0 / (self.sum + total)

    def solve(self, vector: FloatArray) -> FloatArray:
        """The vector times the inverse that was prepared."""
        return np.asarray(self._inverse * vector)


def _gram(features: LinearMap, weights: FloatArray) -> FloatArray:
    """`features.gram`, for dense X with one thread to a run of rows: BLAS has one thread while batches are small."""
    if not isinstance(features, DenseLinear):
        return features.gram(weights)
    ranges = features.workers.ranges(features.n_examples, 0.5 * features.X.size * features.n_columns)
    parts = [(DenseLinear(features.X[lo:hi], features.n_outputs, features.intercept), weights[lo:hi]) for lo, hi in ranges]
    return np.asarray(sum(features.workers.run(DenseLinear.gram, parts)), dtype=np.float64)
