"""Penalised negative composite log-likelihood of chains."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from ...core.arrays.pieces import take_pieces
from ...core.arrays.weights import held_down
from ...core.buffers import Buffers, Owner
from ...core.contracts.batches import AnyBatchSource
from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...objectives.composite.draws import DrawnBatches
from ...objectives.composite.likelihood import FULL, PAIRS, CompositeLikelihood, as_composite
from ...objectives.information import dense_hessian
from ...objectives.l1 import mixture_divergence
from ..bounds import SharedCurvature
from ..features.chain import ChainFeatures, Scores
from ..kernels import tuples, viterbi
from ..structure.windows import Windows, WindowSums
from .base import ChainObjective, ChainObjectivePoint
from .composite_draws import DrawnChains
from .counts import indicators

#: Parameters up to which the diagonal of the Hessian is exact where weights are chosen by it.
EXACT = 150
#: Numbers that rows of scores may hold at a time.
CHUNK = 20_000_000
#: Fewest random combinations of the scores of chains, and parameters times combinations that are enough.
DRAWS, ENOUGH = 30, 20_000
#: Combinations for each parameter from which covariances are whole matrices.
DRAWS_EACH = 10


class ChainObjects:
    """The windows of chains that a composite likelihood is about, and how much of each is used.

    Parameters
    ----------
    offsets, y : arrays of int
        Where each chain starts, and where the last ends; the label of every position.
    weights : array
        One weight for each chain.
    composite : CompositeLikelihood
    shares : array, optional
        How much of each window is used. Default: as the policy draws.
    """

    def __init__(
        self,
        offsets: IntArray,
        y: IntArray,
        weights: FloatArray,
        composite: CompositeLikelihood,
        shares: FloatArray | None = None,
    ) -> None:
        check_on_chains(composite)
        lengths = [None if order == FULL else int(order) for order in composite.rates]
        self.windows: Windows = Windows.of_lengths(offsets, y, lengths)
        drawn = composite.shares(self.windows.group, self.windows.chain) if shares is None else shares
        self.shares: FloatArray = drawn
        within = composite.weights_within(self.windows.group, self.windows.chain)
        self.weights: FloatArray = weights[self.windows.chain] * self.shares * within
        extents = np.diff(offsets)
        self.held_down: float = float(held_down(weights) @ extents) / float(weights @ extents)

    def shares_of(self, chains: IntArray) -> FloatArray:
        """How much of the windows of some chains is used."""
        return self.shares[take_pieces(self.windows.by_chain, chains)[1]]

    def masses(self, beta: FloatArray) -> FloatArray:
        """The weighted number of labels in windows of each chain."""
        w = self.windows
        each = self.weights * beta[w.group] * w.length
        return np.asarray(np.bincount(w.chain, weights=each, minlength=len(w.chains) - 1), dtype=np.float64)

    def choose(self, beta: FloatArray) -> tuple[Windows, FloatArray]:
        """The windows that count with these weights of the orders, and their weights."""
        weights = self.weights * beta[self.windows.group]
        chosen = np.flatnonzero(weights)
        if not len(chosen):
            raise ValueError("no object of the composite likelihood was drawn; raise the probabilities in orders")
        return self.windows.take(chosen), weights[chosen]


class ChainComposite(ChainObjective):
    """``F(theta) = sum_j w_j (-log p(y_A | y_B)) + 1/2 sum_j penalty_j theta_j^2``, a sum over windows of chains.

    A window A is k labels in a row, B the labels before and after it. It is itself a chain, whose ends have the scores
    of the transitions from and to the known neighbours. Its weight is that of its chain, times that of its order, times
    how much of it is used (see `CompositeLikelihood`); windows without weight are not computed. A chain shorter than k
    is one window.

    `scale` is the number of labels in windows, weighted: ``tol`` means the same for all policies and weights.

    Parameters
    ----------
    features, y, **options
        See `ChainObjective`. Every label must be known.
    composite : CompositeLikelihood
    """

    composite: CompositeLikelihood
    windows: Windows
    window_weights: FloatArray

    def __init__(
        self,
        features: ChainFeatures,
        y: IntArray,
        composite: CompositeLikelihood,
        shares: FloatArray | None = None,
        **options: Any,
    ) -> None:
        if np.min(y) < 0:
            raise ValueError("composite likelihoods need known labels: they condition on the neighbours of a window")
        super().__init__(features, y, **options)
        self.composite = composite
        self.objects: ChainObjects = ChainObjects(features.offsets, self.y, self.weights, composite, shares)
        self._weigh(composite.beta)

    def _weigh(self, beta: FloatArray) -> None:
        """Choose the windows that count."""
        self.beta = beta
        self.windows, self.window_weights = self.objects.choose(beta)
        self.scale: float = float(self.window_weights @ self.windows.length) * self.objects.held_down
        self.__dict__.pop("observed", None)
        self.room: Buffers = Buffers((len(self.windows.rows), self.features.n_labels))
        self.__dict__.pop("least_diagonal", None)

    def observed_scores(self) -> Scores:
        """Indicators of the labels in windows, and of the transitions at their ends, weighted."""
        return self._indicators(self.window_weights)

    def _indicators(self, weights: FloatArray) -> Scores:
        f = self.features
        return indicators(self.y, f.offsets, *self.windows.coverage(weights), f.n_labels)

    @property
    def masses(self) -> FloatArray:
        """The weighted number of labels in windows of each chain."""
        return self.objects.masses(self.beta)

    def part(self, rows: IntArray) -> ChainComposite:
        (features, y), shares = self.taken(rows), self.objects.shares_of(rows)
        given: dict[str, Any] = {"forbidden": self.forbidden, "workers": self.workers, "weights": self.weights[rows]}
        twin = ChainComposite(features, y, self.composite, shares, **given)
        return twin if np.array_equal(self.beta, twin.beta) else twin.with_weights(self.beta)

    def fresh_sums(self, scores: Scores) -> tuple[WindowSums, None, IntArray]:
        shapes = self.buffers.shape, self.room.shape
        buffers, room = (Buffers(shape) for shape in shapes)
        sums = WindowSums(*scores, self.windows, self.window_weights, self.workers, buffers, room)
        return sums, None, np.zeros(0, np.int64)

    def of(self, features: ChainFeatures, y: IntArray, sets: Any) -> ChainComposite:
        """The same objects of other chains, with weight one and no penalty."""
        options: dict[str, Any] = {"sets": sets, "forbidden": self.forbidden}
        return ChainComposite(features, y, self.composite, **options).with_weights(self.beta)

    def with_weights(self, beta: FloatArray) -> ChainComposite:
        """The same objects with other weights of the orders."""
        twin = copy.copy(self)
        twin._weigh(np.asarray(beta, dtype=np.float64))
        return twin

    def drawn_part(self, rows: IntArray) -> DrawnChains:
        """Some chains, whose windows are drawn when they are evaluated."""
        return DrawnChains(self, rows)

    def batches(self, random_state: Any = None, validation: float = 0.0) -> AnyBatchSource:
        """The chains as mini-batches in random order; windows that are refreshed are drawn at every visit."""
        if self.composite.leaves_out:
            return DrawnBatches(self, random_state, validation)
        return super().batches(random_state, validation)

    def coverage(self) -> Scores:
        """The weight of the label of every position, and of the transition into it."""
        return self.windows.coverage(self.window_weights)

    @property
    def pieces(self) -> tuple[tuples.Windows, FloatArray]:
        """What `kernels.likelihood_pass` sums over, and its weights."""
        return self.windows.layout, self.window_weights

    def sums(self, scores: Scores) -> WindowSums:
        """Sums over the labels of all windows."""
        return WindowSums(*scores, self.windows, self.window_weights, self.workers, self.buffers, self.room)

    def at(self, parameters: FloatArray) -> CompositePoint:
        """The objective seen from `parameters`."""
        return CompositePoint(self, np.ascontiguousarray(parameters, dtype=np.float64))

    def moments(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """See `moments_by_order`."""
        return moments_by_order(self, theta)

    spread = moments


class CompositePoint(ChainObjectivePoint):
    """The composite likelihood at one parameter vector."""

    objective: ChainComposite
    sums: WindowSums

    def shared_curvature(self, kind: str) -> tuple[Callable[[FloatArray, FloatArray], Scores], Scores]:
        """See `ChainObjectivePoint`: windows are chains."""
        o, (U, A), w = self.objective, self.scores, self.objective.windows
        found = SharedCurvature(
            w.unroll(U, A, o.workers, np.empty((len(w.rows), len(A)))), A, w.offsets, o.window_weights, kind, o.workers
        )

        def product(dU: FloatArray, dA: FloatArray) -> Scores:
            owner = Owner()
            along = w.unroll(dU, dA, o.workers, o.room.lend(owner))
            return w.collect(*found.product(along, dA), o.workers, o.buffers.lend(owner))

        return product, w.collect(*found.diagonal(), o.workers, np.empty(U.shape))

    def divergence(self, c: float) -> float:
        """See `mixture_divergence`; its examples are the windows."""
        o, (U, A), owner = self.objective, self.scores, Owner()
        w, score = o.windows, np.empty(len(o.windows))
        unrolled = w.unroll(U, A, o.workers, o.room.lend(owner))
        viterbi.score(unrolled, A.reshape(1, *A.shape), w.offsets, o.y[w.rows], 0, len(w), score)
        return mixture_divergence(score - self.sums.log_z, o.window_weights, c)

    def score(self, factors: FloatArray) -> FloatArray:
        """The gradient of the log-likelihood, no penalty, with the weight of every chain multiplied by a factor."""
        o, owner = self.objective, Owner()
        each = factors[o.windows.chain]
        expected = o.features.adjoint(self.sums.weighted(each, o.buffers.lend(owner)))
        return o.features.adjoint(o._indicators(each * o.window_weights)) - expected

    def score_chunks(self) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each chain, (chains, parameters), some chains at a time."""
        n = self.objective.n_examples
        step = max(1, CHUNK // max(self.objective.size, n))
        for lo in range(0, n, step):
            yield np.array([self.score(unit) for unit in np.eye(n)[lo : lo + step]])

    def information(self) -> FloatArray:
        """The diagonal of the Hessian, no penalty: exact for few parameters, else as if labels were independent."""
        o, owner = self.objective, Owner()
        if o.size > EXACT:
            return o.features.squared(*self.sums.diagonal(o.buffers.lend(owner)))
        product = self.hessian_product()
        return np.array([product(unit)[j] for j, unit in enumerate(np.eye(o.size))]) - o.penalty


def moments_by_order(objective: Any, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What `best_weights` asks for: by order, Hessians, and sums of products of scores of chains.

    The latter are means over random signs of the chains. Where these are too few for the number of parameters, all are
    diagonals; with more than `EXACT` parameters, Hessians are as if the labels of a window were independent, which makes no
    difference to attributes that a window has once.
    """
    K, n, size = len(objective.beta), objective.n_examples, objective.size
    orders = [objective.with_weights(unit).at(theta) for unit in np.eye(K)]
    draws = min(n, max(DRAWS, -(-ENOUGH // size)))
    dense = draws >= DRAWS_EACH * size
    if dense:
        J = np.array([dense_hessian(point.hessian_product(), size) - np.diag(objective.penalty) for point in orders])
    else:
        J = np.array([point.information() for point in orders])
    rng = generator(objective.composite.random_state).spawn(1)[0]  # not what drew the objects
    signs = np.eye(n) if draws == n else rng.choice((-1.0, 1.0), (draws, n))
    S = np.zeros((K, *J.shape))
    for sign in signs:
        scores = np.array([point.score(sign) for point in orders])
        S += np.einsum("kp,lq->klpq", scores, scores) if dense else scores[:, None] * scores[None]
    return J, S if draws == n else S / draws


def check_on_chains(composite: CompositeLikelihood) -> None:
    """Refuse what chains do not have."""
    composite.check()
    if PAIRS in composite.rates:
        raise ValueError("'pairs' are not available on chains: objects are windows of labels in a row; use orders")
    if composite.blocks == "all":
        raise ValueError(
            "blocks='all' is not available on chains: given the rest, labels that are not in a row are independent, "
            "and their objects are sums of windows; use blocks='connected'"
        )


def composite_of(likelihood: Any, random_state: Any = None) -> CompositeLikelihood | None:
    """What the parameter `likelihood` of a chain stands for; None for the likelihood itself."""
    composite = as_composite(likelihood, (FULL,))
    if composite is None:
        return None
    check_on_chains(composite)
    return replace(composite, random_state=random_state) if composite.random_state is None else composite
