"""A likelihood with an l1 penalty besides its l2 penalty."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...core.contracts.capabilities import Capability
from ...core.contracts.point import Ray
from ...core.results import FloatArray, IntArray
from ...objectives.l1 import check_l1, fenchel_gap, no_ray, shortest_subgradient
from ...objectives.penalized import OnLikelihood
from ..features.linear import LinearMap
from ..kernels import label_scores, proximal
from ..kernels.categorical import Targets
from ..kernels.columns import WorkingSet, by_label
from .likelihood import Likelihood, LikelihoodPoint, SoftmaxPoint

#: Proximal Newton steps in one descent.
STEPS = 30
#: Sum of the residuals, relative to the total weight, from which free intercepts are worth solving for.
CENTRED = 1e-13
#: The same, from which they count as not solved for, and there is no certificate.
FAR_FROM_CENTRED = 1e-9


class ElasticNet(OnLikelihood[Likelihood]):
    """``F(theta) = likelihood(theta) + sum_j l1_j |theta_j|``, where the likelihood has its own l2 penalty.

    Parameters
    ----------
    likelihood : Likelihood
        The smooth part, with a linear feature map.
    l1 : float or array of shape (size,)
        The l1 of each parameter. Only intercepts may go without any penalty.

    Notes
    -----
    A point's gradient is the shortest subgradient, and its `gap` that of `fenchel_gap`. Free intercepts need
    ``sum_i r_i = 0``: they are first set to their best values, by Newton's method on the scores.
    """

    def __init__(self, likelihood: Likelihood, l1: float | FloatArray) -> None:
        if not isinstance(likelihood.features, LinearMap):
            raise ValueError("l1 penalties need a linear feature map (DenseLinear or SparseLinear)")
        if likelihood.linear is not None:
            raise ValueError("l1 penalties do not support a likelihood with a linear term")
        super().__init__(likelihood)
        self.features: LinearMap = likelihood.features
        self.l1: FloatArray = check_l1(l1, self.size)
        self.targets: Targets = likelihood.structure.targets(likelihood.y, likelihood.weights)
        self.capabilities: frozenset[Capability] = frozenset({Capability.WORKING_SET})
        free = (self.l1 == 0.0) & (likelihood.penalty == 0.0)
        self.free: IntArray = np.flatnonzero(free)
        if len(self.free) and not np.array_equal(self.free, np.arange(self.features.n_coefficients, self.size)):
            raise ValueError("every coefficient needs l1 > 0 or l2 > 0; only all intercepts together may go without")

    @property
    def blas_threads(self) -> int | None:
        """No BLAS is used."""
        return None

    def at(self, parameters: FloatArray) -> ElasticNetPoint:
        """The objective seen from `parameters`."""
        return ElasticNetPoint(self, self.likelihood.at(parameters))


class ElasticNetPoint:
    """The objective at one parameter vector; `likelihood` is that part of it."""

    objective: ElasticNet
    likelihood: SoftmaxPoint

    def __init__(self, objective: ElasticNet, likelihood: SoftmaxPoint, centred: bool = False) -> None:
        self.objective, self.likelihood = objective, likelihood
        self.parameters: FloatArray = likelihood.parameters
        self.value: float = likelihood.value + float((objective.l1 * np.abs(self.parameters)).sum())
        self._is_centred = centred or len(objective.free) == 0

    @cached_property
    def gradient(self) -> FloatArray:
        """The shortest subgradient."""
        return shortest_subgradient(self.likelihood.gradient, self.objective.l1, self.parameters)

    @cached_property
    def centred(self) -> ElasticNetPoint:
        """The point with free intercepts at their best values."""
        if self._is_centred:
            return self
        return self._moved(self.parameters.copy(), self._by_label(), self._loss)

    @property
    def _loss(self) -> float:
        theta = self.parameters
        return self.likelihood.value - 0.5 * float((self.objective.likelihood.penalty * theta * theta).sum())

    def _by_label(self) -> label_scores.Scores:
        """Copies of scores, probabilities and residuals, as kernels change them."""
        smooth = self.likelihood
        return label_scores.Scores(*(np.array(a.T, order="C") for a in (smooth.u, smooth.marginals, smooth.residual)))

    def _moved(self, theta: FloatArray, scores: label_scores.Scores, loss: float) -> ElasticNetPoint:
        """The point at `theta` with free intercepts at their best values; takes over the arrays."""
        o = self.objective
        likelihood = o.likelihood
        if len(o.free):
            loss = label_scores.fit_intercepts(o.targets, CENTRED * o.scale, loss, theta[o.free[0] :], scores)
        value = loss + 0.5 * float((likelihood.penalty * theta * theta).sum())
        u, p, r = (np.ascontiguousarray(a.T) for a in scores)
        return ElasticNetPoint(o, LikelihoodPoint(likelihood, theta, u, (value, p, r)), centred=True)

    @property
    def l1_max(self) -> float:
        """The smallest common l1 at which zero coefficients are optimal, at a point where they are zero."""
        point = self.centred
        return float(np.abs(point.likelihood.gradient[self.objective.l1 > 0.0]).max(initial=0.0))

    @cached_property
    def gap(self) -> float:
        """Certified bound on the distance of `value` to the minimum."""
        if not self._is_centred:
            return self.value - self.centred.value + self.centred.gap
        o = self.objective
        l1, l2, theta = o.l1, o.likelihood.penalty, self.parameters
        v = self.likelihood.gradient - l2 * theta
        left = float(np.abs(v[o.free]).sum())
        if left > FAR_FROM_CENTRED * o.scale:
            return np.inf
        slack = left * (1.0 + float(np.abs(theta[o.free]).max(initial=0.0)))  # what rounding left, times the intercepts
        v[o.free] = 0.0
        return slack + fenchel_gap(v, theta, l1, l2, self._divergence)

    def _divergence(self, c: float) -> float:
        """sum_i w_i KL(q_i || p_i) with q = e_y + c (p - e_y): s = 1 - p_y is scaled by c."""
        if c >= 1.0:
            return 0.0
        p = self.likelihood.u if self.objective.features.n_outputs == 1 else self.likelihood.marginals
        return float(label_scores.divergence(p, self.objective.targets, c))

    def along(self, direction: FloatArray) -> Ray:
        raise no_ray("descend on a working set")

    def descend(self, coordinates: IntArray, tolerance: float) -> ElasticNetPoint:
        """See `HasWorkingSet`."""
        start, o = self.centred, self.objective
        if not len(coordinates):
            return start
        wanted = np.zeros(o.size, bool)
        wanted[coordinates] = wanted[o.free] = True
        chosen = np.flatnonzero(wanted)
        labels, columns = o.features.places(chosen)
        held, slots = o.features.hold_columns(columns)
        order, label, column, first = by_label(labels, columns, slots, o.features.n_outputs)
        chosen = chosen[order]
        working_set = WorkingSet(held, label, column, first, o.l1[chosen], o.likelihood.penalty[chosen])
        theta, scores = start.parameters.copy(), start._by_label()
        part = theta[chosen]
        loss = proximal.descend(working_set, o.targets, tolerance, STEPS, start._loss, part, scores)
        theta[chosen] = part
        return start._moved(theta, scores, loss)
