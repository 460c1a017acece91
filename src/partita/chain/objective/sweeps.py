"""Stochastic gradient descent on single chains: the cheapest way to the neighbourhood of the optimum."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.random import generator
from ...core.rates import best_rate
from ...core.results import FloatArray, IntArray
from ..kernels import sgd
from ..kernels.tuples import Chains, Weights
from .base import ChainObjective

#: Chains on which rates are compared,
SAMPLE = 1000
#: the first rate tried, for chains of weight one.
FIRST_RATE = 0.1


class ChainSweeps:
    """Epochs of steps ``theta -= eta_t (gradient of one chain + lam theta)`` with lam = penalty / n.

    Rates are ``eta_t = eta / (1 + eta lam t)`` at step t.
    The rate eta is the power of two times `FIRST_RATE` with the smallest loss on the way through a sample (Bottou's
    recipe). Steps are sequential and do not depend on the number of threads; an epoch costs about one evaluation of the
    objective on one thread. Chains whose sums lose digits are left out.

    Parameters
    ----------
    objective : ChainObjective
        With the same penalty for every parameter.
    theta : array of shape (size,)
        Where to start.
    random_state : int, Generator or None
        Seed of the order of the chains.
    """

    def __init__(self, objective: ChainObjective, theta: FloatArray, random_state: Any = None) -> None:
        self.objective = objective
        self.rng: np.random.Generator = generator(random_state)
        self._chains = np.flatnonzero(objective.weights)
        self._lambda = float(objective.penalty[0]) / len(self._chains)
        self._steps = 0.0
        f = objective.features
        self._weights, mask = f.unpack(theta), f.unpack(np.ones(f.size))
        self._data = (f.attributes, Chains(f.offsets, objective.weights), objective.y, mask)
        self.rate: float = self._calibrated()

    def _calibrated(self) -> float:
        sample = self.rng.permutation(self._chains)[:SAMPLE]
        scale = float(self.objective.weights[self._chains].mean())

        def loss(rate: float) -> float:
            return self._run(sample, rate, Weights(*(part.copy() for part in self._weights)))

        return best_rate(loss, FIRST_RATE / scale)

    def _run(self, order: IntArray, rate: float, weights: Weights) -> float:
        loss, hard = sgd.descend(*self._data, order, self._lambda, rate, self._steps, weights)
        return float(loss) if hard < len(order) else np.inf

    def advance(self) -> None:
        """One epoch."""
        self._run(self.rng.permutation(self._chains), self.rate, self._weights)
        self._steps += len(self._chains)

    def parameters(self) -> FloatArray:
        """The flat parameters."""
        return self.objective.features.pack(self._weights)
