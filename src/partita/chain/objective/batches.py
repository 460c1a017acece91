"""A likelihood of chains as a stream of mini-batches of chains in random order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...softmax import DiagonalSum
from ..features.chain import take_pieces
from ..kernels import viterbi
from ..structure.forward_backward import ChainSums
from .base import ChainObjective
from .counts import observed

#: Chains that curvature is estimated from; those that show how far it is from its diagonal, and the products for that.
SAMPLE, PROBE, PRODUCTS = 1000, 200, 8


@dataclass(frozen=True)
class Residual:
    """Weighted probabilities of labels (positions, labels) and expected counts of transitions, less the observed ones."""

    R: FloatArray
    C: FloatArray

    def __sub__(self, other: Residual) -> Residual:
        return Residual(self.R - other.R, self.C - other.C)


class ResidualTable:
    """The residuals of mini-batches when they were last seen, zero before; the mini-batches are always the same."""

    def __init__(self, offsets: IntArray, n_labels: int) -> None:
        self._offsets = offsets
        self._R = np.zeros((int(offsets[-1]), n_labels))
        self._C: dict[tuple[int, int], FloatArray] = {}
        self._zero = np.zeros((n_labels, n_labels))

    def _rows(self, batch: tuple[int, int]) -> FloatArray:
        return self._R[self._offsets[batch[0]] : self._offsets[batch[1]]]

    def __getitem__(self, batch: tuple[int, int]) -> Residual:
        return Residual(self._rows(batch), self._C.get(batch, self._zero))

    def __setitem__(self, batch: tuple[int, int], residual: Residual) -> None:
        self._rows(batch)[:] = residual.R
        self._C[batch] = residual.C


class ChainBatches:
    """Shuffled chains of a likelihood, some of them held out. See `softmax.objective.batches.Batches`.

    Curvature is a diagonal above it, were the positions of a chain independent; no other is cheap enough. How far they are
    from that is measured.
    """

    def __init__(self, objective: ChainObjective, random_state: Any = None, validation: float = 0.0) -> None:
        self.parent = objective
        self.rng: np.random.Generator = generator(random_state)
        order = self.rng.permutation(np.flatnonzero(objective.weights))
        held = round(validation * len(order))
        if held >= len(order):
            raise ValueError(f"validation={validation!r} leaves no chain to train on")
        self.size: int = objective.size
        self._held = _Part(objective, order[:held]) if held else None
        self._train = _Part(objective, order[held:])
        self.n_examples: int = len(self._train.w)
        self.scale: float = self.weight(0, self.n_examples)
        self.penalty: FloatArray = objective.penalty * (self.scale / float(objective.weights @ objective.lengths))

    def shuffled(self, batch_size: int) -> list[tuple[int, int]]:
        """The mini-batches of one epoch in random order."""
        edges = np.linspace(0, self.n_examples, max(1, round(self.n_examples / batch_size)) + 1).astype(int).tolist()
        return [(edges[b], edges[b + 1]) for b in self.rng.permutation(len(edges) - 1)]

    def weight(self, lo: int, hi: int) -> float:
        """The total weight of the positions of a batch."""
        return self._train.weight(lo, hi)

    def table(self) -> ResidualTable:
        """Room for the residuals of every batch."""
        return ResidualTable(self._train.features.offsets, self._train.features.n_labels)

    def slots(self, lo: int, hi: int) -> tuple[int, int]:
        """Where a batch is in the table."""
        return lo, hi

    def evaluate(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, Residual]:
        """The loss of a batch, without the penalty, and its gradient in the scores."""
        return self._train.evaluate(theta, lo, hi)

    def pull_back(self, residual: Residual, lo: int, hi: int) -> FloatArray:
        """The gradient in the parameters of a batch's gradient in the scores."""
        return self._train.features.block(lo, hi).adjoint((residual.R, residual.C))

    def problem(self, lo: int, hi: int) -> NoReturn:
        """Not offered: a chain has no bound of its own that is worth making."""
        raise ValueError("curvature must be 'fixed' on chains: mini-batches of chains have no quadratic bounds of their own")

    def curvature(self, rank: int | None = None, method: str = "exact") -> DiagonalSum:
        """An empty sum of curvature."""
        if rank is not None:
            raise ValueError(f"rank must be None on chains, whose curvature is kept as its diagonal; got {rank!r}")
        return DiagonalSum(*self._train.features.magnitudes(), self._train.features.n_labels)

    def add_curvature(self, total: DiagonalSum, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add a diagonal for the Hessian of a batch at theta."""
        if kind != "hessian":
            raise ValueError(f"bound must be 'hessian' on chains: their curvature is bounded by a diagonal; got {kind!r}")
        total.add(self._train.diagonal(theta, lo, hi), factor, self._train.ratio(theta, lo, min(hi, lo + PROBE)))

    def sample_rows(self) -> tuple[int, int]:
        """A random run of chains, enough to estimate curvature from."""
        count = min(self.n_examples, SAMPLE)
        start = int(self.rng.integers(0, self.n_examples - count + 1))
        return start, start + count

    def held_out(self, theta: FloatArray) -> float | None:
        """The loss of the held-out chains, scaled to the training part; None if there are none."""
        if self._held is None:
            return None
        count = len(self._held.w)
        return self._held.evaluate(theta, 0, count)[0] * self.scale / self._held.weight(0, count)


class _Part:
    """Some chains of a likelihood, copied in their order."""

    def __init__(self, objective: ChainObjective, order: Any) -> None:
        self.workers = objective.workers
        self.features = objective.features.take(order)
        self.y = objective.y[take_pieces(objective.features.offsets, order)[1]]
        self.w = objective.weights[order]

    def weight(self, lo: int, hi: int) -> float:
        return float(self.w[lo:hi] @ np.diff(self.features.offsets[lo : hi + 1]))

    def sums(self, theta: FloatArray, lo: int, hi: int) -> tuple[FloatArray, FloatArray, ChainSums]:
        """Scores of the chains lo..hi and sums over their labellings."""
        block = self.features.block(lo, hi)
        U, A = block.forward(theta)
        return U, A, ChainSums(U, A, block.offsets, self.w[lo:hi], self.workers)

    def evaluate(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, Residual]:
        """See `ChainBatches`."""
        U, A, sums = self.sums(theta, lo, hi)
        offsets, w = sums.offsets, self.w[lo:hi]
        y = self.y[self.features.offsets[lo] : self.features.offsets[hi]]
        scores = np.empty(hi - lo)
        viterbi.score(U, A.reshape(1, *A.shape), offsets, y, 0, hi - lo, scores)
        R, C = observed(y, offsets, w, U.shape[1])
        return float(w @ (sums.log_z - scores)), Residual(np.subtract(sums.P, R, out=R), sums.C - C)

    def diagonal(self, theta: FloatArray, lo: int, hi: int) -> FloatArray:
        """A diagonal above the Hessian, were positions independent.

        ``(sum_j x_j v_j)^2 <= m sum_j x_j^2 v_j^2`` for m entries; ``diag(p)`` and ``2 diag(p (1 - p))`` are above
        ``diag(p) - pp'``.
        """
        _, _, sums = self.sums(theta, lo, hi)
        w = np.repeat(self.w[lo:hi], np.diff(sums.offsets))[:, None]
        block = self.features.block(lo, hi)
        spread = sums.P * np.minimum(1.0, 2.0 - 2.0 * sums.P / w)
        return block.squared(spread * block.entries()[:, None], sums.C * 2.0)

    def ratio(self, theta: FloatArray, lo: int, hi: int) -> float:
        """The largest eigenvalue of the Hessian over its diagonal, about: labels that depend on each other add up."""
        diagonal = self.diagonal(theta, lo, hi)
        scaling = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0.0)
        _, _, sums = self.sums(theta, lo, hi)
        block = self.features.block(lo, hi)
        v = np.sign(scaling) * np.random.default_rng(0).standard_normal(len(scaling))
        size = 0.0
        for _ in range(PRODUCTS):
            v = v / max(float(np.sqrt((v * v).sum())), 1e-300)
            v = scaling * block.adjoint(sums.product(*block.forward(scaling * v)))
            size = float(np.sqrt((v * v).sum()))
        return size
