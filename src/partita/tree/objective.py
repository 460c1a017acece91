"""Penalised negative log-likelihood of dependency trees."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..core.arrays.pieces import take_pieces
from ..core.arrays.weights import held_down
from ..core.contracts import Capability, Product
from ..core.results import BoolArray, FloatArray, IntArray
from ..core.validation import check_weights
from ..objectives.batches import SumOverExamples
from ..objectives.bounds.blocks import joined, softmax_blocks
from ..objectives.bounds.quadratic import BOUNDED, BoundedPoint
from ..objectives.expectation import em_step
from ..objectives.penalized import PlainRay, check_penalty, diagonal_scaling
from .features.pairs import PairFeatures
from .structure.dependency_trees import DependencyTrees

#: Power of the diagonal of the Hessian by which gradients are scaled. Weights are correlated: the whole of it overshoots.
POWER = 0.5
#: Numbers that rows of scores may hold at a time.
CHUNK = 20_000_000
OFFERS = BOUNDED | {Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER, Capability.BATCHES}


class TreeLikelihood(SumOverExamples):
    """``F(theta) = sum_i w_i (log Z_i - s_i(y_i)) + 1/2 sum_j penalty_j theta_j^2`` with scores of pairs ``s = A theta``.

    log Z is that of the matrix-tree theorem, its gradient the probabilities of pairs, and products with its Hessian those of
    `DependencyTrees.covariance_product`: all exact.

    Parameters
    ----------
    features : PairFeatures
        The map A, with a row for each pair of the structure.
    structure : DependencyTrees
    y : array of int
        The head of each word.
    allowed : array of bool of shape (pairs,), optional
        In place of y: the pairs that agree with what is known of the heads. The likelihood is then that of all trees of
        these, ``log Z`` of the allowed pairs less log Z, and not convex.
    weights : array, optional
        One weight per sentence.
    penalty : float or array of shape (size,)
        The l2 of each parameter.
    """

    features: PairFeatures
    structure: DependencyTrees
    size: int
    n_examples: int

    costly_rays = True

    def __init__(
        self,
        features: PairFeatures,
        structure: DependencyTrees,
        y: ArrayLike | None,
        *,
        allowed: BoolArray | None = None,
        weights: ArrayLike | None = None,
        penalty: float | FloatArray = 0.0,
    ) -> None:
        if not np.array_equal(features.offsets, structure.offsets):
            raise ValueError(
                f"features must have a row for each pair of words: {structure.n_pairs} rows, in {structure.n_sentences} "
                f"sentences; got {features.n_pairs} in {features.n_examples}"
            )
        self.features, self.structure = features, structure
        self.size, self.n_examples = features.size, structure.n_sentences
        self.weights: NDArray[Any] = check_weights("weights", weights, self.n_examples)
        self.penalty: FloatArray = check_penalty(penalty, self.size)
        self.scale: float = float(held_down(self.weights) @ structure.lengths)
        self.pair_weights: NDArray[Any] = np.repeat(self.weights, np.diff(structure.offsets))
        self.allowed: BoolArray | None = allowed
        self.convex: bool = allowed is None
        self.capabilities: frozenset[Capability] = OFFERS if allowed is None else OFFERS | {Capability.EM_STEP}
        self.heads: IntArray | None = None if y is None else np.asarray(y)
        #: The pairs of the observed trees, weighted; zero where only `allowed` is known.
        self.used: FloatArray = np.zeros(structure.n_pairs)
        if y is not None:
            chosen = structure.chosen(y)
            self.used[chosen] = self.pair_weights[chosen]

    @cached_property
    def observed(self) -> FloatArray:
        """``A' y``, weighted: the features of the observed trees."""
        return self.features.adjoint(self.used)

    @property
    def masses(self) -> FloatArray:
        """The weighted number of words of each sentence."""
        return np.asarray(self.weights * self.structure.lengths)

    def part(self, rows: IntArray) -> TreeLikelihood:
        s = self.structure
        trees = DependencyTrees(s.lengths[rows], s.single_root, s.n_jobs)
        words, pairs = (take_pieces(offsets, rows)[1] for offsets in (s.word_offsets, s.offsets))
        heads = None if self.heads is None else self.heads[words]
        allowed = None if self.allowed is None else self.allowed[pairs]
        return TreeLikelihood(self.features.take(rows), trees, heads, allowed=allowed, weights=self.weights[rows])

    def evaluate(self, theta: FloatArray) -> tuple[float, tuple[FloatArray]]:
        scores = self.features.forward(theta)
        loss, marginals = -float(self.used @ scores), np.zeros(len(scores))
        for sign, given in ((1.0, scores), (-1.0, self.clamped(scores))):
            if given is not None:
                found = self.structure.infer(given)
                loss += sign * float(self.weights @ found.log_z)
                marginals += sign * found.marginals
        return loss, (self.pair_weights * marginals - self.used,)

    def pull_back(self, residual: Sequence[FloatArray]) -> FloatArray:
        return self.features.adjoint(residual[0])

    def convex_product(self, theta: FloatArray) -> Product:
        known = self if self.allowed is None else self.expecting(np.zeros(self.size))
        return known.at(theta).hessian_product()

    def clamped(self, scores: FloatArray) -> FloatArray | None:
        """The scores of the pairs that are allowed, others forbidden; None if all heads are known."""
        return None if self.allowed is None else np.where(self.allowed, scores, -np.inf)

    def expecting(self, statistics: FloatArray) -> TreeLikelihood:
        """The likelihood of the same sentences whose observed features, summed with weights, are these."""
        twin = copy.copy(self)
        twin.allowed, twin.convex, twin.observed = None, True, statistics
        return twin

    def at(self, parameters: FloatArray) -> TreePoint:
        """The objective seen from `parameters`."""
        return TreePoint(self, np.ascontiguousarray(parameters, dtype=np.float64))


