"""What likelihoods of chains, whole or composite, share: data, scores, sums over labellings and their derivatives."""

from __future__ import annotations

import copy
from abc import abstractmethod
from collections.abc import Callable
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...core.arrays.weights import held_down
from ...core.buffers import Buffers, Owner
from ...core.contracts.capabilities import Capability, Product
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import check_weights
from ...objectives.bounds.quadratic import BOUNDED, BoundedPoint
from ...objectives.penalized import check_penalty, diagonal_scaling
from ...objectives.products import ProductModel
from ..bounds import SharedCurvature
from ..features.chain import ChainFeatures, Scores
from ..kernels.likelihood_pass import accumulate
from ..kernels.tuples import WHOLE, Chains, Totals, Weights, Windows
from ..structure.forbidden import Forbidden
from ..structure.forward_backward import ChainSums, transition_factors
from .batches import ChainSum
from .counts import observed
from .partial import Partial

#: The power of the diagonal of the Hessian that scales steps: full scaling overcorrects rare features.
POWER = 0.25
#: Smallest part of the diagonal at uniform probabilities that counts: without l2, what vanishes would be scaled without end.
LEAST_CURVATURE = 0.01


COMMON = frozenset(
    {
        *(Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER, Capability.MODEL),
        Capability.BATCHES,
    }
)


