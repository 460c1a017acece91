"""Windows of consecutive labels of chains, given the labels before and after them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...core.buffers import Buffers, Owner
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import tuples, windows as kernels
from .forward_backward import ChainSums

Scores = tuple[FloatArray, FloatArray]


class Unrolled:
    """Short chains made of rows of scores, each between two labels that are known, or at an end.

    Parameters
    ----------
    rows : array of int
        The row of the scores that each position of the short chains has.
    offsets : array of int
        Where each of them starts, and where the last ends.
    left, right : arrays of int
        The labels before and after each of them; -1 if there is none.
    size : int
        How many rows of scores there are.
    """

    rows: IntArray
    offsets: IntArray
    left: IntArray
    right: IntArray
    size: int

    def __init__(self, rows: IntArray, offsets: IntArray, left: IntArray, right: IntArray, size: int) -> None:
        self.rows, self.offsets, self.left, self.right, self.size = rows, offsets, left, right, size

    @cached_property
    def layout(self) -> tuples.Windows:
        """The same as kernels read it."""
        return tuples.Windows(self.by_chain, self.rows, self.offsets, self.left, self.right)

    @property
    def by_chain(self) -> IntArray:
        """Where the short chains of each chain begin, and where the last end; here, those of one."""
        return np.array([0, len(self)])

    def __len__(self) -> int:
        return len(self.left)

    @property
    def length(self) -> IntArray:
        """The number of positions of each."""
        return np.diff(self.offsets)

    @cached_property
    def by_row(self) -> tuple[IntArray, IntArray]:
        """The positions that have each row of scores, and where they begin and end."""
        counts = np.bincount(self.rows, minlength=self.size)
        return np.argsort(self.rows, kind="stable"), np.concatenate(([0], np.cumsum(counts)))

    def unroll(self, U: FloatArray, A: FloatArray, workers: Workers, out: FloatArray) -> FloatArray:
        """Scores of the labels of all positions, in `out`, with those of the transitions from and to known labels."""
        ranges = Workers.balanced(self.offsets, 2.0 * out.size)
        workers.run(kernels.unroll, [(U, A, self.layout, lo, hi, out) for lo, hi in ranges])
        return out

    def collect(self, P: FloatArray, C: FloatArray, workers: Workers, out: FloatArray) -> Scores:
        """The transpose of `unroll`: sums over positions with the same row, in `out`, and over transitions, with C."""
        ranges = Workers.balanced(self.offsets, 2.0 * P.size)
        parts = np.zeros((len(ranges), *C.shape))
        workers.run(kernels.add_boundaries, [(P, self.layout, lo, hi, parts[i]) for i, (lo, hi) in enumerate(ranges)])
        ranges = Workers.ranges(len(out), 2.0 * P.size)
        workers.run(kernels.collect, [(P, *self.by_row, lo, hi, out) for lo, hi in ranges])
        return out, C + parts.sum(0)


class Windows(Unrolled):
    """Windows of chains that are stacked one after the other.

    Parameters
    ----------
    chains : array of int
        Where each chain starts, and where the last ends.
    y : array of int
        The label of every position.
    chain, first, length : arrays of int
        The chain of each window, its first position and its number of labels. Sorted by chain.
    group : array of int
        What kind of window it is: a number for the use of the caller.
    """

    chains: IntArray
    y: IntArray
    chain: IntArray
    first: IntArray
    group: IntArray

    def __init__(
        self, chains: IntArray, y: IntArray, chain: IntArray, first: IntArray, length: IntArray, group: IntArray
    ) -> None:
        offsets: IntArray = np.concatenate(([0], np.cumsum(length)))
        after = first + length
        left = np.where(first > chains[chain], y[first - 1], -1)
        right = np.where(after < chains[chain + 1], y[np.minimum(after, len(y) - 1)], -1)
        rows = np.repeat(first - offsets[:-1], length) + np.arange(offsets[-1])
        super().__init__(rows, offsets, left, right, len(y))
        self.chains, self.y, self.chain, self.first, self.group = chains, y, chain, first, group

    @classmethod
    def of_lengths(cls, chains: IntArray, y: IntArray, lengths: Sequence[int | None]) -> Windows:
        """All windows of some lengths, None for whole chains, sorted by chain and then by their place in `lengths`.

        A chain that is shorter than a length is a window by itself.
        """
        T = np.diff(chains)
        chain, first, length, group = [], [], [], []
        for g, k in enumerate(lengths):
            size = T if k is None else np.minimum(T, k)
            count = T - size + 1
            owner = np.repeat(np.arange(len(T)), count)
            chain.append(owner)
            first.append(np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + chains[owner])
            length.append(size[owner])
            group.append(np.full(len(owner), g))
        order = np.argsort(np.concatenate(chain), kind="stable")
        return cls(chains, y, *(np.concatenate(part)[order] for part in (chain, first, length, group)))

    def take(self, chosen: IntArray) -> Windows:
        """Some of the windows."""
        return Windows(self.chains, self.y, *(part[chosen] for part in (self.chain, self.first, self.length, self.group)))

    @property
    def by_chain(self) -> IntArray:
        """Where the windows of each chain begin, and where the last end."""
        return np.searchsorted(self.chain, np.arange(len(self.chains))).astype(np.int64)

    def coverage(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weight of the windows that hold each position, and that hold it or the position before it."""
        each = np.repeat(weights, self.length)
        inside = np.asarray(np.bincount(self.rows, weights=each, minlength=self.size), dtype=np.float64)
        open_ = self.right >= 0
        after = np.bincount((self.first + self.length)[open_], weights=weights[open_], minlength=self.size)
        return inside, inside + after

    def alike(self) -> tuple[Unrolled, IntArray]:
        """The different windows, if all positions had the same scores: of the same length, between the same labels.

        Also tells which of them each window is.
        """
        n = int(max(self.left.max(), self.right.max())) + 2
        keys = (self.length * n + self.left + 1) * n + self.right + 1
        _, first, which = np.unique(keys, return_index=True, return_inverse=True)
        offsets = np.concatenate(([0], np.cumsum(self.length[first])))
        return Unrolled(np.zeros(offsets[-1], np.int64), offsets, self.left[first], self.right[first], 1), which


