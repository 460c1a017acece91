"""Sums over the labellings of many chains with common transition scores: what training asks for, as fast as possible."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from ..core.parallel import Workers
from ..core.results import FloatArray, IntArray
from ..kernels import chain as kernels


class ChainSums:
    """log Z and marginals at scores (U, A), and how the marginals change with the scores.

    Attributes
    ----------
    log_z : array of shape (n_chains,)
    P : array of shape (n_positions, n_labels)
        Probability of each label, times the weight of its chain.
    C : array of shape (n_labels, n_labels)
        Expected number of each transition, weighted.
    """

    def __init__(self, U: FloatArray, A: FloatArray, offsets: IntArray, weights: FloatArray, workers: Workers) -> None:
        n = U.shape[1]
        self.offsets, self.weights, self.workers = offsets, weights, workers
        shift = float(A.max())
        self.M, self.MT = padded(np.exp(A - shift))
        self.ranges = balanced(offsets, 6.0 * n * n, workers)
        self.alpha, self.B, self.P = (np.empty(U.shape) for _ in range(3))
        self.log_z = np.empty(len(offsets) - 1)
        counts = np.zeros((len(self.ranges), n, n))
        hard = workers.run(
            kernels.sums,
            [
                (U, self.M, self.MT, shift, offsets, weights, lo, hi, self.alpha, self.B, self.P, counts[i], self.log_z)
                for i, (lo, hi) in enumerate(self.ranges)
            ],
        )
        self._counts = counts.sum(0)  # without the factor M
        self.C = self._counts * self.M[:, :n]
        if sum(hard):
            self._with_logarithms(U, A)

    def _with_logarithms(self, U: FloatArray, A: FloatArray) -> None:
        raise NotImplementedError

    @cached_property
    def loss(self) -> float:
        """The weighted sum of log Z."""
        return float(self.weights @ self.log_z)

    def product(self, dU: FloatArray, dA: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The derivative of (P, C) along (dU, dA): the Hessian of the loss times that direction."""
        n = len(dA)
        N, NT = padded(self.M[:, :n] * dA)
        R, parts = np.empty(dU.shape), np.zeros((len(self.ranges), n, n))
        state = (self.M, self.MT, N, NT, self.alpha, self.B, self.P, dU, self.offsets)
        self.workers.run(kernels.hessian_product, [(*state, lo, hi, R, parts[i]) for i, (lo, hi) in enumerate(self.ranges)])
        return R, self.M[:, :n] * (parts.sum(0) + dA * self._counts)


def padded(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M and its transpose with rows padded by zeros to a multiple of four."""
    n = len(M)
    out = np.zeros((2, n, -(-n // 4) * 4))
    out[0, :, :n], out[1, :, :n] = M, M.T
    return out[0], out[1]


def balanced(offsets: IntArray, operations: float, workers: Workers) -> list[tuple[int, int]]:
    """Ranges of chains with about equal numbers of positions."""
    count, total = len(offsets) - 1, int(offsets[-1])
    pieces = len(workers.ranges(count, operations * total))
    inner = np.searchsorted(offsets, np.linspace(0, total, pieces + 1)[1:-1])
    edges = [0, *np.minimum(inner, count).tolist(), count]
    return [(lo, hi) for lo, hi in zip(edges[:-1], edges[1:], strict=True) if hi > lo]
