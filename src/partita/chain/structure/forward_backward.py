"""Forward-backward on many chains with common transition scores: what training asks for, as fast as possible."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...core.buffers import Buffers
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import forward_backward as kernels, forward_backward_log
from ..kernels.forward_backward_padded import padded
from ..kernels.tuples import Chains, Messages, Transitions


class ChainSums:
    """log Z and marginals at scores (U, A) by forward-backward, and how the marginals change with the scores.

    Parameters
    ----------
    U, A : arrays of shape (n_positions, n_labels) and (n_labels, n_labels)
        Scores of labels and transitions; -inf forbids.
    offsets : array of int
        Where each chain starts, and where the last ends.
    weights : array of shape (n_chains,)
        Non-negative.
    buffers : Buffers, optional
        Where arrays of the shape of U come from.

    Attributes
    ----------
    log_z : array of shape (n_chains,)
        -inf where every labelling is forbidden.
    P : array of shape (n_positions, n_labels)
        Probability of each label, times the weight of its chain.
    C : array of shape (n_labels, n_labels)
        Expected number of each transition, weighted.
    chains, transitions, messages : Chains, Transitions, Messages
        What the kernels were given, and what they left.
    """

    offsets: IntArray
    weights: FloatArray
    workers: Workers
    chains: Chains
    transitions: Transitions
    log_z: FloatArray

    def __init__(
        self,
        U: FloatArray,
        A: FloatArray,
        offsets: IntArray,
        weights: FloatArray,
        workers: Workers,
        buffers: Buffers | None = None,
    ) -> None:
        n = U.shape[1]
        self.offsets, self.weights, self.workers = offsets, weights, workers
        self.chains, self.transitions = Chains(offsets, weights), transition_factors(A)
        self.ranges: list[tuple[int, int]] = Workers.balanced(offsets, 6.0 * n * n * len(U))
        self.messages: Messages = Messages(*(np.empty(U.shape) if buffers is None else buffers.lend(self) for _ in range(3)))
        self.P, self.log_z = self.messages.P, np.empty(len(offsets) - 1)
        counts = np.zeros((len(self.ranges), *self.transitions.M.shape))
        given = (U, self.transitions, self.chains)
        tasks = [(*given, lo, hi, self.messages, counts[i], self.log_z) for i, (lo, hi) in enumerate(self.ranges)]
        self.n_hard: int = sum(workers.run(kernels.forward_backward, tasks))
        self._counts = counts.sum(0)[:, :n]  # without the factor M
        self.C = self._counts * self.transitions.M[:, :n]
        if self.n_hard:
            self._in_log_domain(U, A)

    def _in_log_domain(self, U: FloatArray, A: FloatArray) -> None:
        """Do the hard chains again. Hessian products do without them."""
        n, A3 = len(A), A.reshape(1, *A.shape)
        C = np.zeros((1, n, n))
        for s in np.flatnonzero(np.isnan(self.log_z)):
            lo, hi = self.offsets[s], self.offsets[s + 1]
            alpha, beta = np.empty((hi - lo, n)), np.empty((hi - lo, n))
            self.log_z[s] = log_z = forward_backward_log.log_forward(U, A3, lo, hi, alpha)
            if np.isfinite(log_z):
                forward_backward_log.log_backward(U, A3, lo, hi, beta)
                forward_backward_log.log_marginals(U, A3, lo, hi, alpha, beta, log_z, self.P)
                forward_backward_log.log_pairs(U, A3, lo, hi, alpha, beta, log_z, self.weights[s], C)
                self.P[lo:hi] *= self.weights[s]
        self.C += C[0]

    @cached_property
    def loss(self) -> float:
        """The weighted sum of log Z."""
        return float((self.weights * self.log_z).sum())

    def variances(self, out: FloatArray) -> FloatArray:
        """The variance of the indicator of each label, weighted."""
        self.workers.run(kernels.variances, [(self.P, self.chains, lo, hi, out) for lo, hi in self.ranges])
        return out

    def diagonal(self, out: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Variances of labels, the first in `out`, and as upper bounds on those of transitions their expected numbers."""
        return self.variances(out), self.C

    def product(self, dU: FloatArray, dA: FloatArray, out: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
        """The derivative of (P, C) along (dU, dA), the first part in `out` if given: a product with the loss's Hessian."""
        n = len(dA)
        M = self.transitions.M[:, :n]
        change = Transitions(*_padded(M * dA), self.transitions.shift)
        R, parts = np.empty(dU.shape) if out is None else out, np.zeros((len(self.ranges), n, n))
        state = (self.transitions, change, self.messages, dU, self.offsets)
        self.workers.run(kernels.hessian_product, [(*state, lo, hi, R, parts[i]) for i, (lo, hi) in enumerate(self.ranges)])
        return R, M * (parts.sum(0) + dA * self._counts)


def transition_factors(A: FloatArray) -> Transitions:
    """exp(A - shift) and its transpose as the kernels want them, and the shift."""
    shift = float(A.max())
    shift = shift if np.isfinite(shift) else 0.0
    return Transitions(*_padded(np.exp(A - shift)), shift)


def _padded(M: FloatArray) -> tuple[FloatArray, FloatArray]:
    """M and its transpose with rows padded by zeros to a multiple of four."""
    n = len(M)
    out = np.zeros((2, n, padded(n)))
    out[0, :, :n], out[1, :, :n] = M, M.T
    return out[0], out[1]
