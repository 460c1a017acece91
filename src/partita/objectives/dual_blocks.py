"""The dual of Bethe learning: marginals of every example instead of parameters, moved by best configurations only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import brentq

from ..core.parallel import Workers
from ..core.results import FloatArray
from ..inference.frank_wolfe import certified

#: The best step: one of all the way would leave zeros, whose logarithms say nothing about the way back.
LONGEST = 0.99


@dataclass
class Block:
    """The marginals of an example, the free energy that they maximise when parameters are zero, the linear map from
    parameters to scores and its transpose, and the weight of the example."""

    tau: FloatArray
    energy: Any
    forward: Callable[[FloatArray], FloatArray]
    adjoint: Callable[[FloatArray], FloatArray]
    weight: float


class DualBlocks:
    """``L(tau) = sum_j d_j^2 / (2 penalty_j) - sum_i w_i H(tau_i)``, to be minimised; ``d = sum_i w_i A_i'(y_i - tau_i)``.

    The parameters that belong to tau are ``d / penalty``. L is never below the largest log-likelihood, and the sum of the
    gaps of all blocks is at least the distance. H has fixed scores added, if there are any.

    Parameters
    ----------
    blocks : sequence of Block
    observed : array
        ``sum_i w_i A_i' y_i``.
    penalty : float or array
        Above zero.
    constant : float
        Fixed scores of the observed configurations.
    workers : Workers
        Threads for steps of all blocks at once.
    """

    def __init__(
        self,
        blocks: Sequence[Block],
        observed: FloatArray,
        penalty: float | FloatArray,
        constant: float = 0.0,
        workers: Workers | None = None,
    ) -> None:
        self._blocks, self._penalty, self._constant = list(blocks), penalty, constant
        self.n_blocks: int = len(self._blocks)
        self._workers = workers or Workers(1)
        self._d = observed.copy()
        for block in self._blocks:
            self._d -= block.weight * block.adjoint(block.tau)

    @property
    def parameters(self) -> FloatArray:
        return self._d / self._penalty

    def value(self) -> float:
        entropies = sum(block.weight * block.energy.value(block.tau) for block in self._blocks)
        return 0.5 * float(self._d @ self.parameters) + self._constant - float(entropies)

    def _toward(self, block: Block, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """The direction to the best configuration of a block, the change of d, and the gap."""
        scores = block.forward(theta) + block.energy.gradient(block.tau)
        vertex = block.energy.best(scores)
        delta, gain = vertex - block.tau, certified(block.energy, scores, vertex, block.tau)
        return delta, block.weight * block.adjoint(delta), block.weight * gain

    def gap(self) -> float:
        """At least what the value is above its minimum."""
        theta = self.parameters
        inexact = sum(block.weight * block.energy.delta for block in self._blocks)
        return float(sum(self._toward(block, theta)[2] for block in self._blocks) + inexact)

    def step(self, block: int, size: float | None) -> float:
        """Move a block towards its best configuration, by a part or as far as is best; returns what the gap was."""
        return self._step([self._blocks[block]], size)

    def step_all(self, size: float | None) -> float:
        """Move all blocks at once by the same part; returns the gap."""
        return self._step(self._blocks, size)

    def _step(self, blocks: list[Block], size: float | None) -> float:
        theta = self.parameters
        found = self._workers.run(lambda block: self._toward(block, theta), [(block,) for block in blocks])
        change = np.sum([one[1] for one in found], axis=0)
        deltas = [one[0] for one in found]
        eta = self._line_search(blocks, deltas, change) if size is None else size
        for block, delta in zip(blocks, deltas, strict=True):
            block.tau = block.tau + eta * delta
        self._d = self._d - eta * change
        return float(sum(one[2] for one in found))

    def _line_search(self, blocks: list[Block], deltas: list[FloatArray], change: FloatArray) -> float:
        """The best step: two numbers say all about the features."""
        slope, curve = -float(self.parameters @ change), float(change @ (change / self._penalty))
        pairs = list(zip(blocks, deltas, strict=True))

        def derivative(eta: float) -> float:
            def one(block: Block, delta: FloatArray) -> float:
                return block.weight * float(block.energy.gradient(block.tau + eta * delta) @ delta)

            return slope + eta * curve - float(sum(self._workers.run(one, pairs)))

        if derivative(0.0) >= 0.0:
            return 0.0
        if derivative(LONGEST) <= 0.0:
            return LONGEST
        return float(brentq(derivative, 0.0, LONGEST, xtol=1e-10, rtol=1e-8))
