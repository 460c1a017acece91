"""Parameters that are equal by decree."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels.tuples import Attributes, Weights
from .chain import ChainFeatures, Scores


class TiedFeatures:
    """A chain's map in which groups of weights are one parameter each.

    Parameters
    ----------
    inner : ChainFeatures
        The map with all weights.
    group : array of int of shape (inner.size,)
        The parameter of each weight, counted from 0 without gaps.
    """

    inner: ChainFeatures
    group: IntArray
    n_labels: int
    offsets: IntArray
    workers: Workers
    n_positions: int
    n_examples: int

    def __init__(self, inner: ChainFeatures, group: IntArray) -> None:
        self.inner, self.group = inner, group
        self.size: int = int(group.max()) + 1
        self.n_labels, self.offsets, self.workers = inner.n_labels, inner.offsets, inner.workers
        self.n_positions, self.n_examples = inner.n_positions, inner.n_examples

    def block(self, lo: int, hi: int) -> TiedFeatures:
        """The map of the chains lo..hi, without a copy."""
        return TiedFeatures(self.inner.block(lo, hi), self.group)

    def forward(self, theta: FloatArray, out: FloatArray | None = None) -> Scores:
        """Scores of labels and transitions."""
        return self.inner.forward(theta[self.group], out)

    def adjoint(self, scores: Scores) -> FloatArray:
        """Sums over the weights of each group."""
        return self.collect(self.inner.adjoint(scores))

    def squared(self, R: FloatArray, C: FloatArray) -> FloatArray:
        """The same with the squares of X; what weights of a group have in common is left out."""
        return self.collect(self.inner.squared(R, C))

    def magnitudes(self) -> tuple[FloatArray, FloatArray]:
        """See `ChainFeatures`; sums over the weights of each group."""
        squares, counts = self.inner.magnitudes()
        return self.collect(squares), self.collect(counts)

    def entries(self) -> FloatArray:
        """The number of weights that each position may use."""
        return self.inner.entries()

    def take(self, order: Any) -> TiedFeatures:
        """The map of some chains, in an order, with the same parameters."""
        twin = copy.copy(self)
        twin.inner = self.inner.take(order)
        twin.offsets, twin.n_positions, twin.n_examples = twin.inner.offsets, twin.inner.n_positions, twin.inner.n_examples
        return twin

    @property
    def streams(self) -> Attributes | None:
        """See `ChainFeatures`."""
        return self.inner.streams

    def unpack(self, theta: FloatArray) -> Weights:
        """See `ChainFeatures`."""
        return self.inner.unpack(theta[self.group])

    def pack(self, sums: Weights) -> FloatArray:
        """The sums over each group of what `ChainFeatures` packs."""
        return self.collect(self.inner.pack(sums))

    def collect(self, values: Any) -> FloatArray:
        """The sum of `values`, one per weight, over each group."""
        return np.asarray(np.bincount(self.group, weights=values, minlength=self.size), dtype=np.float64)
