"""Feature maps in a new order of the examples, seen a block of rows at a time: what mini-batches are made of."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray
from ...numerics import sparse
from .labels import LabelFeatures
from .linear import LinearMap
from .linear_layouts import DenseLinear, SparseLinear

#: Entries of dense X from which a shuffled copy is made in single precision.
SINGLE_FROM = 1_000_000


class SparseRows(SparseLinear):
    """Some rows of a CSR matrix, sharing its arrays; the adjoint scatters instead of keeping a transposed copy."""

    def __init__(self, data: Any, indices: Any, indptr: Any, like: SparseLinear) -> None:
        LinearMap.__init__(self, (len(indptr) - 1, like.n_columns), like.n_outputs, like.intercept, like.workers)
        self.rows: tuple[Any, Any, Any] = (data, indices, indptr)
        self.nnz: int = len(data)
        self._row_ranges = [(0, self.n_examples)]

    def _adjoint(self, data: FloatArray, r: FloatArray) -> FloatArray:
        out = np.zeros(self.size)
        G = out[: self.n_coefficients].reshape(self.n_columns, self.n_outputs)
        sparse.scatter(data, *self.rows[1:], r, 0, self.n_examples, G)
        if self.intercept:
            out[self.n_coefficients :] = r.sum(0)
        return out

    def adjoint(self, r: FloatArray) -> FloatArray:
        return self._adjoint(self.rows[0], np.ascontiguousarray(r))

    def squared(self, r: FloatArray) -> FloatArray:
        return self._adjoint(self.rows[0] ** 2, np.ascontiguousarray(r))


class RowBlocks:
    """The examples `order` of a feature map, copied once in that order; `block` gives a map of consecutive ones.

    Large dense X is copied in single precision: mini-batch gradients need no more.
    """

    def __init__(self, features: LinearMap | LabelFeatures, order: Any) -> None:
        self.features = features
        self.n_examples: int = len(order)
        self._kept: dict[tuple[int, int], Any] = {}
        if isinstance(features, DenseLinear):
            source = features.single() if features.X.size >= SINGLE_FROM else features
            self._X = source.X[order]
        elif isinstance(features, SparseLinear):
            X = features.matrix[order]
            index = features.rows[1].dtype
            self._csr = (X.data, X.indices.astype(index), X.indptr.astype(np.uint64))
        else:
            assert isinstance(features, LabelFeatures)
            first = np.concatenate(([0], np.cumsum(features.counts)))
            self._counts = features.counts[order]
            rows = [np.arange(first[i], first[i + 1]) for i in order]
            self._F = features.F[np.concatenate(rows)] if rows else features.F[:0]
            self.first: NDArray[Any] = np.concatenate(([0], np.cumsum(self._counts)))

    def block(self, lo: int, hi: int) -> Any:
        """The map of the examples lo..hi (kept: mini-batches come back every epoch)."""
        if (lo, hi) not in self._kept:
            self._kept[lo, hi] = self._make(lo, hi)
        return self._kept[lo, hi]

    def _make(self, lo: int, hi: int) -> Any:
        features = self.features
        if isinstance(features, DenseLinear):
            return DenseLinear(self._X[lo:hi], features.n_outputs, features.intercept, features.workers)
        if isinstance(features, SparseLinear):
            data, indices, indptr = self._csr
            own = indptr[lo : hi + 1]
            inside = slice(int(own[0]), int(own[-1]))
            return SparseRows(data[inside], indices[inside], own - own[0], features)
        rows = slice(self.first[lo], self.first[hi])
        return LabelFeatures(self._F[rows], self._counts[lo:hi], features.workers)
