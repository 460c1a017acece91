"""Scores of chains from attributes of positions and transitions between labels.

``U[t, k] = sum_j X[t, j] theta[j, k]`` and ``A[u, v] = theta[u, v]``, for the pairs (j, k) and (u, v) that have a weight.
A label at the first and the last position of a chain may have a weight of its own. Parameters are one flat vector: weights
of attributes, of transitions, of starts, of ends. Its order within the first part is the map's own business: see
`attribute` and `label`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.arrays.pieces import take_pieces
from ...core.arrays.sparse import sound_csr
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...numerics.sparse import rows_times_matrix, transpose
from ..kernels import attributes as kernels
from ..kernels.blocks import WIDTH
from ..kernels.tuples import Attributes, Entries, Weights

#: Scores of labels (positions, labels) and of transitions (labels, labels).
Scores = tuple[FloatArray, FloatArray]

#: An attribute that has weights for at least so many labels gets a whole row of a table,
COMMON_LABELS = 3
#: Entries of that table up to which every thread may sum into one of its own.
LARGE_TABLE = 1_000_000
#: or for this share of the labels, if that is more: a row is then no slower than the weights one by one.
COMMON_SHARE = 0.36


class ChainFeatures:
    """The linear map of a chain model.

    Parameters
    ----------
    X : CSR matrix of shape (n_positions, n_attributes)
        Attributes of the positions of all chains, stacked.
    offsets : array of int
        Where each chain starts, and where the last ends.
    n_labels : int
        Number of labels.
    attribute, label : arrays of int
        The pairs that have a weight.
    transitions : array of int of shape (k, 2)
        Pairs of labels that have a weight.
    starts, ends : bool
        Whether labels have a weight for standing first or last.

    Attributes
    ----------
    attributes : kernels.tuples.Attributes
        X, split into attributes with weights for many labels and for few.
    """

    n_positions: int
    n_attributes: int
    n_examples: int
    starts: bool
    ends: bool
    attribute: IntArray
    label: IntArray

    def __init__(
        self,
        X: Any,
        offsets: IntArray,
        n_labels: int,
        attribute: IntArray,
        label: IntArray,
        transitions: IntArray,
        starts: bool = False,
        ends: bool = False,
        workers: Workers | None = None,
    ) -> None:
        X = sound_csr("X", X)
        self.offsets: IntArray = np.array(offsets, dtype=np.int64)  # a copy: kernels trust it
        if (
            self.offsets.ndim != 1
            or self.offsets[0] != 0
            or self.offsets[-1] != X.shape[0]
            or np.diff(self.offsets).min() < 0
        ):
            raise ValueError(f"offsets must rise from 0 to the {X.shape[0]} rows of X")
        self.n_labels = n_labels
        self.n_positions, self.n_attributes = X.shape
        self.n_examples = len(offsets) - 1
        self.workers: Workers = workers or Workers(1)
        self.transitions: IntArray = np.asarray(transitions, dtype=np.int64).reshape(-1, 2)
        self.starts, self.ends = starts, ends
        self.n_state: int = len(attribute)
        self.size: int = self.n_state + len(self.transitions) + n_labels * (starts + ends)
        self._split(X, np.asarray(attribute), np.asarray(label))
        self._ranges = self.workers.ranges(self.n_positions, 4.0 * X.nnz * max(1.0, n_labels / 4.0))

    def _split(self, X: Any, attribute: Any, label: Any) -> None:
        """Order the weights, and split X into its common and its rare part."""
        n, counts = self.n_labels, np.bincount(attribute, minlength=self.n_attributes)
        frequency = np.bincount(X.indices, minlength=self.n_attributes)
        common = counts >= max(COMMON_LABELS, COMMON_SHARE * n)
        rank = np.empty(self.n_attributes, np.int64)  # rare ones by first occurrence: neighbours then share cache lines
        rank[_first_seen(X)] = np.arange(self.n_attributes)
        slots = np.flatnonzero(common)
        slots = slots[np.argsort(-frequency[slots], kind="stable")]
        slot = np.full(self.n_attributes, -1)
        slot[slots] = np.arange(len(slots))
        order = np.lexsort((label, np.where(common[attribute], slot[attribute] - self.n_attributes, rank[attribute])))
        self.attribute, self.label = attribute[order], label[order]
        self.n_common: int = int(common[attribute].sum())
        self._table_shape = (len(slots), n)
        self._places = slot[self.attribute[: self.n_common]] * n + self.label[: self.n_common]
        self._full = self.n_common == len(slots) * n
        ones = bool((X.data == 1.0).all())
        rows = np.repeat(np.arange(self.n_positions), np.diff(X.indptr))
        here = common[X.indices]
        usual = _entries(slot[X.indices[here]], rows[here], None if ones else X.data[here], self.n_positions)
        self._by_attribute = transposed(usual, len(slots)) if len(slots) * n > LARGE_TABLE else None
        begin = np.zeros(self.n_attributes, np.int64)
        where = np.flatnonzero(np.r_[True, np.diff(self.attribute) != 0]) if self.n_state else np.zeros(0, np.int64)
        begin[self.attribute[where]] = where
        rest = X.indices[~here]
        times = counts[rest]
        ends = np.cumsum(times)
        features = np.repeat(begin[rest] - ends + times - self.n_common, times) + np.arange(int(times.sum()))
        values = None if ones else np.repeat(X.data[~here], times)
        rare = _entries(features, np.repeat(rows[~here], times), values, self.n_positions)
        self.attributes: Attributes = Attributes(usual, rare, self.label[self.n_common :].astype(np.uint16))

    def forward(self, theta: FloatArray, out: FloatArray | None = None) -> Scores:
        """Scores of labels (positions, labels), in `out` if given, and of transitions (labels, labels)."""
        U = np.empty((self.n_positions, self.n_labels)) if out is None else out
        table = self._table(theta)
        self.workers.run(_scores, [(self, table, theta, lo, hi, U) for lo, hi in self._ranges])
        _, transition, start, end = self.parts(theta)
        A = np.zeros((self.n_labels, self.n_labels))
        A[self.transitions[:, 0], self.transitions[:, 1]] = transition
        if self.starts:
            U[self.offsets[:-1]] += start
        if self.ends:
            U[self.offsets[1:] - 1] += end
        return U, A

    def adjoint(self, scores: Scores) -> FloatArray:
        """The flat vector of sum_t X[t, j] R[t, k], C[u, v], and the sums of R over first and last positions, for (R, C)."""
        return self._adjoint(*scores, squared=False)

    def squared(self, R: FloatArray, C: FloatArray) -> FloatArray:
        """The same with the squares of X."""
        return self._adjoint(R, C, squared=True)

    def entries(self) -> FloatArray:
        """The number of weights that each position may use."""
        common, rare, _ = self.attributes
        return np.asarray(np.diff(common.indptr) + np.diff(rare.indptr), dtype=np.float64)

    def magnitudes(self) -> tuple[FloatArray, FloatArray]:
        """For each parameter the sum of squares and the number of its entries that are not zero."""
        ones = np.ones((self.n_positions, self.n_labels)), np.ones((self.n_labels, self.n_labels))
        twin = copy.copy(self)
        twin.attributes = self._with_entries(lambda entries: entries._replace(values=np.zeros(0)))
        if self._by_attribute is not None:
            twin._by_attribute = self._by_attribute._replace(values=np.ones_like(self._by_attribute.values))
        return self.squared(*ones), twin.adjoint(ones)

    def _adjoint(self, R: FloatArray, C: FloatArray, squared: bool) -> FloatArray:
        out = np.empty(self.size)
        out[: self.n_common] = self._common_sums(R, squared).ravel()[self._places]
        _, rare, label = self.attributes
        rare = rare.squared() if squared else rare
        G = np.zeros((len(self._ranges), self.n_state - self.n_common))
        self.workers.run(kernels.rare_sums, [(rare, label, R, lo, hi, G[c]) for c, (lo, hi) in enumerate(self._ranges)])
        G.sum(0, out=out[self.n_common : self.n_state])
        _, transition, start, end = self.parts(out)
        transition[:] = C[self.transitions[:, 0], self.transitions[:, 1]]
        if self.starts:
            start[:] = R[self.offsets[:-1]].sum(0)
        if self.ends:
            end[:] = R[self.offsets[1:] - 1].sum(0)
        return out

    def _common_sums(self, R: FloatArray, squared: bool) -> FloatArray:
        if self._by_attribute is not None:
            columns, ranges = self._by_attribute, Workers.balanced(self._by_attribute.indptr, 2.0 * R.size)
            table = np.empty(self._table_shape)
            matrix = (*(columns.squared() if squared else columns), R, np.zeros(self.n_labels))
            self.workers.run(rows_times_matrix, [(*matrix, lo, hi, table) for lo, hi in ranges])
            return table
        common = self.attributes.common.squared() if squared else self.attributes.common
        tables = np.zeros((len(self._ranges), *self._table_shape))
        self.workers.run(kernels.common_sums, [(common, R, lo, hi, tables[c]) for c, (lo, hi) in enumerate(self._ranges)])
        return np.asarray(tables.sum(0))

    def pair_rows(
        self, position: IntArray, label: IntArray, before: Any = -1, after: Any = -1, attributes: bool = True
    ) -> Entries:
        """The weights that (position, label) pairs use, a row of entries for each pair.

        Transitions from the label `before` and to the label `after` are among them, where these are not -1.
        """
        numbers = np.full(self._table_shape, -1, np.int32)
        numbers.ravel()[self._places] = np.arange(self.n_common)
        moves = self.transition_numbers()
        before, after = np.broadcast_to(before, label.shape), np.broadcast_to(after, label.shape)
        extra = np.full((len(label), 4), -1, np.int32)
        extra[:, 0] = np.where(before >= 0, moves[before, label], -1)
        extra[:, 1] = np.where(after >= 0, moves[label, after], -1)
        begin = self.n_state + len(self.transitions)
        if self.starts:
            extra[:, 2] = np.where(np.isin(position, self.offsets[:-1]), begin + label, -1)
        if self.ends:
            begin += self.n_labels * self.starts
            extra[:, 3] = np.where(np.isin(position, self.offsets[1:] - 1), begin + label, -1)
        nothing = Entries(np.zeros(0), np.zeros(0, np.uint32), np.zeros(self.n_positions + 1, np.uint64))
        used = self.attributes if attributes else self._with_entries(lambda entries: nothing)
        weights = (used, numbers, self.n_common, extra, position, label)
        ranges = Workers.ranges(len(label), 50.0 * len(label))
        out = nothing._replace(indptr=np.zeros(len(label) + 1, np.uint64))
        self.workers.run(kernels.pair_entries, [(*weights, False, lo, hi, out) for lo, hi in ranges])
        np.cumsum(out.indptr, out=out.indptr)
        out = out._replace(indices=np.empty(int(out.indptr[-1]), np.uint32))
        if len(used.common.values) or len(used.rare.values):
            out = out._replace(values=np.empty(len(out.indices)))
        self.workers.run(kernels.pair_entries, [(*weights, True, lo, hi, out) for lo, hi in ranges])
        return out

    def transition_numbers(self) -> IntArray:
        """The number of the weight of each transition, (labels, labels); -1 if it has none."""
        numbers = np.full((self.n_labels, self.n_labels), -1)
        numbers[self.transitions[:, 0], self.transitions[:, 1]] = self.n_state + np.arange(len(self.transitions))
        return numbers

    @property
    def by_weight(self) -> Attributes:
        """The attributes by column: the entries of each are its positions."""
        common, rare, label = self.attributes
        return Attributes(transposed(common, self._table_shape[0]), transposed(rare, self.n_state - self.n_common), label)

    def signed_adjoint(self, by_weight: Attributes, R: FloatArray, chain: IntArray, signs: FloatArray) -> FloatArray:
        """The part of attributes of `adjoint` for a block of signs of the chains, (n_state, WIDTH)."""
        common, rare, label = by_weight
        out, table = np.empty((self.n_state, WIDTH)), np.empty((*self._table_shape, WIDTH))
        ranges = Workers.balanced(common.indptr, 2.0 * R.shape[1] * WIDTH * len(common.indices))
        self.workers.run(kernels.common_blocks, [(common, R, chain, signs, lo, hi, table) for lo, hi in ranges])
        out[: self.n_common] = table.reshape(-1, WIDTH)[self._places]
        ranges = Workers.balanced(rare.indptr, 2.0 * WIDTH * len(rare.indices))
        weights = (rare, label, R, chain, signs)
        self.workers.run(kernels.rare_blocks, [(*weights, lo, hi, out[self.n_common :]) for lo, hi in ranges])
        return out

    def take(self, order: Any) -> ChainFeatures:
        """The map of some chains, in an order, with the same parameters."""
        twin = copy.copy(self)
        twin.offsets, positions = take_pieces(self.offsets, order)
        twin.attributes = self._with_entries(lambda entries: _take_rows(entries, positions))
        twin._by_attribute = None
        return twin._resized()

    def block(self, lo: int, hi: int) -> ChainFeatures:
        """The map of the chains lo..hi, without a copy."""
        twin = copy.copy(self)
        first, last = int(self.offsets[lo]), int(self.offsets[hi])
        twin.offsets = self.offsets[lo : hi + 1] - first
        twin.attributes = self._with_entries(lambda entries: entries._replace(indptr=entries.indptr[first : last + 1]))
        twin._by_attribute = None
        return twin._resized()

    def _with_entries(self, change: Callable[[Entries], Entries]) -> Attributes:
        """The attributes with other entries."""
        common, rare, label = self.attributes
        return Attributes(change(common), change(rare), label)

    def _resized(self) -> ChainFeatures:
        """Self, after a change of the chains."""
        self.n_examples, self.n_positions = len(self.offsets) - 1, int(self.offsets[-1])
        entries = sum(int(part.indptr[-1] - part.indptr[0]) for part in self.attributes[:2])
        self._ranges = self.workers.ranges(self.n_positions, 4.0 * entries * max(1.0, self.n_labels / 4.0))
        return self

    def parts(self, theta: Any) -> tuple[Any, Any, Any, Any]:
        """Views of the weights of attributes, transitions, starts and ends."""
        a, b = self.n_state, self.n_state + len(self.transitions)
        c = b + self.n_labels * self.starts
        return theta[:a], theta[a:b], theta[b:c], theta[c:]

    @property
    def streams(self) -> Attributes | None:
        """The attributes, if they can be summed in one pass; None if the table is too large for every thread."""
        return self.attributes if self._by_attribute is None else None

    def unpack(self, theta: FloatArray) -> Weights:
        """Copies of the weights, with zeros for pairs that have none."""
        state, transition, start, end = self.parts(theta)
        A = np.zeros((self.n_labels, self.n_labels))
        A[self.transitions[:, 0], self.transitions[:, 1]] = transition
        return Weights(self._table(theta).copy(), state[self.n_common :].copy(), A, start.copy(), end.copy())

    def pack(self, weights: Weights) -> FloatArray:
        """The inverse of `unpack`."""
        table, rare, A, start, end = weights
        moves = A[self.transitions[:, 0], self.transitions[:, 1]]
        return np.concatenate([table.ravel()[self._places], rare, moves, start, end])

    def _table(self, theta: FloatArray) -> FloatArray:
        if self._full:
            return theta[: self.n_common].reshape(self._table_shape)
        table = np.zeros(self._table_shape)
        table.ravel()[self._places] = theta[: self.n_common]
        return table


def _first_seen(X: Any) -> IntArray:
    """Columns of X in the order of their first entry; columns without any come last."""
    first = np.full(X.shape[1], X.nnz, np.int64)
    first[X.indices[::-1]] = np.arange(X.nnz - 1, -1, -1)
    return np.argsort(first, kind="stable")


def _take_rows(matrix: Entries, rows: Any) -> Entries:
    """Some rows."""
    values, indices, pointers = matrix
    taken, entries = take_pieces(pointers, rows)
    return Entries(values[entries] if len(values) else values, indices[entries], taken.astype(np.uint64))


def _entries(indices: Any, rows: Any, values: FloatArray | None, n_rows: int) -> Entries:
    """Entries that come in the order of their rows; without values if these are all 1."""
    pointers = np.zeros(n_rows + 1, np.uint64)
    pointers[1:] = np.cumsum(np.bincount(rows, minlength=n_rows))
    return Entries(np.zeros(0) if values is None else values, indices.astype(np.uint32), pointers)


def _scores(map_: ChainFeatures, table: FloatArray, theta: FloatArray, lo: int, hi: int, U: FloatArray) -> None:
    common, rare, label = map_.attributes
    kernels.common_scores(common, table, lo, hi, U)
    kernels.rare_scores(rare, label, theta[map_.n_common : map_.n_state], lo, hi, U)


def transposed(matrix: Entries, n_columns: int) -> Entries:
    """The same entries by column."""
    values, indices, indptr = matrix
    values = values if len(values) else np.ones(len(indices))
    out = Entries(np.empty_like(values), np.empty_like(indices), np.zeros(n_columns + 1, np.uint64))
    transpose(values, indices, indptr, *out)
    return out
