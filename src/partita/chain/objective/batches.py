"""Likelihoods of chains as sums over chains: the likelihood of some of them, its gradient in the scores, its curvature."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arrays.pieces import take_pieces
from ...core.contracts.capabilities import Product
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...objectives.batches import SumOverExamples
from ...softmax import DiagonalSum
from ..features.chain import ChainFeatures, Scores
from ..structure.forward_backward import ChainSums


class ChainSum(SumOverExamples):
    """A sum over chains, of which residuals are expected less observed labels (positions, labels) and transitions.

    Curvature is a diagonal above it, were the positions of a chain independent; no other is cheap enough. How far they are
    from that is measured.
    """

    features: ChainFeatures
    workers: Workers
    weights: Any
    lengths: Any
    y: IntArray

    @property
    def masses(self) -> FloatArray:
        """The weighted number of positions of each chain."""
        return np.asarray(self.weights * self.lengths)

    def taken(self, rows: IntArray) -> tuple[ChainFeatures, IntArray]:
        """The map and the labels of some chains."""
        return self.features.take(rows), self.y[take_pieces(self.features.offsets, rows)[1]]

    @abstractmethod
    def observed_scores(self) -> Scores:
        """Weighted indicators of the labels that are known and of the transitions between them."""

    @abstractmethod
    def fresh_sums(self, scores: Scores) -> tuple[Any, ChainSums | None, IntArray]:
        """Sums over all labellings, and over those that agree with what is known, with the rows that these are of."""

    @abstractmethod
    def scores(self, theta: FloatArray, out: FloatArray) -> Scores: ...

    def evaluate(self, theta: FloatArray) -> tuple[float, Scores]:
        scores = self.scores(theta, np.empty((self.features.n_positions, self.features.n_labels)))
        sums, known, rows = self.fresh_sums(scores)
        observed = self.observed_scores()
        loss = sums.loss - sum(_inner(a, b) for a, b in zip(observed, scores, strict=True))
        residual = np.subtract(sums.P, observed[0], out=observed[0]), sums.C - observed[1]
        if known is not None:
            loss -= known.loss
            residual[0][rows] -= known.P
            residual = residual[0], residual[1] - known.C
        return float(loss), residual

    def pull_back(self, residual: Sequence[FloatArray]) -> FloatArray:
        R, C = residual
        return self.features.adjoint((R, C))

    def curvature(self, rank: int | None, method: str) -> DiagonalSum:
        if rank is not None:
            raise ValueError(f"rank must be None on chains, whose curvature is kept as its diagonal; got {rank!r}")
        return DiagonalSum(*self.features.magnitudes(), self.features.n_labels)

    @property
    def curvature_is_dense(self) -> bool:
        return False

    @abstractmethod
    def coverage(self) -> Scores: ...

    def convex_diagonal(self, theta: FloatArray) -> FloatArray:
        """A diagonal above the Hessian of log Z, were positions independent.

        ``(sum_j x_j v_j)^2 <= m sum_j x_j^2 v_j^2`` for m entries; ``diag(p)`` and ``2 diag(p (1 - p))`` are above
        ``diag(p) - pp'``.
        """
        f = self.features
        sums = self.fresh_sums(self.scores(theta, np.empty((f.n_positions, f.n_labels))))[0]
        w = np.maximum(self.coverage()[0], 1e-300)[:, None]
        spread = sums.P * np.minimum(1.0, 2.0 - 2.0 * np.minimum(sums.P / w, 1.0))
        return f.squared(spread * f.entries()[:, None], sums.C * 2.0)

    def convex_product(self, theta: FloatArray) -> Product:
        """Products with the curvature of log Z."""
        f = self.features
        sums = self.fresh_sums(self.scores(theta, np.empty((f.n_positions, f.n_labels))))[0]
        return lambda v: f.adjoint(sums.product(*f.forward(v), np.empty((f.n_positions, f.n_labels))))


def _inner(weights: FloatArray, scores: FloatArray) -> float:
    """The sum of products; what has no weight may be -inf."""
    where = np.flatnonzero(weights)
    return float(weights.ravel()[where] @ scores.ravel()[where])
