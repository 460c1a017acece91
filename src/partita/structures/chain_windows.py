"""Windows of consecutive labels of chains, given the labels before and after them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ..core.buffers import Buffers, Owner
from ..core.parallel import Workers
from ..core.results import FloatArray, IntArray
from ..kernels import chain_windows as kernels
from .chain_sums import ChainSums

Scores = tuple[FloatArray, FloatArray]


class Windows:
    """Windows of chains that are stacked one after the other.

    Parameters
    ----------
    offsets : array of int
        Where each chain starts, and where the last ends.
    y : array of int
        The label of every position.
    chain, first, length : arrays of int
        The chain of each window, its first position and its number of labels.
        Sorted by chain.
    group : array of int
        What kind of window it is: a number for the use of the caller.
    """

    def __init__(
        self, offsets: IntArray, y: IntArray, chain: IntArray, first: IntArray, length: IntArray, group: IntArray
    ) -> None:
        self.parent, self.y = offsets, y
        self.chain, self.first, self.length, self.group = chain, first, length, group
        self.offsets: IntArray = np.concatenate(([0], np.cumsum(length)))
        after = first + length
        self.left = np.where(first > offsets[chain], y[first - 1], -1)
        self.right = np.where(after < offsets[chain + 1], y[np.minimum(after, len(y) - 1)], -1)
        self.rows: IntArray = np.repeat(first - self.offsets[:-1], length) + np.arange(self.offsets[-1])

    @classmethod
    def of_lengths(cls, offsets: IntArray, y: IntArray, lengths: Sequence[int | None]) -> Windows:
        """All windows of some lengths, None for whole chains, sorted by chain and then by their place in `lengths`.

        A chain that is shorter than a length is a window by itself.
        """
        T = np.diff(offsets)
        chain, first, length, group = [], [], [], []
        for g, k in enumerate(lengths):
            size = T if k is None else np.minimum(T, k)
            count = T - size + 1
            owner = np.repeat(np.arange(len(T)), count)
            chain.append(owner)
            first.append(np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count) + offsets[owner])
            length.append(size[owner])
            group.append(np.full(len(owner), g))
        order = np.argsort(np.concatenate(chain), kind="stable")
        return cls(offsets, y, *(np.concatenate(part)[order] for part in (chain, first, length, group)))

    def take(self, chosen: IntArray) -> Windows:
        """Some of the windows."""
        return Windows(self.parent, self.y, *(part[chosen] for part in (self.chain, self.first, self.length, self.group)))

    def __len__(self) -> int:
        return len(self.first)

    @cached_property
    def by_position(self) -> tuple[IntArray, IntArray]:
        """The rows that come from each position, and where they begin and end."""
        counts = np.bincount(self.rows, minlength=len(self.y))
        return np.argsort(self.rows, kind="stable"), np.concatenate(([0], np.cumsum(counts)))

    @cached_property
    def by_chain(self) -> IntArray:
        """Where the windows of each chain begin, and where the last end."""
        return np.searchsorted(self.chain, np.arange(len(self.parent))).astype(np.int64)

    def coverage(self, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The weight of the windows that hold each position, and that hold it or the position before it."""
        size = len(self.y)
        each = np.repeat(weights, self.length)
        inside = np.asarray(np.bincount(self.rows, weights=each, minlength=size), dtype=np.float64)
        open_ = self.right >= 0
        after = np.bincount((self.first + self.length)[open_], weights=weights[open_], minlength=size)
        return inside, inside + after

    def unroll(self, U: FloatArray, A: FloatArray, workers: Workers, out: FloatArray) -> FloatArray:
        """Scores of the labels of the windows, in `out`, with those of the transitions from and to known labels."""
        task = (U, A, self.rows, self.offsets, self.left, self.right)
        ranges = Workers.balanced(self.offsets, 2.0 * out.size)
        workers.run(kernels.unroll, [(*task, lo, hi, out) for lo, hi in ranges])
        return out

    def collect(self, P: FloatArray, C: FloatArray, workers: Workers, out: FloatArray) -> Scores:
        """The transpose of `unroll`: sums over the windows that hold a position, in `out`, and over transitions, with C."""
        ranges = Workers.balanced(self.offsets, 2.0 * P.size)
        parts = np.zeros((len(ranges), *C.shape))
        ends = (P, self.offsets, self.left, self.right)
        workers.run(kernels.add_boundaries, [(*ends, lo, hi, parts[i]) for i, (lo, hi) in enumerate(ranges)])
        ranges = Workers.ranges(len(out), 2.0 * P.size)
        workers.run(kernels.collect, [(P, *self.by_position, lo, hi, out) for lo, hi in ranges])
        return out, C + parts.sum(0)


class WindowSums:
    """As `ChainSums`, where every window is a chain: sums over its labels given those before and after it.

    Parameters
    ----------
    U, A : arrays of shape (n_positions, n_labels) and (n_labels, n_labels)
        Scores of labels and transitions; -inf forbids.
    windows : Windows
    weights : array
        One weight for each window, positive.
    buffers, inner : Buffers
        Where arrays of the shape of U come from, and those with a row for each row of the windows.
    """

    def __init__(
        self,
        U: FloatArray,
        A: FloatArray,
        windows: Windows,
        weights: FloatArray,
        workers: Workers,
        buffers: Buffers,
        inner: Buffers,
    ) -> None:
        self.windows, self.workers, self.buffers, self.room = windows, workers, buffers, inner
        owner = Owner()
        scores = windows.unroll(U, A, workers, inner.lend(owner))
        self.inner = ChainSums(scores, A, windows.offsets, weights, workers, inner)
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
        n = self.inner.P.shape[1]
        # Transitions of chains that needed logarithms are missing: they are few.
        C = self.inner.M[:, :n] * ((self.inner.alpha[into - 1] * each[into]).T @ self.inner.B[into])
        return w.collect(np.multiply(self.inner.P, each, out=self.room.lend(owner)), C, self.workers, out)
