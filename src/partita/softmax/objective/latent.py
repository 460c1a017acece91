"""Likelihood of what is known of hidden states; its gradient has the posteriors of the E-step."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core.contracts.capabilities import Capability, Product
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...objectives.expectation import m_step
from ..bounds.potential import DifferenceCurvature, potential_curvature
from ..bounds.quadratic import Quadratic
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..kernels import latent as kernels
from ..structure import Binary, Categorical, subspace_sums
from .base import SoftmaxObjective
from .batches import Batches
from .likelihood import COMMON, Likelihood, SoftmaxPoint

#: Numbers that rows of scores may hold at a time.
CHUNK = 20_000_000


class LatentLikelihood(SoftmaxObjective["LatentPoint"]):
    """``F(theta) = sum_i w_i (log sum_k exp s_ik - log sum_{k allowed for i} exp s_ik) + linear + penalty``.

    The outputs of the feature map are states, and of each example only a set of states is known: pairs of its label and
    any hidden state, the labels that an annotator left open, and so on. F is not convex unless every set has one state.

    Replacing the second term by Jensen's bound (soft targets q, the probabilities given the set) and the first by a
    quadratic gives a quadratic above F with the curvature of log Z alone: that is what ``model(kind)`` returns, for
    ``"hessian"`` too (a convex model, good for programs over sets). ``hessian_product`` is that of F itself, which may be
    indefinite.

    Parameters
    ----------
    features : LinearMap or LabelFeatures
        The map A from parameters to the scores of states.
    structure : Categorical
        The states; its base measure enters the scores.
    allowed : array of bool
        In the shape of the scores, (examples, states) or flat for ragged sets: which states agree with what was observed.
    weights, penalty, linear
        As in `SoftmaxObjective`.
    """

    convex = False

    def __init__(
        self,
        features: LinearMap | LabelFeatures,
        structure: Categorical,
        allowed: Any,
        *,
        weights: Any = None,
        penalty: float | FloatArray = 0.0,
        linear: FloatArray | None = None,
        workers: Workers | None = None,
    ) -> None:
        if isinstance(structure, Binary):
            raise ValueError("a latent likelihood needs a score for each state: use Categorical(2), not Binary")
        offsets = structure.offsets(features.n_examples)
        shape = (features.n_examples, structure.n_labels) if structure.n_labels else (int(offsets[-1]),)
        self.allowed: NDArray[np.bool_] = np.ascontiguousarray(allowed)
        if self.allowed.dtype != np.bool_ or self.allowed.shape != shape:
            raise ValueError(
                f"allowed must be an array of bool of shape {shape}, got {self.allowed.dtype} of shape {self.allowed.shape}"
            )
        possible = self.allowed & (structure.offset > -np.inf)
        if not np.logical_or.reduceat(possible.ravel(), offsets[:-1]).all():
            raise ValueError("allowed must leave every example a state of positive prior; one has none")
        places = np.where(possible.ravel(), np.arange(possible.size), possible.size)
        first = np.minimum.reduceat(places, offsets[:-1]) - offsets[:-1]
        super().__init__(features, structure, first, weights=weights, penalty=penalty, linear=linear, workers=workers)

    def _offers(self) -> frozenset[Capability]:
        return COMMON | {Capability.EM_STEP, Capability.BATCHES}

    def batches(self, random_state: Any = None, validation: float = 0.0) -> Batches[LatentLikelihood]:
        """The examples as mini-batches in random order, a part of them held out."""
        return Batches(self, random_state, validation)

    def around(self, mean: FloatArray, precision: FloatArray) -> LatentLikelihood:
        """The same likelihood, with this precision as a penalty on the distance to this mean."""
        twin = copy.copy(self)
        twin.center, twin.penalty = mean, precision
        twin.__dict__.pop("has_gap", None)
        return twin

    def of_rows(self, rows: IntArray, features: Any, structure: Categorical, penalty: FloatArray) -> LatentLikelihood:
        return LatentLikelihood(features, structure, self._allowed_of(rows), weights=self.weights[rows], penalty=penalty)

    def loss_of(self, rows: IntArray, structure: Categorical, u: FloatArray) -> tuple[float, FloatArray]:
        observed = kernels.Observed(self._allowed_of(rows).ravel(), self.weights[rows], structure.offsets(len(rows)))
        loss, _, residual, _ = _sums(u, observed, self.workers)
        return loss, residual

    def _allowed_of(self, rows: IntArray) -> NDArray[np.bool_]:
        """The states of some examples that agree with what was observed."""
        if self.allowed.ndim == 2:
            return np.asarray(self.allowed[rows])
        offsets = self.structure.offsets(self.n_examples)
        return np.asarray(self.allowed[np.concatenate([np.arange(offsets[i], offsets[i + 1]) for i in rows.tolist()])])

    def view(self, theta: FloatArray, u: FloatArray) -> LatentPoint:
        return LatentPoint(self, theta, u)

    def loss(self, u: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        return self.sums(u)[:3]

    @cached_property
    def _observed(self) -> kernels.Observed:
        offsets = self.structure.offsets(self.features.n_examples)
        return kernels.Observed(self.allowed.ravel(), self.weights, offsets)

    def sums(self, u: FloatArray) -> tuple[float, FloatArray, FloatArray, FloatArray]:
        """The loss, the probabilities of states, its gradient in u, and the probabilities given what is allowed."""
        return _sums(u, self._observed, self.workers)

    def subspace(self, u: FloatArray, images: FloatArray, c: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        arguments = (u.ravel(), images.reshape(len(c), -1), c, self._observed)
        return subspace_sums(kernels.subspace, arguments, len(self.weights), len(c), self.workers)


def _sums(u: FloatArray, observed: kernels.Observed, workers: Workers) -> tuple[float, FloatArray, FloatArray, FloatArray]:
    """See `LatentLikelihood.sums`."""
    flat = u.ravel()
    p, q, r = (np.empty_like(flat) for _ in range(3))
    ranges = workers.ranges(len(observed.w), 30.0 * flat.size)
    parts = workers.run(kernels.loss, [(flat, observed, lo, hi, p, q, r) for lo, hi in ranges])
    return float(sum(parts)), p.reshape(u.shape), r.reshape(u.shape), q.reshape(u.shape)


class LatentPoint(SoftmaxPoint):
    """The latent likelihood at one parameter vector."""

    objective: LatentLikelihood

    @property
    def posterior(self) -> FloatArray:
        """The probabilities of states given what is allowed: the soft targets of EM."""
        return self.objective.sums(self.u)[3]

    def em_step(self) -> FloatArray:
        """The parameters that fit these soft targets: a softmax regression, by a few steps of L-BFGS."""
        o = self.objective
        offsets = o.structure.offsets(o.features.n_examples)
        shift = -self.posterior.ravel()
        shift[offsets[:-1] + o.y] += 1.0
        linear = o.features.adjoint((shift * np.repeat(o.weights, np.diff(offsets))).reshape(self.u.shape))
        o.features.remove_mean(linear)  # a constant on all states must not pay, not even by rounding
        linear = linear if o.slope is None else linear + o.slope
        options: dict[str, Any] = {"weights": o.weights, "penalty": o.penalty, "linear": linear, "workers": o.workers}
        return m_step(Likelihood(o.features, o.structure, o.y, **options), self.parameters)

    def score_chunks(self) -> Iterator[FloatArray]:
        """Gradients of the weighted log-likelihood of each example, (examples, parameters), some examples at a time."""
        features = self.objective.features
        if not isinstance(features, LinearMap):
            raise ValueError("scores of examples need a linear map, whose examples all have the same states")
        step = max(1, CHUNK // features.size)
        for lo in range(0, features.n_examples, step):
            rows = np.arange(lo, min(lo + step, features.n_examples))
            yield -features.outer(rows, self.residual[rows])

    @cached_property
    def _whole(self) -> Quadratic:
        """The second-order model of F itself: no bound, perhaps not convex."""
        o = self.objective
        clamped = np.where(o.allowed, self.u, -np.inf)
        known = potential_curvature(o.structure, clamped, o.weights, "hessian", o.workers)
        difference = DifferenceCurvature(self.hessian_curvature, known)
        return Quadratic(o.features, difference, o.penalty, self.parameters, self.value, self.gradient, is_bound=False)

    def hessian_product(self, precise: bool = True) -> Product:
        """v -> H v, with the Hessian of F itself."""
        return self._whole.matvec