class ChainObjective(ChainSum):
    """What likelihoods of chains, whole or composite, share: scores, sums over labellings, their gradient and curvature.

    Parameters
    ----------
    features : ChainFeatures
        The map from theta to scores of labels and transitions.
    y : array of int
        The label of every position; ``-1 - k`` where it is only known to be in row k of `sets`.
    sets : bool array of shape (n_sets, n_labels), optional
        Labels allowed at positions that are not known.
    weights : array, optional
        Weights of the chains.
    penalty : float or array of shape (size,)
        The l2 of each parameter.
    forbidden : Forbidden, optional
        Transitions, starts and ends that are impossible.
    linear : array of shape (size,), optional
        Coefficients of a linear term that is added to F.
    """

    size: int
    n_examples: int
    buffers: Buffers

    costly_rays = True

    def __init__(
        self,
        features: ChainFeatures,
        y: IntArray,
        *,
        sets: Any = None,
        weights: Any = None,
        penalty: float | FloatArray = 0.0,
        linear: FloatArray | None = None,
        forbidden: Forbidden | None = None,
        workers: Workers | None = None,
    ) -> None:
        n = features.n_labels
        self.features = features
        self.workers: Workers = workers or features.workers
        self.weights: NDArray[Any] = check_weights("weights", weights, features.n_examples)
        self.y: IntArray = np.ascontiguousarray(y, dtype=np.int64)
        self.sets: NDArray[Any] = np.zeros((0, n), bool) if sets is None else np.asarray(sets, dtype=bool).reshape(-1, n)
        if self.y.shape != (features.n_positions,) or self.y.max() >= n or self.y.min() < -len(self.sets):
            raise ValueError(f"y must hold {features.n_positions} labels below {n}, or -1 - k for row k of sets")
        self.size, self.n_examples = features.size, features.n_examples
        self.lengths: NDArray[Any] = np.diff(features.offsets)
        self.scale: float = float(held_down(self.weights) @ self.lengths)
        self.penalty: FloatArray = check_penalty(penalty, self.size)
        self.forbidden: Forbidden = Forbidden() if forbidden is None else forbidden
        if not isinstance(self.forbidden, Forbidden):
            raise ValueError(f"forbidden must be Forbidden(transitions, starts, ends), got {type(forbidden).__name__}")
        self.partial: Partial | None = Partial.of(self.y, self.sets, features.offsets, self.weights)
        self.convex: bool = self.partial is None
        transitions, *ends = self.forbidden
        self.ruled: bool = transitions is not None or any(rule is not None and bool(rule.any()) for rule in ends)
        self.capabilities: frozenset[Capability] = self._offers(plain=self.convex and not self.ruled and linear is None)
        self.buffers = Buffers((features.n_positions, n))
        self.in_one_pass: bool = self.convex and features.streams is not None
        self._parts: list[FloatArray] | None = None  # where threads sum; kept, because fresh memory is slow
        self.linear: FloatArray | None = linear
        self._check_possible()

    @property
    def slope(self) -> FloatArray | None:
        """The linear terms: one that is given, and that of a penalty that is not around zero."""
        parts = [part for part in (self.linear, super().slope) if part is not None]
        return np.asarray(sum(parts)) if parts else None

    @cached_property
    def observed(self) -> FloatArray:
        """The features of what is known, summed with weights, less the linear term."""
        found = self.features.adjoint(self.observed_scores())
        return found if self.linear is None else found - self.linear

    def _offers(self, plain: bool) -> frozenset[Capability]:
        """The capabilities; `plain` says that all labels are known, none are forbidden, and there is no linear term."""
        return COMMON | BOUNDED

    def part(self, rows: IntArray) -> Self:
        features, y = self.taken(rows)
        given: dict[str, Any] = {"sets": self.sets, "forbidden": self.forbidden, "workers": self.workers}
        return type(self)(features, y, weights=self.weights[rows], **given)

    def observed_scores(self) -> Scores:
        """Indicators of labels and transitions of the chains that are fully known, weighted."""
        f = self.features
        weights = self.weights.copy()
        if self.partial is not None:
            weights[self.partial.chains] = 0.0
        return observed(np.maximum(self.y, 0), f.offsets, weights, f.n_labels)

    def fresh_sums(self, scores: Scores) -> tuple[Any, ChainSums | None, IntArray]:
        sums = ChainSums(*scores, self.features.offsets, self.weights, self.workers)
        return sums, self.known_sums(scores), np.zeros(0, np.int64) if self.partial is None else self.partial.rows

    def known_sums(self, scores: Scores) -> ChainSums | None:
        """Sums over the labellings that agree with what is known, of the chains that are not fully known."""
        (U, A), partial = scores, self.partial
        if partial is None:
            return None
        return partial.sums(U[partial.rows], A, self.workers)

    def _check_possible(self) -> None:
        """Every chain needs a labelling that is allowed; a known one must be."""
        if not self.ruled and self.sets.any(1).all():
            return
        f, y = self.features, self.y
        bad = np.zeros(f.n_positions, bool)
        transitions, starts, ends = self.forbidden
        if transitions is not None:
            pair = np.zeros(f.n_positions, bool)
            pair[1:] = (y[1:] >= 0) & (y[:-1] >= 0)
            pair[f.offsets[:-1]] = False
            where = np.flatnonzero(pair)
            bad[where] = transitions[y[where - 1], y[where]]
        for rule, rows in ((starts, f.offsets[:-1]), (ends, f.offsets[1:] - 1)):
            if rule is not None:
                known = rows[y[rows] >= 0]
                bad[known] |= rule[y[known]]
        if bad.any():
            t = int(bad.argmax())
            s = int(np.searchsorted(f.offsets, t, side="right")) - 1
            raise ValueError(f"y has a forbidden transition, start or end at position {t - f.offsets[s]} of sequence {s}")
        if self.partial is not None:
            sums = self.known_sums(self.scores(np.zeros(self.size), np.empty(self.buffers.shape)))
            assert sums is not None
            if not np.isfinite(sums.log_z).all():
                s = self.partial.chains[int(np.argmin(np.isfinite(sums.log_z)))]
                raise ValueError(f"what is known of the labels of sequence {s} leaves only forbidden labellings")

    @cached_property
    def least_diagonal(self) -> FloatArray:
        """A floor under the diagonal of the Hessian where that scales steps."""
        f, n = self.features, self.features.n_labels
        labels, moves = self.coverage()
        p = labels[:, None] * np.full(n, (1.0 - 1.0 / n) / n if n > 1 else 1.0)
        C = np.full((n, n), float(moves.sum() - moves[f.offsets[:-1]].sum()) / (n * n))
        return np.maximum(LEAST_CURVATURE * f.squared(p, C), 1e-12)

    def coverage(self) -> Scores:
        """The weight of the label of every position, and of the transition into it."""
        each = np.repeat(self.weights, self.lengths)
        return each, each

    def expecting(self, statistics: FloatArray) -> Self:
        """The likelihood of the same chains whose observed features, summed with weights, are these."""
        twin = copy.copy(self)
        twin.partial, twin.convex, twin.observed = None, True, statistics
        twin.in_one_pass = self.features.streams is not None
        return twin

    def without_buffers(self) -> Self:
        """Self, without the memory that it keeps from one evaluation to the next."""
        self._parts, self.buffers = None, Buffers(self.buffers.shape)
        return self

    @abstractmethod
    def at(self, parameters: FloatArray) -> ChainObjectivePoint: ...

    def scores(self, theta: FloatArray, out: FloatArray) -> Scores:
        """Scores of labels, in `out`, and of transitions; -inf where they are forbidden."""
        U, A = self.features.forward(theta, out)
        self.forbidden.mask(U, A, self.features.offsets)
        return U, A

    def sums(self, scores: Scores) -> Any:
        """Sums over all labellings."""
        return ChainSums(*scores, self.features.offsets, self.weights, self.workers, self.buffers)

    @property
    def pieces(self) -> tuple[Windows, FloatArray]:
        """What `kernels.likelihood_pass` sums over, and its weights."""
        return WHOLE, self.weights

    def one_pass(self, theta: FloatArray, variance: bool = False) -> tuple[float, FloatArray] | None:
        """The weighted sum of log Z and its gradient in theta, or with `variance` a diagonal; None if a chain is hard.

        Nothing of the size of the data is stored: a few chains at a time stay in the cache.
        """
        f, n = self.features, self.features.n_labels
        attributes, own = f.streams, f.unpack(theta)
        assert attributes is not None, "the map is not one for a single pass"
        weights, (windows, w) = self._ruled(own), self.pieces
        transitions, log_z = transition_factors(weights.transitions), np.empty(len(w))
        ranges = Workers.balanced(f.offsets, 12.0 * n * n * f.n_positions)
        if self._parts is None:
            shapes = [*(part.shape for part in weights), transitions.M.shape]
            self._parts = [np.empty((len(ranges), *shape)) for shape in shapes]
        *sums, counts = self._parts
        values = tuple(part.values**2 if variance else part.values for part in attributes[:2])
        data = (attributes, values, weights, transitions, Chains(f.offsets, w), windows, variance)
        totals = [Totals(Weights(*(part[i] for part in sums)), counts[i], log_z) for i in range(len(ranges))]
        tasks = [(*data, lo, hi, total) for (lo, hi), total in zip(ranges, totals, strict=True)]
        if sum(self.workers.run(accumulate, tasks)):
            return None
        table, rare, around, first, last = (part.sum(0) for part in sums)
        moves = (counts.sum(0) * transitions.M)[:, :n] + around
        gradient = f.pack(Weights(table, rare, moves, first[: len(own.first)], last[: len(own.last)]))
        return float((w * log_z).sum()), gradient

    def _ruled(self, weights: Weights) -> Weights:
        """The weights with -inf for what is forbidden, and zeros for starts and ends that have none."""
        transitions, starts, ends = self.forbidden
        A, n = weights.transitions, self.features.n_labels
        first, last = (part if len(part) else np.zeros(n) for part in (weights.first, weights.last))
        return weights._replace(
            transitions=A if transitions is None else np.where(transitions, -np.inf, A),
            first=first if starts is None else np.where(starts, -np.inf, first),
            last=last if ends is None else np.where(ends, -np.inf, last),
        )


