"""Penalised negative log-likelihood of chains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from ...core.contracts.capabilities import Capability
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...objectives.expectation import em_step
from ...objectives.l1 import mixture_divergence
from ...objectives.penalized import PlainRay
from ..bounds import DenseChains, LineBound
from ..features.chain import ChainFeatures, Scores
from ..kernels import viterbi
from .base import ChainObjective, ChainObjectivePoint
from .majorization import ChainSubspace, dense_chains, is_dense, line_bound, quadratic_bound
from .sweeps import ChainSweeps

#: Numbers that rows of scores may hold at a time.
CHUNK = 20_000_000


class ChainLikelihood(ChainObjective):
    """``F(theta) = sum_i w_i (log Z_i - log Z_i(y_i)) + 1/2 sum_j penalty_j theta_j^2``, a sum over chains.

    ``Z_i(y_i)`` sums over the labellings that agree with what is known: for known labels its logarithm is their score, which
    is linear, and F is convex. With unknown labels it is the likelihood of a model with hidden variables: Hessian products
    are those of F, which may be indefinite, while models and bounds have the curvature of ``log Z_i`` alone, which is at
    least that (Jensen). See `ChainObjective` for the parameters.
    """

    def _offers(self, plain: bool) -> frozenset[Capability]:
        offers = super()._offers(plain) | {Capability.LINE_BOUND}
        if not self.convex:
            offers |= {Capability.EM_STEP}
        if plain and isinstance(self.features, ChainFeatures) and self.has_gap and np.ptp(self.penalty) == 0.0:
            offers |= {Capability.SWEEPS}
        return offers

    def sweeps(self, theta: FloatArray, random_state: Any = None) -> ChainSweeps:
        """Stochastic gradient descent on single chains."""
        return ChainSweeps(self, theta, random_state)

    def of(self, features: ChainFeatures, y: IntArray, sets: Any) -> ChainLikelihood:
        """The likelihood of other chains, with weight one and no penalty."""
        return ChainLikelihood(features, y, sets=sets, forbidden=self.forbidden)

    def alone(self, chain: int, y: IntArray) -> ChainLikelihood:
        """The likelihood of one chain, with weight one and no penalty."""
        features = self.features.block(chain, chain + 1)
        return ChainLikelihood(features, y, sets=self.sets, forbidden=self.forbidden, workers=Workers(1))

    @cached_property
    def dense(self) -> DenseChains | None:
        """The features written out, if bounds are formed as matrices."""
        return dense_chains(self.features) if is_dense(self.features) else None

    def at(self, parameters: FloatArray) -> ChainPoint:
        """The objective seen from `parameters`."""
        return ChainPoint(self, np.ascontiguousarray(parameters, dtype=np.float64))


class ChainPoint(ChainObjectivePoint):
    """The likelihood at one parameter vector."""

    objective: ChainLikelihood

    def along(self, direction: FloatArray) -> ChainRay:
        return ChainRay(self, direction)

    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> Any:
        """Span of `directions`, and with `momentum` of the step that led here."""
        return ChainSubspace(self, directions, momentum)

    def model(self, kind: str) -> Any:
        """A convex quadratic that is known by its products, or one above F (see `partita.chain.bounds`)."""
        dense = None if kind == "hessian" else self.objective.dense
        return super().model(kind) if dense is None else quadratic_bound(self, dense, kind)

    def score_chunks(self) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each chain, (chains, parameters), some chains at a time."""
        o, edges = self.objective, self.objective.features.offsets
        step = max(1, CHUNK // o.size)
        for lo in range(0, o.n_examples, step):
            rows = range(lo, min(lo + step, o.n_examples))
            alone = [o.alone(i, o.y[edges[i] : edges[i + 1]]).at(self.parameters).gradient for i in rows]
            yield -np.array(alone) * o.weights[rows, None]

    def em_step(self) -> FloatArray:
        """The parameters that fit the labels that are expected here, where they are not known."""
        return em_step(self.objective, self)

    def divergence(self, c: float) -> float:
        """See `mixture_divergence`."""
        o, (U, A) = self.objective, self.scores
        score = np.empty(len(o.weights))
        viterbi.score(U, A.reshape(1, *A.shape), o.features.offsets, o.y, 0, len(score), score)
        return mixture_divergence(score - self.sums.log_z, o.weights, c)


class ChainRay(PlainRay[ChainPoint]):
    """The likelihood on a half-line."""

    @cached_property
    def image(self) -> Scores:
        """The scores of the direction."""
        o = self.origin.objective
        return o.features.forward(self.direction, o.buffers.lend(self))

    def bound(self, radius: float = np.inf) -> LineBound:
        """A quadratic above the objective on this half-line, tightest for steps up to `radius`."""
        return line_bound(self.origin, self.direction, self.image, radius)