class WindowSums:
    """As `ChainSums`, where every window is a chain: sums over its labels given those before and after it.

    Parameters
    ----------
    U, A : arrays of shape (n_positions, n_labels) and (n_labels, n_labels)
        Scores of labels and transitions; -inf forbids.
    windows : Unrolled
    weights : array
        One weight for each window, positive.
    buffers, inner : Buffers
        Where arrays of the shape of U come from, and those with a row for each row of the windows.
    """

    windows: Unrolled
    workers: Workers
    buffers: Buffers
    room: Buffers
    log_z: FloatArray
    ranges: list[tuple[int, int]]

    def __init__(
        self,
        U: FloatArray,
        A: FloatArray,
        windows: Unrolled,
        weights: FloatArray,
        workers: Workers,
        buffers: Buffers,
        inner: Buffers,
    ) -> None:
        self.windows, self.workers, self.buffers, self.room = windows, workers, buffers, inner
        owner = Owner()
        scores = windows.unroll(U, A, workers, inner.lend(owner))
        self.inner: ChainSums = ChainSums(scores, A, windows.offsets, weights, workers, inner)
        self.log_z, self.ranges = self.inner.log_z, self.inner.ranges

    @property
    def loss(self) -> float:
        """The weighted sum of log Z of the windows."""
        return self.inner.loss

    @cached_property
    def _collected(self) -> Scores:
        return self.windows.collect(self.inner.P, self.inner.C, self.workers, self.buffers.lend(self))

    @property
    def P(self) -> FloatArray:
        """Probability of each label, summed over windows with weights."""
        return self._collected[0]

    @property
    def C(self) -> FloatArray:
        """Expected number of each transition, in windows and to their neighbours."""
        return self._collected[1]

    def diagonal(self, out: FloatArray) -> Scores:
        """See `ChainSums`; of transitions to known labels the variance is exact."""
        owner = Owner()
        variances = self.inner.variances(self.room.lend(owner))
        return self.windows.collect(variances, self.inner.C, self.workers, out)

    def product(self, dU: FloatArray, dA: FloatArray, out: FloatArray) -> Scores:
        """The derivative of (P, C) along (dU, dA), the first part in `out`."""
        owner = Owner()
        along = self.windows.unroll(dU, dA, self.workers, self.room.lend(owner))
        return self.windows.collect(*self.inner.product(along, dA, self.room.lend(owner)), self.workers, out)

    def weighted(self, factors: FloatArray, out: FloatArray) -> Scores:
        """(P, C) with the weight of every window multiplied by a factor of any sign, the first part in `out`."""
        owner, w = Owner(), self.windows
        each = np.repeat(factors, w.length)[:, None]
        inner = np.ones(len(each), bool)
        inner[w.offsets[:-1]] = False
        into = np.flatnonzero(inner)
        n, (alpha, B, _) = self.inner.P.shape[1], self.inner.messages
        # Transitions of chains that needed logarithms are missing: they are few.
        C = self.inner.transitions.M[:, :n] * ((alpha[into - 1] * each[into]).T @ B[into])
        return w.collect(np.multiply(self.inner.P, each, out=self.room.lend(owner)), C, self.workers, out)