class ChainObjectivePoint(BoundedPoint):
    """A likelihood of chains at one parameter vector: a value, a gradient, and curvature by products."""

    parameters: FloatArray

    objective: ChainObjective

    def __init__(self, objective: ChainObjective, theta: FloatArray, scores: Scores | None = None) -> None:
        self.objective, self.parameters = objective, theta
        o, loss = objective, None
        if scores is not None:
            self.scores = scores
        elif o.in_one_pass:
            found = o.one_pass(theta)
            if found is not None:
                loss, expected = found
                self.gradient = expected - o.observed + o.penalty_gradient(theta)
        if loss is None:
            loss = self.sums.loss - (0.0 if self.known is None else self.known.loss)
        self.value: float = loss - float((o.observed * theta).sum()) + o.penalty_value(theta)

    @cached_property
    def scores(self) -> Scores:
        """Scores of labels and transitions."""
        return self.objective.scores(self.parameters, self.objective.buffers.lend(self))

    @cached_property
    def sums(self) -> Any:
        """Sums over all labellings."""
        return self.objective.sums(self.scores)

    @cached_property
    def known(self) -> ChainSums | None:
        """Sums over the labellings that agree with what is known, of the chains that are not fully known."""
        return self.objective.known_sums(self.scores)

    def residual(self) -> Scores:
        """Marginals less those of the labels that are not fully known."""
        P, C = self.sums.P, self.sums.C
        if self.known is None or self.objective.partial is None:
            return P, C
        P = P.copy()
        P[self.objective.partial.rows] -= self.known.P
        return P, C - self.known.C

    def residual_change(self, dU: FloatArray, dA: FloatArray, out: FloatArray | None = None) -> Scores:
        """The derivative of the residual along scores (dU, dA), the first part in `out` if given."""
        R, C = self.sums.product(dU, dA, out)
        if self.known is None or self.objective.partial is None:
            return R, C
        rows = self.objective.partial.rows
        dP, dC = self.known.product(dU[rows], dA)
        R[rows] -= dP
        return R, C - dC

    @cached_property
    def gradient(self) -> FloatArray:
        o = self.objective
        return o.features.adjoint(self.residual()) - o.observed + o.penalty_gradient(self.parameters)

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v, with the Hessian of F itself."""
        return self._product(self.residual_change)

    def _product(self, change: Callable[..., Scores]) -> Product:
        """Products with the curvature by which marginals `change` with scores, and the penalty."""
        features, penalty, buffers = self.objective.features, self.objective.penalty, self.objective.buffers

        def product(v: FloatArray) -> FloatArray:
            owner = Owner()
            image = features.forward(v, buffers.lend(owner))
            return features.adjoint(change(*image, buffers.lend(owner))) + penalty * v

        return product

    def model(self, kind: str) -> Any:
        """A convex quadratic that is known by its products: with the Hessian of F if that is convex, else that of log Z; or
        one above F."""
        if kind != "hessian":
            return super().model(kind)
        product = self.hessian_product() if self.objective.convex else self._product(self.sums.product)
        return ProductModel(self.parameters, self.value, self.gradient, product, self.preconditioner())

    def shared_curvature(self, kind: str) -> tuple[Callable[[FloatArray, FloatArray], Scores], Scores]:
        """Products of a matrix above the curvature of log Z with scores, and about its diagonal."""
        o = self.objective
        found = SharedCurvature(*self.scores, o.features.offsets, o.weights, kind, o.workers)
        return found.product, found.diagonal()

    def curvature_above(self, kind: str) -> tuple[Product, FloatArray]:
        """One curvature at each position for all labels that follow (see `kernels.shared_curvature`); what is known of the
        labels is concave, and linear in the quadratic."""
        features = self.objective.features
        product, diagonal = self.shared_curvature(kind)
        return lambda v: features.adjoint(product(*features.forward(v))), features.squared(*diagonal)

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> v over a power of the diagonal of the Hessian of log Z and the penalty, which is positive."""
        return diagonal_scaling(self.diagonal, self.objective.least_diagonal, POWER)

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of the Hessian of log Z and the penalty, as if the labels of a chain were independent."""
        o = self.objective
        found = o.one_pass(self.parameters, variance=True) if o.in_one_pass else None
        if found is None:
            owner = Owner()
            return np.maximum(o.features.squared(*self.sums.diagonal(o.buffers.lend(owner))) + o.penalty, 1e-12)
        return np.maximum(found[1] + o.penalty, 1e-12)
