"""The linear map from parameters to potentials of edges: every pair of a head and a dependent has features."""

from __future__ import annotations

import copy
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...core.arrays.pieces import take_pieces
from ...core.arrays.sparse import sound_csr
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...numerics import dense, sparse


class PairFeatures:
    """``s = A theta`` with a row of A for each edge, those of all examples one after the other.

    Parameters
    ----------
    features : array or sparse matrix of shape (edges, features)
        Dense ones are kept in single precision if they came so; sums are in double precision.
    offsets : array of int
        Example i has the rows ``offsets[i]:offsets[i + 1]``: those of `DependencyTrees`, or multiples of the number of edges
        of a `SpanningTree`.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Attributes
    ----------
    size : int
        Number of parameters.
    n_examples, n_pairs : int

    Examples
    --------
    >>> import numpy as np
    >>> from partita.tree import DependencyTrees, PairFeatures
    >>> trees = DependencyTrees([2, 1])
    >>> head, dependent = trees.pairs().T
    >>> distance = PairFeatures(np.column_stack([head == 0, abs(head - dependent)]), trees.offsets)
    >>> distance.forward(np.array([1.0, -0.5]))
    array([ 0.5, -0.5,  0. , -0.5,  0.5])
    """

    n_pairs: int
    size: int
    _transposes: bool = True

    def __init__(self, features: Any, offsets: ArrayLike, n_jobs: int | None = None) -> None:
        self.workers: Workers = Workers(n_jobs)
        if sp.issparse(features):
            matrix = sound_csr("features", features)
            if not matrix.has_canonical_format:
                matrix = matrix.copy()  # the arrays may be the caller's
                matrix.sum_duplicates()
            values, shape = _finite(matrix.data.astype(np.float64, copy=False)), matrix.shape
            index = np.uint32 if max(shape) < 2**32 else np.uint64
            self._rows: Any = (values, matrix.indices.astype(index, copy=False), matrix.indptr.astype(np.uint64))
            self._dense: Any = None
        else:
            given = np.asarray(features)
            if given.ndim != 2 or given.dtype.kind not in "fiub":
                raise ValueError(f"features must be numbers of shape (edges, features); got {given.shape} of {given.dtype}")
            single = given.dtype == np.float32
            self._dense = _finite(np.require(given, np.float32 if single else np.float64, ["C", "W"]))
            self._rows, shape = None, given.shape
        self.n_pairs, self.size = int(shape[0]), int(shape[1])
        self.offsets: IntArray = _checked_offsets(offsets, self.n_pairs)
        self.n_examples: int = len(self.offsets) - 1
        self._entries = self._dense.size if self._rows is None else len(self._rows[0])

    def take(self, rows: IntArray) -> PairFeatures:
        """The map of some examples. It is small: sums over its edges make no transposed copy."""
        twin = copy.copy(self)
        twin.__dict__.pop("_columns", None)
        twin.offsets, edges = take_pieces(self.offsets, rows)
        twin.n_examples, twin.n_pairs = len(rows), len(edges)
        if self._rows is None:
            twin._dense = np.ascontiguousarray(self._dense[edges])
            twin._entries = twin._dense.size
        else:
            data, indices, indptr = self._rows
            taken, own = take_pieces(indptr, edges)
            twin._rows = (data[own], indices[own], taken.astype(np.uint64))
            twin._entries = len(own)
        twin._transposes = False
        return twin

    def _chunks(self, lo: int, hi: int) -> list[tuple[int, int]]:
        """Rows of ranges of the examples lo..hi, counted from the first row of these."""
        own = self.offsets[lo : hi + 1] - self.offsets[lo]
        work = 2.0 * self._entries * float(own[-1]) / max(1, self.n_pairs)
        return [(int(own[a]), int(own[b])) for a, b in Workers.balanced(own, work)]

    def _part(self, lo: int, hi: int | None) -> tuple[int, int, Any]:
        """The examples of a range, and what kernels take for their rows."""
        hi = self.n_examples if hi is None else hi
        if not 0 <= lo <= hi <= self.n_examples:
            raise ValueError(f"examples must be a range within 0..{self.n_examples}; got {lo}..{hi}")
        first, last = int(self.offsets[lo]), int(self.offsets[hi])
        if self._rows is None:
            return lo, hi, (self._dense[first:last],)
        data, indices, indptr = self._rows
        return lo, hi, (data, indices, indptr[first : last + 1])

    def forward(self, theta: FloatArray, lo: int = 0, hi: int | None = None) -> FloatArray:
        """Potentials of the edges of the examples lo..hi, of all by default."""
        weights = np.require(theta, np.float64, ["C", "W"])
        if weights.shape != (self.size,):
            raise ValueError(f"theta must have shape ({self.size},), a number for each feature; got {weights.shape}")
        lo, hi, rows = self._part(lo, hi)
        out = np.empty(int(self.offsets[hi] - self.offsets[lo]))
        if self._rows is None:
            given: tuple[Any, ...] = (*rows, weights.reshape(1, -1), np.zeros(1))
            self.workers.run(dense.forward, [(*given, a, b, out.reshape(-1, 1)) for a, b in self._chunks(lo, hi)])
        else:
            chunks = self._chunks(lo, hi)
            self.workers.run(sparse.rows_times_vector, [(*rows, weights, 0.0, a, b, out) for a, b in chunks])
        return out

    def adjoint(self, values: FloatArray, lo: int = 0, hi: int | None = None) -> FloatArray:
        """Sums over the edges of the examples lo..hi of their numbers times their features."""
        return self._adjoint(values, lo, hi, squared=False)

    def squares(self, values: FloatArray, lo: int = 0, hi: int | None = None) -> FloatArray:
        """The same with the squares of the features."""
        return self._adjoint(values, lo, hi, squared=True)

    def _adjoint(self, values: FloatArray, lo: int, hi: int | None, squared: bool) -> FloatArray:
        lo, hi, rows = self._part(lo, hi)
        numbers = np.require(values, np.float64, ["C", "W"])
        count = int(self.offsets[hi] - self.offsets[lo])
        if numbers.shape != (count,):
            raise ValueError(f"values must have shape ({count},), a number for each edge; got {numbers.shape}")
        if self._rows is not None and self._transposes and (lo, hi) == (0, self.n_examples):
            return self._gathered(numbers, squared)
        if squared:
            rows = (rows[0] * rows[0], *rows[1:])
        if self._rows is not None:  # without a transposed copy of some rows
            out = np.zeros((self.size, 1))
            sparse.scatter(*rows, numbers.reshape(-1, 1), 0, count, out)
            return out[:, 0]
        chunks = self._chunks(lo, hi)
        parts, rest = np.zeros((len(chunks), 1, self.size)), np.zeros((len(chunks), 1))
        given = (*rows, numbers.reshape(-1, 1))
        self.workers.run(dense.adjoint, [(*given, a, b, parts[c], rest[c]) for c, (a, b) in enumerate(chunks)])
        return np.asarray(parts.sum(0)[0])

    @cached_property
    def _columns(self) -> tuple[Any, Any, Any]:
        """The transpose: without it, threads would have to add to the same sums."""
        data, indices, indptr = self._rows
        out = np.empty_like(data), np.empty(len(indices), np.uint64), np.zeros(self.size + 1, np.uint64)
        sparse.transpose(data, indices, indptr, *out)
        return out

    def _gathered(self, numbers: FloatArray, squared: bool) -> FloatArray:
        data, indices, indptr = self._columns
        data, out = data * data if squared else data, np.empty(self.size)
        ranges = Workers.balanced(indptr.astype(np.int64), 2.0 * len(data))
        given = (data, indices, indptr, numbers, 0.0)
        self.workers.run(sparse.rows_times_vector, [(*given, a, b, out) for a, b in ranges])
        return out


def _finite(values: Any) -> Any:
    if not np.isfinite(values).all():
        raise ValueError("features must be finite numbers, got NaN or infinite ones: fill in what is missing")
    return values


def _checked_offsets(offsets: ArrayLike, n_pairs: int) -> IntArray:
    given = np.asarray(offsets)
    if given.ndim != 1 or len(given) < 2 or given.dtype.kind not in "iu":
        raise ValueError(f"offsets must be integers, one more than examples; got {given.shape} of {given.dtype}")
    if int(given[0]) != 0 or int(given[-1]) != n_pairs or (given[1:] < given[:-1]).any():
        raise ValueError(
            f"offsets must rise from 0 to {n_pairs}, the rows of features; got {int(given[0])} to {int(given[-1])}"
            f"{', with a fall' if (given[1:] < given[:-1]).any() else ''}"
        )
    return given.astype(np.int64)
