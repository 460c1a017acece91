"""Chains on their likely labels only: what is left of them is small when the model is nearly certain of most positions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import pruned as kernels
from ..kernels.blocks import WIDTH
from ..kernels.tuples import Segments
from .forward_backward import ChainSums


class PrunedChains:
    """The distribution of labellings, given that no label occurs whose probability is at most `delta`.

    Positions with one label left are certain and cut their chain; what remains are `segments` of *open* positions.

    Parameters
    ----------
    sums : ChainSums
    delta : float
        At 0 nothing is left out. The most likely label of a position always stays.

    Attributes
    ----------
    position, label : arrays of int
        The (position, label) pairs that are open.
    before, after : arrays of int
        For every pair, the label of the neighbour if that is certain; -1 otherwise.
    segments : Segments
        The open positions and their pairs, and the probabilities of pairs and of transitions between them.
    counts : array of shape (n_labels^2,)
        Expected number of each transition between open positions, weighted.
    variances, edge_variances : arrays
        Variances of the indicators of pairs, and of transitions (summed, one by one), weighted.
    """

    label: IntArray
    before: NDArray[Any]
    after: NDArray[Any]
    counts: FloatArray
    edge_variances: FloatArray

    def __init__(self, sums: ChainSums, delta: float = 0.0) -> None:
        self.n_labels: int = sums.P.shape[1]
        self.workers: Workers = sums.workers
        weights = np.repeat(sums.weights, np.diff(sums.offsets))
        least = delta * weights
        kept = least[:, None] < sums.P
        best = sums.P.argmax(1)
        kept[np.arange(len(kept)), best] = True
        open_ = (kept.sum(1) > 1) & (weights > 0.0)
        self.open: IntArray = np.flatnonzero(open_)
        row, self.label = np.nonzero(kept[self.open])
        self.position: IntArray = self.open[row]
        first = np.concatenate(([0], np.cumsum(np.bincount(row, minlength=len(self.open)))))
        starts, ends = np.zeros(len(best), bool), np.zeros(len(best), bool)
        starts[sums.offsets[:-1]], ends[sums.offsets[1:] - 1] = True, True
        shifted = np.concatenate(([False], open_[:-1]))
        joined = (shifted & ~starts)[self.open]  # to the open position before
        offsets = np.concatenate((np.flatnonzero(~joined), [len(self.open)]))
        sizes = np.diff(first)
        into = np.where(joined, sizes * np.concatenate(([0], sizes[:-1])), 0)
        edges = np.concatenate(([0], np.cumsum(into)))
        alone = self.open - (self.open > 0), np.minimum(self.open + 1, len(best) - 1)
        before = np.where(starts[self.open] | joined, -1, best[alone[0]])
        after = np.where(ends[self.open] | open_[alone[1]], -1, best[alone[1]])
        self.before, self.after = before[row], after[row]
        p, e = np.empty(len(self.label)), np.empty(int(edges[-1]))
        self.segments: Segments = Segments(offsets, first, self.label, edges[:-1], p, e)
        pieces = edges[offsets] + first[offsets]
        self._ranges = [Workers.balanced(pieces, work * pieces[-1]) for work in (10.0, 100.0)]
        task = (sums.transitions.M, sums.messages, self.open, before, after, self.segments)
        self.workers.run(kernels.condition, [(*task, lo, hi) for lo, hi in self._ranges[0]])
        self.counts, self.edge_variances = self._totals(sizes, joined, weights)
        self.variances: FloatArray = p * (1.0 - p / weights[self.position])

    def _totals(self, sizes: IntArray, joined: Any, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expected number of each transition, as ``from * n_labels + to``, and the sum of the variances."""
        n, to, (_, first, _, _, _, e) = self.n_labels, np.flatnonzero(joined), self.segments
        rows = np.repeat(to, sizes[to - 1])  # a row of edges for each pair of the position before
        source, target = _ranges(first[to - 1], sizes[to - 1]), _ranges(first[rows], sizes[rows])
        places = np.repeat(self.label[source], sizes[rows]) * n + self.label[target]
        share = e / np.repeat(weights[self.position[source]], sizes[rows])
        counts, variances = (np.bincount(places, each, n * n) for each in (e, e * (1.0 - share)))
        return counts.astype(np.float64), variances.astype(np.float64)

    def product(self, dU: FloatArray, dA: FloatArray, out: FloatArray) -> FloatArray:
        """Derivatives of probabilities along the directions ``dU[pair, d]``, ``dA[transition, d]``: of pairs in `out`, of
        transitions returned."""
        parts = np.zeros((len(self._ranges[1]), *dA.shape))
        task = (self.segments, self.n_labels, dU, dA)
        tasks = [(*task, lo, hi, out, parts[i]) for i, (lo, hi) in enumerate(self._ranges[1])]
        self.workers.run(kernels.covariances, tasks)
        return np.asarray(parts.sum(0) + dA * self.counts[:, None])

    def draw(self, random: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Pairs and transitions of random labellings, less their means, times the root of their weight: their covariance
        is the matrix of `product`."""
        uniforms = random.random((len(self.open), WIDTH))
        R = np.empty((len(self.label), WIDTH))
        parts = np.zeros((len(self._ranges[1]), self.n_labels**2, WIDTH))
        task = (self.segments, self.n_labels, uniforms)
        self.workers.run(kernels.draws, [(*task, lo, hi, R, parts[i]) for i, (lo, hi) in enumerate(self._ranges[1])])
        return R, parts.sum(0)


def _ranges(starts: IntArray, lengths: IntArray) -> IntArray:
    """The numbers from each start on, one after the other."""
    ends = np.cumsum(lengths)
    return np.repeat(starts - ends + lengths, lengths) + np.arange(int(lengths.sum()))