class TreePoint(BoundedPoint):
    """The likelihood at one parameter vector."""

    parameters: FloatArray

    objective: TreeLikelihood

    def __init__(self, objective: TreeLikelihood, theta: FloatArray) -> None:
        self.objective, self.parameters = objective, theta
        self.scores: FloatArray = objective.features.forward(theta)
        found = objective.structure.infer(self.scores)
        self.marginals: FloatArray = found.marginals
        self.residual: FloatArray = found.marginals
        loss = float(objective.weights @ found.log_z) - float(objective.observed @ theta)
        clamped = objective.clamped(self.scores)
        if clamped is not None:
            given = objective.structure.infer(clamped)
            self.residual = found.marginals - given.marginals
            loss -= float(objective.weights @ given.log_z)
        self.value: float = loss + objective.penalty_value(theta)

    @cached_property
    def gradient(self) -> FloatArray:
        """Expected features less observed ones, and the penalty's part."""
        o = self.objective
        return o.features.adjoint(o.pair_weights * self.residual) - o.observed + o.penalty_gradient(self.parameters)

    def along(self, direction: FloatArray) -> PlainRay:
        return PlainRay(self, direction)

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v: the covariance of the features under the model, less that given what is known, and the penalty."""
        o = self.objective

        def product(v: FloatArray) -> FloatArray:
            image = o.features.forward(v)
            covariance = o.structure.covariance_product(self.scores, image)
            clamped = o.clamped(self.scores)
            if clamped is not None:
                covariance = covariance - o.structure.covariance_product(clamped, image)
            return o.features.adjoint(o.pair_weights * covariance) + o.penalty * v

        return product

    def curvature_above(self, kind: str) -> tuple[Product, FloatArray]:
        """By Hölder's inequality over the words: the heads that each may have are a softmax.

        What is known of the heads is concave, and linear in the quadratic.
        """
        o, s = self.objective, self.objective.structure
        offsets, sentences = np.append(s.word_starts, s.n_pairs), np.repeat(np.arange(s.n_sentences), s.lengths)
        blocks = joined(
            softmax_blocks(self.marginals, offsets, kind, s.workers, self.scores > -np.inf), sentences, o.weights
        )
        diagonal = o.features.squares(blocks.diagonal())
        return lambda v: o.features.adjoint(blocks.product(o.features.forward(v))), diagonal

    def score_chunks(self) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each sentence, (sentences, parameters), some at a time."""
        o = self.objective
        values = np.split(o.used - o.pair_weights * self.residual, o.structure.offsets[1:-1])
        step = max(1, CHUNK // max(o.size, 1))
        for lo in range(0, o.n_examples, step):
            rows = range(lo, min(lo + step, o.n_examples))
            yield np.array([o.features.adjoint(values[i], i, i + 1) for i in rows])

    def em_step(self) -> FloatArray:
        """The parameters that fit the heads that are expected here, where they are not known."""
        return em_step(self.objective, self)

    @cached_property
    def diagonal(self) -> FloatArray:
        """The diagonal of the Hessian, as if pairs were independent."""
        o, p = self.objective, np.clip(self.marginals, 0.0, 1.0)
        return o.features.squares(o.pair_weights * p * (1.0 - p)) + o.penalty

    def preconditioner(self, strong: bool = False) -> Product:
        """v -> v over the root of the diagonal of the Hessian."""
        return diagonal_scaling(self.diagonal, 1e-6 * float(self.diagonal.max(initial=1e-300)), POWER)
