"""The dual of Bethe learning: marginals of every example instead of parameters, moved by best configurations only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..core.results import FloatArray
from ..inference.frank_wolfe import MatchingEnergy

if TYPE_CHECKING:
    from .matching import MatchingLikelihood


class MatchingBlocks:
    """``L(tau) = ||d||^2 / (2 l2) - sum_i w_i H(tau_i)`` with ``d = sum_i w_i A_i'(y_i - tau_i)``, to be minimised.

    The parameters that belong to tau are ``d / l2``. L is never below the largest log-likelihood, and the sum of the gaps of
    all blocks is at least the distance.
    """

    def __init__(self, objective: MatchingLikelihood) -> None:
        self.l2 = objective.l2
        self._energies, self._maps, self._weights, self._taus = [], [], [], []
        rho = 1.0 if objective.rho is None else objective.rho
        for group in objective.groups:
            energy = MatchingEnergy(group.structure, np.zeros(group.structure.n_edges), rho)
            first = energy.start().mean(0)
            for b in range(len(group.weights)):
                self._energies.append(energy)
                self._maps.append(group.features.example(b))
                self._weights.append(float(group.weights[b]))
                self._taus.append(first.copy())
        self.n_blocks = len(self._taus)
        self._d = objective.observed.copy()
        for m in range(self.n_blocks):
            self._d -= self._weights[m] * self._maps[m].adjoint(self._taus[m][None])

    @property
    def parameters(self) -> FloatArray:
        return self._d / self.l2

    def value(self) -> float:
        entropies = [w * e.value(tau) for w, e, tau in zip(self._weights, self._energies, self._taus, strict=True)]
        return float(self._d @ self._d) / (2.0 * self.l2) - float(np.sum(entropies))

    def _toward(self, m: int, theta: FloatArray) -> tuple[FloatArray, FloatArray, float]:
        """The direction to the best configuration of a block, the change of d, and the gap."""
        tau, energy = self._taus[m], self._energies[m]
        scores = self._maps[m].forward(theta)[0] + energy.gradient(tau)
        delta = energy.best(scores) - tau
        return delta, self._weights[m] * self._maps[m].adjoint(delta[None]), self._weights[m] * float(scores @ delta)

    def step(self, block: int, size: float | None) -> float:
        """Move a block towards its best configuration, by a part or as far as is best; returns what the gap was."""
        delta, change, gap = self._toward(block, self.parameters)
        eta = self._line_search([block], [delta], change) if size is None else size
        self._taus[block] = self._taus[block] + eta * delta
        self._d = self._d - eta * change
        return gap

    def step_all(self, size: float | None) -> float:
        """Move all blocks at once by the same part; returns the gap."""
        theta = self.parameters
        found = [self._toward(m, theta) for m in range(self.n_blocks)]
        change = np.sum([one[1] for one in found], axis=0)
        everyone = list(range(self.n_blocks))
        eta = self._line_search(everyone, [one[0] for one in found], change) if size is None else size
        for m, (delta, _, _) in enumerate(found):
            self._taus[m] = self._taus[m] + eta * delta
        self._d = self._d - eta * change
        return float(sum(one[2] for one in found))

    def _line_search(self, blocks: list[int], deltas: list[FloatArray], change: FloatArray) -> float:
        """The best step: two numbers say all about the features."""
        slope, curve = -float(self._d @ change) / self.l2, float(change @ change) / self.l2

        def derivative(eta: float) -> float:
            out = slope + eta * curve
            for m, delta in zip(blocks, deltas, strict=True):
                out -= self._weights[m] * float(self._energies[m].gradient(self._taus[m] + eta * delta) @ delta)
            return out

        lo, hi = 0.0, 1.0
        if derivative(hi) <= 0.0:
            return hi
        for _ in range(30):
            middle = 0.5 * (lo + hi)
            if derivative(middle) < 0.0:
                lo = middle
            else:
                hi = middle
        return lo
