"""The layouts of linear maps: label by label for dense X, column by column for sparse X."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.arrays.sparse import sound_csr
from ...core.parallel import Workers
from ...core.results import FloatArray
from ...numerics import dense, sparse
from ...numerics.digest import digest
from .linear import LinearMap

#: Largest entries of X for which sums of squares stay in the range of float32.
SINGLE_RANGE = (1e-12, 1e12)
#: Bytes of X that one block of the fused product may take: half a core's second-level cache.
BLOCK_BYTES = 200_000


class DenseLinear(LinearMap):
    """Dense X, C-contiguous, float64 or float32."""

    def __init__(self, X: Any, n_outputs: int, intercept: bool, workers: Workers | None = None) -> None:
        X = np.asarray(X)
        if X.ndim != 2:
            raise ValueError(f"X must be a matrix, (examples, columns), got shape {X.shape}")
        self.X: Any = np.ascontiguousarray(X, dtype=np.float32 if X.dtype == np.float32 else np.float64)
        super().__init__(self.X.shape, n_outputs, intercept, workers or Workers(1))
        self.dtype: Any = self.X.dtype
        self._single: DenseLinear | None = None
        self._held = np.empty((0, self.n_examples))  # columns that `hold_columns` has copied, and where
        self._slots = np.full(self.n_columns + 1, -1)
        self._squares: DenseLinear | None = None

    def unpack(self, theta: Any) -> tuple[FloatArray, FloatArray]:
        return theta[: self.n_coefficients].reshape(self.n_outputs, self.n_columns), self._intercepts(theta)

    def pack(self, coefficients: Any, intercepts: Any) -> FloatArray:
        parts = [np.ravel(coefficients)] + ([np.ravel(intercepts)] if self.intercept else [])
        return np.concatenate(parts)

    def single(self) -> DenseLinear:
        """The same map in float32, for products that need no more: half the memory traffic. Itself if X does not fit."""
        if self._single is None:
            largest = max(float(self.X.max()), -float(self.X.min()))
            if not SINGLE_RANGE[0] < largest < SINGLE_RANGE[1]:
                return self
            self._single = DenseLinear(self.X.astype(np.float32), self.n_outputs, self.intercept, self.workers)
        return self._single

    def remove_mean(self, flat: FloatArray) -> None:
        if self.n_outputs > 1:
            coefficients, intercepts = self.unpack(flat)
            coefficients -= coefficients.mean(0)
            if self.intercept:
                intercepts -= intercepts.mean()

    def _ranges(self) -> list[tuple[int, int]]:
        return self.workers.ranges(self.n_examples, float(self.n_examples) * self.n_columns * self.n_outputs)

    def forward(self, theta: FloatArray) -> FloatArray:
        T, b = self.unpack(theta)
        U = np.empty((self.n_examples, self.n_outputs), self.X.dtype)
        self.workers.run(dense.forward, [(self.X, T, b, lo, hi, U) for lo, hi in self._ranges()])
        return U

    def _sum_parts(self, G: FloatArray, g: FloatArray) -> FloatArray:
        return self.pack(G[0] if len(G) == 1 else G.sum(0), g[0] if len(g) == 1 else g.sum(0))

    def _parts(self, count: int) -> tuple[FloatArray, FloatArray]:
        return (
            np.zeros((count, self.n_outputs, self.n_columns), self.X.dtype),
            np.zeros((count, self.n_outputs), self.X.dtype),
        )

    def adjoint(self, r: FloatArray) -> FloatArray:
        ranges = self._ranges()
        G, g = self._parts(len(ranges))
        self.workers.run(dense.adjoint, [(self.X, r, lo, hi, G[c], g[c]) for c, (lo, hi) in enumerate(ranges)])
        return self._sum_parts(G, g)

    def curvature_product(self, D: Any, top: Any, theta: FloatArray) -> FloatArray:
        """A' S(D) A theta for rank-one curvatures, in one pass over X and in X's precision."""
        dtype = self.X.dtype
        T, b = self.unpack(theta.astype(dtype, copy=False))
        ranges = self._ranges()
        G, g = self._parts(len(ranges))
        rows = max(64, BLOCK_BYTES // (dtype.itemsize * max(1, self.n_columns)) // 4 * 4)
        tasks = [
            (self.X, D, top, T, b, lo, hi, np.empty((min(rows, hi - lo), self.n_outputs), dtype), G[c], g[c])
            for c, (lo, hi) in enumerate(ranges)
        ]
        self.workers.run(dense.curvature_product, tasks)
        return self._sum_parts(G, g).astype(np.float64, copy=False)

    def curvature_block(self, product: Callable[[FloatArray], FloatArray], block: FloatArray) -> FloatArray:
        n, width = self.n_outputs, block.shape[1]
        T = block[: self.n_coefficients].reshape(n, self.n_columns, width)
        wide = T.transpose(1, 0, 2).reshape(self.n_columns, n * width).astype(self.X.dtype, copy=False)
        U = (self.X @ wide).astype(np.float64, copy=False)
        if self.intercept:
            U += block[self.n_coefficients :].ravel()
        _curve(product, U, width)
        out = np.empty((self.size, width))
        G = (self.X.T @ U.astype(self.X.dtype, copy=False)).reshape(self.n_columns, n, width)
        out[: self.n_coefficients] = G.transpose(1, 0, 2).reshape(-1, width)
        if self.intercept:
            out[self.n_coefficients :] = U.sum(0).reshape(n, width)
        if n > 1:  # see `remove_mean`
            for rows in (out[: self.n_coefficients].reshape(n, -1), out[self.n_coefficients :].reshape(-1, n, width)):
                rows -= rows.mean(0 if rows.ndim == 2 else 1, keepdims=True)
        return out

    def gram(self, w: FloatArray) -> FloatArray:
        d, p = self.n_columns, self.n_columns + self.intercept
        out = np.empty((p, p), self.X.dtype)
        if w.min() >= 0.0 or w.max() <= 0.0:
            Z = self.X * np.sqrt(np.abs(w)).astype(self.X.dtype)[:, None]
            np.multiply(Z.T @ Z, np.sign(w.sum()), out=out[:d, :d])  # recognised as symmetric: half the work
        else:
            out[:d, :d] = self.X.T @ (self.X * w[:, None])
        if self.intercept:
            out[d, :d] = out[:d, d] = w @ self.X
            out[d, d] = w.sum()
        return out

    def product_cost(self) -> tuple[float, float]:
        return 2.0 * self.n_outputs * self.X.size, 0.5 * self.X.size * (self.n_columns + self.intercept)

    def squared(self, r: FloatArray) -> FloatArray:
        if self._squares is None:
            self._squares = DenseLinear(self.X * self.X, self.n_outputs, self.intercept, self.workers)
        return self._squares.adjoint(r)

    def dense_rows(self, rows: Any) -> FloatArray:
        return np.asarray(self.X[rows])

    def _column_magnitudes(self) -> tuple[FloatArray, FloatArray]:
        squares = np.einsum("ij,ij->j", self.X, self.X, dtype=np.float64)
        return squares, np.count_nonzero(self.X, axis=0).astype(np.float64)

    def digest(self) -> int:
        return _digest(self.X)

    def places(self, flat: Any) -> tuple[Any, Any]:
        labels, columns = np.divmod(flat, self.n_columns)
        tail = flat >= self.n_coefficients
        return np.where(tail, flat - self.n_coefficients, labels), np.where(tail, self.n_columns, columns)

    def hold_columns(self, columns: Any) -> tuple[tuple[Any, ...], Any]:
        if len(columns) and self._slots[columns].min() < 0:
            wanted = self._slots >= 0
            wanted[columns] = True
            used = np.flatnonzero(wanted)
            self._held = np.ones((len(used), self.n_examples))
            count = int(np.count_nonzero(used < self.n_columns))
            self._held[:count] = self.X.T[used[:count]]
            self._slots[used] = np.arange(len(used))
        return (self._held,), self._slots

    def take(self, rows: Any) -> DenseLinear:
        """The map of some of the examples."""
        return DenseLinear(self.X[rows], self.n_outputs, self.intercept, self.workers)


class SparseLinear(LinearMap):
    """Sparse X, held as CSR with sorted indices and as a transposed copy, so that the adjoint needs no atomic adds."""

    def __init__(self, X: Any, n_outputs: int, intercept: bool, workers: Workers | None = None) -> None:
        X = sound_csr("X", X)
        if not X.has_canonical_format:
            X = X.copy()  # the arrays may be the caller's
            X.sum_duplicates()
        X = X.astype(np.float64, copy=False)
        super().__init__(X.shape, n_outputs, intercept, workers or Workers(1))
        index = np.uint32 if max(X.shape) < 2**32 else np.uint64
        self.rows: tuple[Any, Any, Any] = (X.data, X.indices.astype(index, copy=False), X.indptr.astype(np.uint64))
        data, indices, indptr = self.rows
        self.nnz: int = len(data)
        ones = self.n_examples if intercept else 0  # after the last column, for `hold_columns`
        self._with_ones = (
            np.empty(self.nnz + ones, data.dtype),
            np.empty(self.nnz + ones, indices.dtype),
            np.zeros(self.n_columns + 2, np.uint64),
        )
        all_data, all_indices, all_indptr = self._with_ones
        self.columns_first: tuple[NDArray[Any], NDArray[Any], NDArray[np.uint64]] = (
            all_data[: self.nnz],
            all_indices[: self.nnz],
            all_indptr[:-1],
        )
        sparse.transpose(data, indices, indptr, *self.columns_first)
        all_data[self.nnz :] = 1.0
        all_indices[self.nnz :] = np.arange(ones)
        all_indptr[-1] = self.nnz + ones
        self._row_ranges = self._balanced(indptr)
        self._column_ranges = self._balanced(self.columns_first[2])
        self._squares: FloatArray | None = None

    def unpack(self, theta: Any) -> tuple[FloatArray, FloatArray]:
        return theta[: self.n_coefficients].reshape(self.n_columns, self.n_outputs).T, self._intercepts(theta)

    def pack(self, coefficients: Any, intercepts: Any) -> FloatArray:
        parts = [np.ravel(np.asarray(coefficients).T)] + ([np.ravel(intercepts)] if self.intercept else [])
        return np.concatenate(parts)

    def remove_mean(self, flat: FloatArray) -> None:
        if self.n_outputs > 1:
            sparse.remove_row_means(flat.reshape(-1, self.n_outputs))  # intercepts are the last row

    def _balanced(self, indptr: Any) -> list[tuple[int, int]]:
        return self.workers.balanced(indptr, 2.0 * (self.nnz * self.n_outputs + len(indptr) - 1))

    def _rows_times(self, matrix: Any, T: FloatArray, b: FloatArray, ranges: Any, U: FloatArray) -> None:
        if self.n_outputs == 1:
            tasks = [(*matrix, T.ravel(), b[0], lo, hi, U.ravel()) for lo, hi in ranges]
            self.workers.run(sparse.rows_times_vector, tasks)
        else:
            self.workers.run(sparse.rows_times_matrix, [(*matrix, T, b, lo, hi, U) for lo, hi in ranges])

    def forward(self, theta: FloatArray) -> FloatArray:
        T = theta[: self.n_coefficients].reshape(self.n_columns, self.n_outputs)
        U = np.empty((self.n_examples, self.n_outputs))
        self._rows_times(self.rows, T, self._intercepts(theta), self._row_ranges, U)
        return U

    def _adjoint(self, data: FloatArray, r: FloatArray) -> FloatArray:
        out = np.empty(self.size)
        G = out[: self.n_coefficients].reshape(self.n_columns, self.n_outputs)
        self._rows_times((data, *self.columns_first[1:]), r, np.zeros(self.n_outputs), self._column_ranges, G)
        if self.intercept:
            out[self.n_coefficients :] = r.sum(0)
        return out

    def adjoint(self, r: FloatArray) -> FloatArray:
        return self._adjoint(self.columns_first[0], np.ascontiguousarray(r))

    def curvature_block(self, product: Callable[[FloatArray], FloatArray], block: FloatArray) -> FloatArray:
        n, width = self.n_outputs, block.shape[1]
        T = np.ascontiguousarray(block)
        U = np.zeros((self.n_examples, n * width))
        if self.intercept:
            U[:] = T[self.n_coefficients :].ravel()
        wide = T[: self.n_coefficients].reshape(self.n_columns, n * width)
        self.workers.run(sparse.add_rows_times_wide, [(*self.rows, wide, lo, hi, U) for lo, hi in self._row_ranges])
        _curve(product, U, width)
        out = np.zeros((self.size, width))
        G = out[: self.n_coefficients].reshape(self.n_columns, n * width)
        tasks = [(*self.columns_first, U, lo, hi, G) for lo, hi in self._column_ranges]
        self.workers.run(sparse.add_rows_times_wide, tasks)
        if self.intercept:
            out[self.n_coefficients :] = U.sum(0).reshape(n, width)
        if n > 1:  # see `remove_mean`
            rows = out.reshape(-1, n, width)
            rows -= rows.mean(1, keepdims=True)
        return out

    def squared(self, r: FloatArray) -> FloatArray:
        if self._squares is None:
            self._squares = self.columns_first[0] ** 2
        return self._adjoint(self._squares, np.ascontiguousarray(r))

    def product_cost(self) -> tuple[float, float]:
        p = self.n_columns + self.intercept
        return 2.0 * self.n_outputs * self.nnz, 1.2 * self.nnz**2 / max(1, self.n_examples) + 2.0 * p * p

    def gram(self, w: FloatArray) -> FloatArray:
        p = self.n_columns + self.intercept
        per_row = self.nnz / max(1, self.n_examples)
        ranges = self.workers.ranges(self.n_examples, 2.0 * self.nnz * per_row)
        G = np.zeros((len(ranges), p, p))
        tasks = [(*self.rows, w, lo, hi, int(self.intercept), G[c]) for c, (lo, hi) in enumerate(ranges)]
        self.workers.run(sparse.gram, tasks)
        return _mirrored(G)

    @cached_property
    def matrix(self) -> Any:
        """X as a SciPy matrix."""
        data, indices, indptr = self.rows
        return sp.csr_matrix((data, indices.astype(np.int64), indptr.astype(np.int64)), (self.n_examples, self.n_columns))

    def dense_rows(self, rows: Any) -> FloatArray:
        return np.asarray(self.matrix[rows].toarray())

    def outer(self, examples: Any, roots: FloatArray) -> Any:
        """See `LinearMap`; a sparse matrix."""
        X, n = self.matrix[examples], self.n_outputs
        lengths = np.diff(X.indptr)
        values = X.data[:, None] * np.repeat(roots, lengths, axis=0)
        places = X.indices[:, None] * n + np.arange(n)
        rows = sp.csr_matrix((values.ravel(), places.ravel(), X.indptr * n), (len(examples), self.n_coefficients))
        return sp.hstack([rows, sp.csr_matrix(roots)], format="csr") if self.intercept else rows

    def _column_magnitudes(self) -> tuple[FloatArray, FloatArray]:
        data, indices, _ = self.rows
        where = indices.astype(np.intp)
        squares = np.bincount(where, data * data, self.n_columns)
        counts = np.bincount(where, data != 0.0, self.n_columns)
        return np.asarray(squares, dtype=np.float64), np.asarray(counts, dtype=np.float64)

    def digest(self) -> int:
        return _digest(self.rows[0])  # indices and pointers are copies

    def places(self, flat: Any) -> tuple[Any, Any]:
        columns, labels = np.divmod(flat, self.n_outputs)
        return labels, columns  # intercepts come after the last column, one per label

    def hold_columns(self, columns: Any) -> tuple[tuple[Any, ...], Any]:
        return self._with_ones, np.arange(self.n_columns + 1)

    def take(self, rows: Any) -> SparseLinear:
        """The map of some of the examples."""
        return SparseLinear(self.matrix[rows], self.n_outputs, self.intercept, self.workers)


def _curve(product: Callable[[FloatArray], FloatArray], U: FloatArray, width: int) -> None:
    """Scores of several vectors, the labels of each `width` apart, times S, in place."""
    for w in range(width):
        U[:, w::width] = product(np.ascontiguousarray(U[:, w::width]))


def _digest(values: Any) -> int:
    flat = np.ascontiguousarray(values).reshape(-1)
    return int(digest(flat.view(np.uint64 if flat.itemsize == 8 else np.uint32).astype(np.uint64, copy=False)))


def _mirrored(parts: FloatArray) -> FloatArray:
    """The sum of the parts, its lower triangle copied to the upper."""
    total: FloatArray = parts[0] if len(parts) == 1 else parts.sum(0)
    dense.mirror(total)
    return total


def linear_map(X: Any, n_outputs: int, intercept: bool, workers: Workers | None = None) -> DenseLinear | SparseLinear:
    """The map for X as given: dense arrays or CSR matrices (other sparse formats are converted)."""
    if not sp.issparse(X):
        return DenseLinear(np.ascontiguousarray(X, dtype=np.float64), n_outputs, intercept, workers)
    return SparseLinear(X, n_outputs, intercept, workers)
