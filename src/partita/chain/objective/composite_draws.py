"""Some chains of a composite likelihood, whose windows are drawn when they are evaluated."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from ...core.arrays.pieces import take_pieces
from ...core.buffers import Buffers
from ...core.contracts import Product
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ..features.chain import ChainFeatures, Scores
from ..structure.forbidden import Forbidden
from ..structure.windows import Windows, WindowSums
from .counts import indicators


class Whole(Protocol):
    """What is asked of the likelihood of all chains."""

    features: ChainFeatures
    y: IntArray
    weights: FloatArray
    composite: CompositeLikelihood
    beta: FloatArray
    forbidden: Forbidden
    workers: Workers


class DrawnChains:
    """See `DrawnPart`."""

    def __init__(self, whole: Whole, rows: IntArray) -> None:
        self.features, self.composite, self.workers = whole.features.take(rows), whole.composite, whole.workers
        self.y: IntArray = whole.y[take_pieces(whole.features.offsets, rows)[1]]
        self.forbidden = whole.forbidden
        lengths = [None if order == FULL else int(order) for order in whole.composite.rates]
        self.windows: Windows = Windows.of_lengths(self.features.offsets, self.y, lengths)
        w = self.windows
        within = whole.composite.weights_within(w.group, w.chain)
        self.each: FloatArray = whole.weights[rows][w.chain] * within * whole.beta[w.group]

    def _sums(
        self, theta: FloatArray, rng: np.random.Generator | None
    ) -> tuple[WindowSums, Windows, FloatArray, Scores] | None:
        """Sums over the labels of windows, which these are, with weights, and scores; None if none is drawn."""
        weights = self.composite.selected(self.windows.group, self.windows.chain, rng) * self.each
        chosen = np.flatnonzero(weights)
        if not len(chosen):
            return None
        f, windows, weights = self.features, self.windows.take(chosen), weights[chosen]
        U, A = f.forward(theta)
        self.forbidden.mask(U, A, f.offsets)
        buffers, room = Buffers((f.n_positions, f.n_labels)), Buffers((len(windows.rows), f.n_labels))
        return WindowSums(U, A, windows, weights, self.workers, buffers, room), windows, weights, (U, A)

    def evaluate(self, theta: FloatArray, rng: np.random.Generator | None) -> tuple[float, FloatArray]:
        found, f = self._sums(theta, rng), self.features
        if found is None:
            return 0.0, np.zeros(f.size)
        sums, windows, weights, _ = found
        R, C = indicators(self.y, f.offsets, *windows.coverage(weights), f.n_labels)
        observed = f.adjoint((R, C))
        return sums.loss - float(observed @ theta), f.adjoint((sums.P, sums.C)) - observed

    def curvature(self, theta: FloatArray) -> tuple[FloatArray, Product]:
        found, f = self._sums(theta, None), self.features
        assert found is not None, "probabilities are above zero"
        sums = found[0]
        shape = (f.n_positions, f.n_labels)

        def product(v: FloatArray) -> FloatArray:
            return f.adjoint(sums.product(*f.forward(v), np.empty(shape)))

        return f.squared(*sums.diagonal(np.empty(shape))), product
