"""Penalised negative (composite) log-likelihood of chains of tokens and labels."""

from __future__ import annotations

import copy
from functools import cached_property

import numpy as np

from ...core.buffers import Buffers, Owner
from ...core.contracts.capabilities import Capability, Product
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_weights
from ...objectives.bounds.blocks import BlockCurvature, softmax_blocks
from ...objectives.bounds.quadratic import BOUNDED, BoundedPoint
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ...objectives.penalized import PenalizedObjective, diagonal_scaling
from ..structure.windows import Unrolled, Windows, WindowSums
from .base import POWER
from .composite import ChainObjects, moments_by_order
from .counts import transition_counts


class BoltzmannChainLikelihood(PenalizedObjective):
    """``F = sum_j w_j (-log p(x_A, y_A | y_B)) + penalty``, a sum over windows of chains of tokens x and labels y.

    ``p(x, y)`` is proportional to ``exp(sum_t theta[x_t, y_t] + sum_t A[y_{t-1}, y_t])`` among all of the same length.
    A are windows of positions, B the labels around them; the whole chain for the likelihood. Tokens do not depend on each
    other given the labels, so that their sums are ``b[y] = log sum_x sizes[x] exp(theta[x, y])`` at every position, and
    log Z of a window depends on its length and the labels around it only: few windows are different.

    Parameters
    ----------
    x, y : arrays of int
        Token and label of every position.
    offsets : array of int
        Where each chain starts, and where the last ends.
    sizes : array
        How many tokens share each row of weights.
    n_labels : int
    composite : CompositeLikelihood, optional
        Which windows count, and how much. Default: whole chains.
    weights : array, optional
        Weights of the chains.
    l2 : float
        Penalty on the weights of every token and transition; on those that tokens share, for each of them.

    Notes
    -----
    Parameters are theta (tokens, labels) and A (labels, labels), flat. `scale` is the number of positions in windows.
    """

    x: IntArray
    y: IntArray
    offsets: IntArray
    n_labels: int
    windows: Windows
    window_weights: FloatArray
    different: Unrolled
    which: IntArray

    def __init__(
        self,
        x: IntArray,
        y: IntArray,
        offsets: IntArray,
        sizes: FloatArray,
        n_labels: int,
        *,
        composite: CompositeLikelihood | None = None,
        weights: FloatArray | None = None,
        l2: float = 0.0,
        workers: Workers | None = None,
    ) -> None:
        self.x, self.y, self.offsets, self.n_labels = x, y, offsets, n_labels
        self.sizes: FloatArray = np.asarray(sizes, dtype=np.float64)
        self.composite: CompositeLikelihood = composite or CompositeLikelihood({FULL: 1.0})
        self.workers: Workers = workers or Workers(1)
        self.n_examples: int = len(offsets) - 1
        shares = np.repeat(np.where(self.sizes > 0.0, self.sizes, 1.0), n_labels)  # a row of no token stays at zero
        self.penalty: FloatArray = l2 * np.concatenate([shares, np.ones(n_labels**2)])
        self.size: int = len(self.penalty)
        self.capabilities: frozenset[Capability] = BOUNDED | {
            *(Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER)
        }
        self.objects: ChainObjects = ChainObjects(
            offsets, y, check_weights("weights", weights, self.n_examples), self.composite
        )
        self.buffers: Buffers = Buffers((1, n_labels))
        self._weigh(self.composite.beta)

    def _weigh(self, beta: FloatArray) -> None:
        """Choose the windows that count."""
        self.beta = beta
        self.windows, self.window_weights = self.objects.choose(beta)
        self.different, self.which = self.windows.alike()
        self.weights: FloatArray = np.bincount(self.which, weights=self.window_weights).astype(np.float64)
        self.scale: float = float(self.window_weights @ self.windows.length) * self.objects.held_down
        self.observed: FloatArray = self.count(self.window_weights)
        self.room: Buffers = Buffers((len(self.different.rows), self.n_labels))

    def count(self, weights: FloatArray) -> FloatArray:
        """Numbers of pairs of token and label, and of transitions, in windows with weights."""
        n = self.n_labels
        labels, moves = self.windows.coverage(weights)
        pairs = np.bincount(self.x * n + self.y, weights=labels, minlength=len(self.sizes) * n)
        return np.concatenate([pairs, transition_counts(self.y, self.offsets, moves, n).ravel()])

    def with_weights(self, beta: FloatArray) -> BoltzmannChainLikelihood:
        """The same objects with other weights of the orders."""
        twin = copy.copy(self)
        twin._weigh(np.asarray(beta, dtype=np.float64))
        return twin

    def moments(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See `moments_by_order`."""
        return moments_by_order(self, theta)

    def unpack(self, parameters: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights of tokens and of transitions."""
        n = self.n_labels
        return parameters[: -n * n].reshape(-1, n), parameters[-n * n :].reshape(n, n)

    def at(self, parameters: FloatArray) -> BoltzmannChainPoint:
        """The objective seen from `parameters`."""
        return BoltzmannChainPoint(self, np.ascontiguousarray(parameters, dtype=np.float64))


def token_sums(theta: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Of every label, the logarithm of the sum over tokens, and the probability of each row of tokens."""
    top = theta.max(axis=0)
    q = sizes[:, None] * np.exp(theta - top)
    total = q.sum(axis=0)
    return top + np.log(total), q / total


class BoltzmannChainPoint(BoundedPoint):
    """The likelihood at one parameter vector."""

    parameters: FloatArray
    b: FloatArray
    q: FloatArray

    objective: BoltzmannChainLikelihood

    def __init__(self, objective: BoltzmannChainLikelihood, parameters: FloatArray) -> None:
        self.objective, self.parameters = objective, parameters
        o, (theta, self.A) = objective, objective.unpack(parameters)
        self.b, self.q = token_sums(theta, o.sizes)
        self.value: float = self.sums.loss - float((o.observed * parameters).sum()) + o.penalty_value(parameters)

    @cached_property
    def sums(self) -> WindowSums:
        """Sums over the labels of the windows that differ."""
        o = self.objective
        return WindowSums(self.b[None], self.A, o.different, o.weights, o.workers, o.buffers, o.room)

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        return self._expected(self.sums.P, self.sums.C) - o.observed + o.penalty_gradient(self.parameters)

    def _expected(self, P: FloatArray, C: FloatArray) -> FloatArray:
        """Numbers of pairs of token and label and of transitions, from those of labels."""
        return np.concatenate([(self.q * P).ravel(), C.ravel()])

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> v over a power of the diagonal of the Hessian."""
        return diagonal_scaling(self.diagonal, 1e-12, POWER)

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v."""
        o = self.objective

        def product(v: FloatArray) -> FloatArray:
            owner, (d_theta, dA) = Owner(), o.unpack(v)
            db = (self.q * d_theta).sum(axis=0)
            dP, dC = self.sums.product(db[None], np.ascontiguousarray(dA), o.buffers.lend(owner))
            tokens = self.q * (dP + self.sums.P * (d_theta - db))
            return np.concatenate([tokens.ravel(), dC.ravel()]) + o.penalty * v

        return product

    def curvature_above(self, kind: str) -> tuple[Product, FloatArray]:
        """By Hölder's inequality over the positions and the transitions of each window (see `objectives.bounds.blocks`).

        Weights are the same everywhere, so with the same share c for all positions, and one for all transitions, the mean of
        the probabilities serves for all of them: a logarithm of means is above the mean of logarithms.
        """
        blocks = self._blocks(kind)
        return blocks.product, blocks.diagonal()

    def _blocks(self, kind: str) -> BlockCurvature:
        o, different = self.objective, self.objective.different
        steps = different.length - 1 + (different.left >= 0) + (different.right >= 0)
        counts = np.array([different.length.max(), steps.max()], dtype=np.float64)
        parts = [(self.q * self.sums.P).ravel(), self.sums.C.ravel()]
        weights = np.array([part.sum() for part in parts])
        means = np.concatenate([part / max(total, 1e-300) for part, total in zip(parts, weights, strict=True)])
        offsets = np.cumsum([0, *map(len, parts)])
        blocks = softmax_blocks(means, offsets, kind, o.workers)
        roots = np.sqrt(weights * blocks.others / np.maximum(counts, 1.0))
        shares = roots / max(float(roots @ counts), 1e-300)
        return blocks.scaled(np.divide(weights, shares, out=np.zeros(2), where=shares > 0.0))

    def information(self) -> FloatArray:
        """The diagonal of the Hessian, no penalty, as if the labels of a window were independent."""
        owner = Owner()
        variances, C = self.sums.diagonal(self.objective.buffers.lend(owner))
        tokens = self.q * (1.0 - self.q) * self.sums.P + self.q**2 * variances
        return np.concatenate([tokens.ravel(), C.ravel()])

    @cached_property
    def diagonal(self) -> FloatArray:
        """The same with the penalty."""
        return np.maximum(self.information() + self.objective.penalty, 1e-12)

    def score(self, factors: FloatArray) -> FloatArray:
        """The gradient of the log-likelihood, no penalty, with the weight of every chain multiplied by a factor."""
        o, owner = self.objective, Owner()
        each = factors[o.windows.chain] * o.window_weights
        factor = np.bincount(o.which, weights=each) / o.weights
        return o.count(each) - self._expected(*self.sums.weighted(factor, o.buffers.lend(owner)))
