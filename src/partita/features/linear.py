"""Maps that give every label its own weights on the columns of X: ``s[i, k] = x_i . coef_k + intercept_k``.

Parameters are one flat vector, coefficients first, intercepts last. Its layout is the map's own business (label-major for
dense X, column-major for sparse X, where it makes the products several times faster): use `pack` and `unpack`.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.parallel import Workers
from ..core.results import FloatArray
from ..kernels import dense, sparse

#: Columns up to which the Gram matrix of dense X is faster by the kernel than by BLAS.
SMALL_GRAM = 24
#: Bytes of X that one block of the fused product may take: half a core's second-level cache.
BLOCK_BYTES = 200_000


class LinearMap:
    """What the two layouts share.

    Attributes
    ----------
    n_examples, n_columns, n_outputs : int
        Shape of X, and number of potentials per example (one for binary problems).
    intercept : bool
        Whether each output has an intercept.
    size : int
        Number of parameters.
    """

    def __init__(self, shape: tuple[int, int], n_outputs: int, intercept: bool, workers: Workers) -> None:
        self.n_examples, self.n_columns = shape
        self.n_outputs = n_outputs
        self.intercept = intercept
        self.workers = workers
        self.size = n_outputs * (self.n_columns + intercept)
        self.n_coefficients = n_outputs * self.n_columns

    def _intercepts(self, theta: Any) -> FloatArray:
        return theta[self.n_coefficients :] if self.intercept else np.zeros(self.n_outputs, theta.dtype)

    def unpack(self, theta: Any) -> tuple[FloatArray, FloatArray]:
        """Coefficients (outputs, columns) and intercepts (outputs,)."""
        raise NotImplementedError

    def pack(self, coefficients: Any, intercepts: Any) -> FloatArray:
        """The flat vector of `unpack`."""
        raise NotImplementedError

    def forward(self, theta: FloatArray) -> FloatArray:
        """Potentials (examples, outputs)."""
        raise NotImplementedError

    def adjoint(self, r: FloatArray) -> FloatArray:
        """The flat vector of sum_i r[i, k] x_i and sum_i r[i, k]."""
        raise NotImplementedError

    def gram(self, w: FloatArray) -> FloatArray:
        """sum_i w_i x_i x_i', with a last row and column for the intercept if there is one."""
        raise NotImplementedError

    def product_cost(self) -> tuple[float, float]:
        """Operations of one curvature product, and of one Gram matrix."""
        raise NotImplementedError

    def squared(self, r: FloatArray) -> FloatArray:
        """The flat vector of sum_i r[i, k] x_i^2 (and sum_i r[i, k] for intercepts)."""
        raise NotImplementedError

    def curvature_matrix(self, pairs: FloatArray) -> FloatArray:
        """A' S A for S given by its entries: row ``j (j + 1) / 2 + k`` of `pairs` holds S_i[j, k] of every example."""
        n, d, p = self.n_outputs, self.n_columns, self.n_columns + self.intercept
        if n == 1:
            return self.gram(pairs[0])
        full = np.empty((n, p, n, p))
        for j in range(n):
            for k in range(j + 1):
                full[j, :, k, :] = full[k, :, j, :] = self.gram(pairs[j * (j + 1) // 2 + k])
        order = np.arange(n * p).reshape(n, p)
        flat: Any = self.pack(order[:, :d], order[:, d] if self.intercept else order[:, :0])
        return np.ascontiguousarray(full.reshape(n * p, n * p)[np.ix_(flat, flat)])

    def columns(self) -> Any:
        """Positions in the flat vector, (outputs, columns + intercept)."""
        coefficients, intercepts = self.unpack(np.arange(self.size))
        return np.hstack([coefficients, intercepts[:, None]]) if self.intercept else coefficients


class DenseLinear(LinearMap):
    """Dense X, C-contiguous, float64 or float32."""

    def __init__(self, X: Any, n_outputs: int, intercept: bool, workers: Workers | None = None) -> None:
        self.X = np.ascontiguousarray(X)
        super().__init__(self.X.shape, n_outputs, intercept, workers or Workers(1))
        self._single: DenseLinear | None = None
        self._squares: DenseLinear | None = None

    def unpack(self, theta: Any) -> tuple[FloatArray, FloatArray]:
        return theta[: self.n_coefficients].reshape(self.n_outputs, self.n_columns), self._intercepts(theta)

    def pack(self, coefficients: Any, intercepts: Any) -> FloatArray:
        parts = [np.ravel(coefficients)] + ([np.ravel(intercepts)] if self.intercept else [])
        return np.concatenate(parts)

    def single(self) -> DenseLinear:
        """The same map in float32: half the memory traffic, for products that need no more."""
        if self._single is None:
            self._single = DenseLinear(self.X.astype(np.float32), self.n_outputs, self.intercept, self.workers)
        return self._single

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
            (self.X, D, top, T, b, rows, lo, hi, np.empty((min(rows, hi - lo), self.n_outputs), dtype), G[c], g[c])
            for c, (lo, hi) in enumerate(ranges)
        ]
        self.workers.run(dense.curvature_product, tasks)
        return self._sum_parts(G, g).astype(np.float64, copy=False)

    def curvature_matrix(self, pairs: FloatArray) -> FloatArray:
        if self.n_columns > SMALL_GRAM:
            return super().curvature_matrix(pairs)
        ranges = self.workers.ranges(self.n_examples, 0.5 * pairs.size * self.n_columns**2)
        parts = np.zeros((len(ranges), self.size, self.size))
        arguments = (self.X, pairs, self.n_outputs, int(self.intercept))
        self.workers.run(dense.block_gram, [(*arguments, lo, hi, parts[c]) for c, (lo, hi) in enumerate(ranges)])
        return _mirrored(parts)

    def gram(self, w: FloatArray) -> FloatArray:
        d, p = self.n_columns, self.n_columns + self.intercept
        out = np.empty((p, p), self.X.dtype)
        if w.min() >= 0.0:
            Z = self.X * np.sqrt(w).astype(self.X.dtype)[:, None]
            out[:d, :d] = Z.T @ Z  # recognised as symmetric: half the work
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

    def take(self, rows: Any) -> DenseLinear:
        """The map of some of the examples."""
        return DenseLinear(self.X[rows], self.n_outputs, self.intercept, self.workers)


class SparseLinear(LinearMap):
    """CSR X with sorted indices; keeps a transposed copy, so that the adjoint needs no atomic adds."""

    def __init__(self, X: Any, n_outputs: int, intercept: bool, workers: Workers | None = None) -> None:
        super().__init__(X.shape, n_outputs, intercept, workers or Workers(1))
        self.data, self.indices, self.indptr = X.data, X.indices, X.indptr
        self.t_data = np.empty_like(self.data)
        self.t_indices = np.empty_like(self.indices)
        self.t_indptr = np.zeros(self.n_columns + 1, self.indptr.dtype)
        sparse.transpose(self.data, self.indices, self.indptr, self.t_data, self.t_indices, self.t_indptr)

    def unpack(self, theta: Any) -> tuple[FloatArray, FloatArray]:
        return theta[: self.n_coefficients].reshape(self.n_columns, self.n_outputs).T, self._intercepts(theta)

    def pack(self, coefficients: Any, intercepts: Any) -> FloatArray:
        parts = [np.ravel(np.asarray(coefficients).T)] + ([np.ravel(intercepts)] if self.intercept else [])
        return np.concatenate(parts)

    def _balanced(self, indptr: Any) -> list[tuple[int, int]]:
        """Ranges with about equal numbers of non-zeros."""
        count, nnz = len(indptr) - 1, len(self.data)
        pieces = len(self.workers.ranges(count, 4.0 * (nnz * self.n_outputs + count)))
        edges = np.searchsorted(indptr, np.linspace(0, nnz, pieces + 1)[1:-1])
        edges = np.concatenate(([0], np.minimum(edges, count), [count]))
        return [(int(lo), int(hi)) for lo, hi in itertools.pairwise(edges)]

    def forward(self, theta: FloatArray) -> FloatArray:
        T = theta[: self.n_coefficients].reshape(self.n_columns, self.n_outputs)
        b = self._intercepts(theta)
        U = np.empty((self.n_examples, self.n_outputs))
        arrays = (self.data, self.indices, self.indptr, T, b)
        self.workers.run(sparse.forward, [(*arrays, lo, hi, U) for lo, hi in self._balanced(self.indptr)])
        return U

    def _adjoint(self, data: FloatArray, r: FloatArray) -> FloatArray:
        out = np.empty(self.size)
        G = out[: self.n_coefficients].reshape(self.n_columns, self.n_outputs)
        arrays = (data, self.t_indices, self.t_indptr, r)
        self.workers.run(sparse.adjoint, [(*arrays, lo, hi, G) for lo, hi in self._balanced(self.t_indptr)])
        if self.intercept:
            out[self.n_coefficients :] = r.sum(0)
        return out

    def adjoint(self, r: FloatArray) -> FloatArray:
        return self._adjoint(self.t_data, r)

    def squared(self, r: FloatArray) -> FloatArray:
        return self._adjoint(self.t_data**2, r)

    def product_cost(self) -> tuple[float, float]:
        nnz, p = float(len(self.data)), self.n_columns + self.intercept
        return 4.0 * self.n_outputs * nnz, nnz * nnz / max(1, self.n_examples) + 0.5 * p * p

    def gram(self, w: FloatArray) -> FloatArray:
        p = self.n_columns + self.intercept
        per_row = len(self.data) / max(1, self.n_examples)
        ranges = self.workers.ranges(self.n_examples, 2.0 * len(self.data) * per_row)
        G = np.zeros((len(ranges), p, p))
        arrays = (self.data, self.indices, self.indptr, w)
        tasks = [(*arrays, lo, hi, int(self.intercept), G[c]) for c, (lo, hi) in enumerate(ranges)]
        self.workers.run(sparse.gram, tasks)
        return _mirrored(G)


def _mirrored(parts: FloatArray) -> FloatArray:
    """The sum of the parts, its lower triangle copied to the upper."""
    total: FloatArray = parts[0] if len(parts) == 1 else parts.sum(0)
    dense.mirror(total)
    return total


def linear_map(X: Any, n_outputs: int, intercept: bool, workers: Workers | None = None) -> DenseLinear | SparseLinear:
    """The map for X as given: dense arrays or CSR matrices (other sparse formats are converted)."""
    if not sp.issparse(X):
        return DenseLinear(np.ascontiguousarray(X, dtype=np.float64), n_outputs, intercept, workers)
    csr = X.tocsr()
    if not csr.has_canonical_format:
        csr = csr.copy() if csr is X else csr
        csr.sum_duplicates()
    return SparseLinear(csr.astype(np.float64, copy=False), n_outputs, intercept, workers)
