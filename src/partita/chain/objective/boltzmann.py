"""Penalised negative (composite) log-likelihood of chains of tokens and labels."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.arrays.pieces import take_pieces
from ...core.buffers import Buffers, Owner
from ...core.contracts.capabilities import Capability, Product
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_weights
from ...objectives.batches import SumOverExamples
from ...objectives.bounds.blocks import BlockCurvature, softmax_blocks
from ...objectives.bounds.quadratic import BOUNDED, BoundedPoint
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ...objectives.expectation import em_step
from ...objectives.penalized import diagonal_scaling
from ..structure.forward_backward import ChainSums
from ..structure.windows import Unrolled, Windows, WindowSums
from .base import POWER
from .composite import ChainObjects, moments_by_order
from .counts import transition_counts
from .partial import Partial

#: Numbers that rows of scores may hold at a time.
CHUNK = 20_000_000


class BoltzmannChainLikelihood(SumOverExamples):
    """``F = sum_j w_j (-log p(x_A, y_A | y_B)) + penalty``, a sum over windows of chains of tokens x and labels y.

    ``p(x, y)`` is proportional to ``exp(sum_t theta[x_t, y_t] + sum_t A[y_{t-1}, y_t])`` among all of the same length.
    A are windows of positions, B the labels around them; the whole chain for the likelihood. Tokens do not depend on each
    other given the labels, so that their sums are ``b[y] = log sum_x sizes[x] exp(theta[x, y])`` at every position, and
    log Z of a window depends on its length and the labels around it only: few windows are different.

    Parameters
    ----------
    x, y : arrays of int
        Token and label of every position; ``-1 - k`` for a label that is only known to be in row k of `sets`, and is
        summed out: then F is not convex, and takes whole chains.
    offsets : array of int
        Where each chain starts, and where the last ends.
    sizes : array
        How many tokens share each row of weights.
    n_labels : int
    sets : bool array of shape (n_sets, n_labels), optional
        Labels allowed where they are not known.
    composite : CompositeLikelihood, optional
        Which windows count, and how much. Default: whole chains.
    weights : array, optional
        Weights of the chains.
    shares : array, optional
        How much of each window is used. Default: as the policy draws.
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
        sets: Any = None,
        composite: CompositeLikelihood | None = None,
        weights: FloatArray | None = None,
        shares: FloatArray | None = None,
        l2: float = 0.0,
        workers: Workers | None = None,
    ) -> None:
        self.x, self.y, self.offsets, self.n_labels = x, y, offsets, n_labels
        self.sizes: FloatArray = np.asarray(sizes, dtype=np.float64)
        self.composite: CompositeLikelihood = composite or CompositeLikelihood({FULL: 1.0})
        self.sets: NDArray[Any] = np.zeros((0, n_labels), bool) if sets is None else np.asarray(sets, dtype=bool)
        self.convex: bool = bool(np.min(y) >= 0)
        if not self.convex and set(self.composite.rates) != {FULL}:
            raise ValueError("composite likelihoods need known labels: they condition on the neighbours of a window")
        self.workers: Workers = workers or Workers(1)
        self.n_examples: int = len(offsets) - 1
        counts = np.repeat(np.where(self.sizes > 0.0, self.sizes, 1.0), n_labels)  # a row of no token stays at zero
        self.penalty: FloatArray = l2 * np.concatenate([counts, np.ones(n_labels**2)])
        self.size: int = len(self.penalty)
        self.capabilities: frozenset[Capability] = BOUNDED | {
            *(Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER, Capability.BATCHES)
        }
        if not self.convex:
            self.capabilities |= {Capability.EM_STEP}
        self.chain_weights: FloatArray = check_weights("weights", weights, self.n_examples)
        self.objects: ChainObjects = ChainObjects(offsets, y, self.chain_weights, self.composite, shares)
        self.buffers: Buffers = Buffers((1, n_labels))
        self._weigh(self.composite.beta)

    def _weigh(self, beta: FloatArray) -> None:
        """Choose the windows that count."""
        self.beta = beta
        self.windows, self.window_weights = self.objects.choose(beta)
        self.different, self.which = self.windows.alike()
        self.weights: FloatArray = np.bincount(self.which, weights=self.window_weights).astype(np.float64)
        self.scale: float = float(self.window_weights @ self.windows.length) * self.objects.held_down
        by_chain: FloatArray = np.bincount(self.windows.chain, self.window_weights, self.n_examples).astype(np.float64)
        self.partial: Partial | None = Partial.of(self.y, self.sets, self.offsets, by_chain)
        self.observed: FloatArray = self.count(self.window_weights)
        self.room: Buffers = Buffers((len(self.different.rows), self.n_labels))

    def count(self, weights: FloatArray) -> FloatArray:
        """Numbers of pairs of token and label, and of transitions, in windows with weights; of known chains."""
        n, y = self.n_labels, np.maximum(self.y, 0)
        labels, moves = self.windows.coverage(weights)
        if self.partial is not None:
            labels[self.partial.rows] = moves[self.partial.rows] = 0.0
        pairs = np.bincount(self.x * n + y, weights=labels, minlength=len(self.sizes) * n)
        return np.concatenate([pairs, transition_counts(y, self.offsets, moves, n).ravel()])

    def expecting(self, statistics: FloatArray) -> BoltzmannChainLikelihood:
        """The likelihood of the same chains whose observed features, summed with weights, are these."""
        twin = copy.copy(self)
        twin.partial, twin.convex, twin.observed = None, True, statistics
        return twin

    def counts_by_chain(self) -> Any:
        """What `count` sums over chains, with the weights of the windows: a sparse matrix, (chains, parameters)."""
        n, tokens, y = self.n_labels, len(self.sizes) * self.n_labels, np.maximum(self.y, 0)
        chain = np.repeat(np.arange(self.n_examples), np.diff(self.offsets))
        labels, moves = self.windows.coverage(self.window_weights)
        if self.partial is not None:
            labels[self.partial.rows] = moves[self.partial.rows] = 0.0
        inner = np.ones(len(self.y), bool)
        inner[self.offsets[:-1]] = False
        into = np.flatnonzero(inner)
        places = np.concatenate([self.x * n + y, tokens + y[into - 1] * n + y[into]])
        values = np.concatenate([labels, moves[into]])
        return sp.csr_matrix((values, (np.concatenate([chain, chain[into]]), places)), (self.n_examples, self.size))

    @property
    def is_full(self) -> bool:
        """Whether this is the likelihood of whole chains."""
        return list(self.composite.rates) == [FULL]

    def with_composite(self, composite: CompositeLikelihood | None) -> BoltzmannChainLikelihood:
        """Another likelihood of the same chains."""
        twin = copy.copy(self)
        twin.composite = composite or CompositeLikelihood({FULL: 1.0})
        twin.objects = ChainObjects(self.offsets, self.y, self.chain_weights, twin.composite)
        twin._weigh(twin.composite.beta)
        return twin

    def with_data(self, x: IntArray, y: IntArray, offsets: IntArray, sets: Any) -> BoltzmannChainLikelihood:
        """The same likelihood of other chains, all with weight one."""
        twin = copy.copy(self)
        twin.x, twin.y, twin.offsets, twin.n_examples = x, y, offsets, len(offsets) - 1
        twin.sets = np.zeros((0, self.n_labels), bool) if sets is None else np.asarray(sets, dtype=bool)
        twin.convex = bool(np.min(y) >= 0)
        twin.chain_weights = np.ones(twin.n_examples)
        twin.objects = ChainObjects(offsets, y, twin.chain_weights, twin.composite)
        twin._weigh(self.beta)
        return twin

    def with_weights(self, beta: FloatArray) -> BoltzmannChainLikelihood:
        """The same objects with other weights of the orders."""
        twin = copy.copy(self)
        twin._weigh(np.asarray(beta, dtype=np.float64))
        return twin

    @property
    def masses(self) -> FloatArray:
        """The weighted number of labels in windows of each chain."""
        return self.objects.masses(self.beta)

    def part(self, rows: IntArray) -> BoltzmannChainLikelihood:
        offsets, where = take_pieces(self.offsets, rows)
        given: dict[str, Any] = {"sets": self.sets, "composite": self.composite, "workers": self.workers}
        given |= {"shares": self.objects.shares_of(rows), "weights": self.chain_weights[rows]}
        data = self.x[where], self.y[where], offsets, self.sizes, self.n_labels
        twin = BoltzmannChainLikelihood(*data, **given)
        return twin if np.array_equal(self.beta, twin.beta) else twin.with_weights(self.beta)

    def moments(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See `moments_by_order`."""
        return moments_by_order(self, theta)

    spread = moments

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
        loss = self.sums.loss - (0.0 if self.known is None else self.known.loss)
        self.value: float = loss - float((o.observed * parameters).sum()) + o.penalty_value(parameters)

    @cached_property
    def sums(self) -> WindowSums:
        """Sums over the labels of the windows that differ."""
        o = self.objective
        return WindowSums(self.b[None], self.A, o.different, o.weights, o.workers, o.buffers, o.room)

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        expected = self._expected(self.sums.P, self.sums.C)
        if self.known is not None:
            expected = expected - self._placed(self.known.P, self.known.C)
        return expected - o.observed + o.penalty_gradient(self.parameters)

    @cached_property
    def known(self) -> ChainSums | None:
        """Sums over the labels that agree with what is known, of chains some of whose labels are not."""
        o = self.objective
        return None if o.partial is None else o.partial.sums(self._token_scores, self.A, o.workers)

    @property
    def _token_scores(self) -> FloatArray:
        """The weights of the tokens of those chains, a row for each position."""
        o = self.objective
        assert o.partial is not None
        return o.unpack(self.parameters)[0][o.x[o.partial.rows]]

    def _placed(self, P: FloatArray, C: FloatArray, partial: Partial | None = None) -> FloatArray:
        """Numbers for the labels of those positions, and for transitions, at their places among the parameters."""
        o = self.objective
        where = partial or o.partial
        assert where is not None
        tokens = np.zeros((len(o.sizes), o.n_labels))
        np.add.at(tokens, o.x[where.rows], P)
        return np.concatenate([tokens.ravel(), C.ravel()])

    def _expected_of_known(self, partial: Partial) -> FloatArray:
        """Expected features of a chain, given what is known of its labels, times its weight."""
        o = self.objective
        sums = partial.sums(o.unpack(self.parameters)[0][o.x[partial.rows]], self.A, o.workers)
        return self._placed(sums.P, sums.C, partial)

    def em_step(self) -> FloatArray:
        """The parameters that fit the labels that are expected here, where they are not known."""
        return em_step(self.objective, self)

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
            change = np.concatenate([tokens.ravel(), dC.ravel()])
            if self.known is not None and o.partial is not None:
                change -= self._placed(*self.known.product(d_theta[o.x[o.partial.rows]], np.ascontiguousarray(dA)))
            return change + o.penalty * v

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
        found = o.count(each)
        if o.partial is not None:
            weights = factors[o.partial.chains] * o.partial.weights
            for sign in (1.0, -1.0):  # sums take weights that are not negative
                sums = o.partial.sums(self._token_scores, self.A, o.workers, np.maximum(sign * weights, 0.0))
                found = found + sign * self._placed(sums.P, sums.C)
        return found - self._expected(*self.sums.weighted(factor, o.buffers.lend(owner)))

    def score_chunks(self) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each chain, (chains, parameters), some chains at a time."""
        o = self.objective
        each = np.array([self._expected_in(d) for d in range(len(o.different))])
        windows = (o.window_weights, (o.windows.chain, o.which))
        expected = sp.csr_matrix(windows, (o.n_examples, len(each)))
        observed, step = o.counts_by_chain(), max(1, CHUNK // o.size)
        for lo in range(0, o.n_examples, step):
            rows = observed[lo : lo + step].toarray() - expected[lo : lo + step] @ each
            if o.partial is not None:
                for k in np.flatnonzero((o.partial.chains >= lo) & (o.partial.chains < lo + step)):
                    rows[o.partial.chains[k] - lo] += self._expected_of_known(o.partial.only(int(k)))
            yield rows

    def _expected_in(self, window: int) -> FloatArray:
        """Expected features of one of the windows that differ."""
        o, owner = self.objective, Owner()
        factor = np.zeros(len(o.weights))
        factor[window] = 1.0 / o.weights[window]
        return self._expected(*self.sums.weighted(factor, o.buffers.lend(owner)))
