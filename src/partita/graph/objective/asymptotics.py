"""Limits of the variance of composite likelihood estimates: exact by enumeration, or from configurations drawn exactly.

An m-pair (A, B) of sets of variables gives the object log p(x_A | x_B), whose score is E[f | x_A, x_B] - E[f | x_B].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple, Protocol

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from ...core.errors import TooLargeError
from ...core.results import FloatArray, IntArray
from ...objectives.composite.efficiency import inverse_information
from ...objectives.composite.likelihood import FULL, CompositeLikelihood, as_composite
from ...objectives.composite.policies import Policy
from ...objectives.composite.weights import best_weights, estimated_weights
from ...objectives.information import dense_hessian
from ...solvers.loop import minimize
from ..features.tied_tables import TiedTables
from .composite import GraphComposite
from .likelihood import GraphLikelihood
from .likelihood_objects import Pair, object_pairs

#: Gradient at which the optimum of a population is found.
POPULATION = 1e-12
#: Numbers of configurations times parameters that are held.
LARGEST = 1_000_000


class HasFeatureMap(Protocol):
    """A network whose weights and variables are known."""

    def feature_map(self) -> TiedTables: ...


def blocks_given_rest(m: int, k: int) -> list[Pair]:
    """All sets of k of m variables, each with the rest as B: pseudo-likelihood of order k; k = m is the likelihood.

    >>> from partita.graph.objective.asymptotics import blocks_given_rest
    >>> blocks_given_rest(3, 2)
    [((0, 1), (2,)), ((0, 2), (1,)), ((1, 2), (0,))]
    """
    return [(A, tuple(v for v in range(m) if v not in A)) for A in itertools.combinations(range(m), k)]


class Enumeration:
    """All configurations of one graph with their features and probabilities.

    Parameters
    ----------
    features : TiedTables
    theta : array of shape (features.size,)
    """

    def __init__(self, features: TiedTables, theta: FloatArray) -> None:
        graph = features.graph
        if not enumerable(features):
            raise TooLargeError(f"{graph.n_variables} variables have too many configurations to enumerate")
        states = np.indices(tuple(graph.cardinalities)).reshape(graph.n_variables, -1)
        self.states: IntArray = states
        self.counts: IntArray = graph.cardinalities
        matrix = features.matrix
        self.f: FloatArray = np.zeros((states.shape[1], features.size))
        for numbers, scope, _, strides in graph.by_arity:
            for k, members, steps in zip(graph.offsets[numbers].tolist(), scope, strides, strict=True):
                self.f += matrix[k + steps @ states[members]].toarray()
        scores = self.f @ theta
        top = scores.max()
        self.log_z: float = float(top + np.log(np.exp(scores - top).sum()))
        self.p: FloatArray = np.exp(scores - self.log_z)

    @cached_property
    def information(self) -> FloatArray:
        """The variance of the features: that of the score of the whole."""
        centred = self.f - self.p @ self.f
        return (centred.T * self.p) @ centred

    def _given(self, variables: Sequence[int]) -> FloatArray:
        """Of every configuration, the mean of the features given its states of some variables."""
        if not len(variables):
            return np.broadcast_to(self.p @ self.f, self.f.shape)
        which = np.ravel_multi_index(tuple(self.states[list(variables)]), tuple(self.counts[list(variables)]))
        sums = sp.csr_matrix((self.p, (which, np.arange(len(which)))))
        means = (sums @ self.f) / np.asarray(sums.sum(1))  # all codes occur: all configurations are listed
        return np.asarray(means[which])

    def score(self, pair: Pair) -> FloatArray:
        """The gradient of log p(x_A | x_B) at every configuration."""
        A, B = pair
        if not A or set(A) & set(B):
            raise ValueError(f"A must not be empty and must have no variable of B, got {pair}")
        return self._given((*A, *B)) - self._given(B)

    def covariance(self, pairs: Sequence[Pair], beta: FloatArray, policy: Policy, refresh: bool) -> FloatArray:
        """n times the variance of the estimate, in the limit: ``J^-1 S J^-1`` with ``J = sum_j beta_j lambda_j V_j``."""
        J = np.zeros((self.f.shape[1],) * 2)
        for pair, used in zip(pairs, beta * policy.mean, strict=True):
            s = self.score(pair)
            J += used * ((s.T * self.p) @ s)
        inverse = inverse_information(J, "the objects")
        return np.asarray(inverse @ self.score_covariance(pairs, beta, policy, refresh) @ inverse)

    def score_covariance(
        self, pairs: Sequence[Pair], beta: FloatArray, policy: Policy, refresh: bool, p: FloatArray | None = None
    ) -> FloatArray:
        """``E[psi psi']`` of the sum's scores psi, of one example: of the model, or of configurations with probabilities p.

        With indicators drawn once for each example that is ``sum_ij beta_i beta_j E[Z_i Z_j] E[s_i s_j']``; drawn anew in
        every pass, ``E[t t']`` of ``t = sum_j beta_j lambda_j s_j``.
        """
        p = self.p if p is None else p
        scores = [self.score(pair) for pair in pairs]
        total = np.zeros_like(self.f)
        for s, used in zip(scores, beta * policy.mean, strict=True):
            total += used * s
        S = (total.T * p) @ total
        if not refresh:
            extra = policy.second - np.outer(policy.mean, policy.mean)  # what selection adds
            for i, j in zip(*np.nonzero(np.abs(extra) > 1e-15), strict=True):
                S += beta[i] * beta[j] * extra[i, j] * ((scores[i].T * p) @ scores[j])
        return np.asarray(S)

    def moments(
        self, pairs: Sequence[Pair], groups: IntArray, policy: Policy, refresh: bool
    ) -> tuple[FloatArray, FloatArray]:
        """J and the covariances of scores, by order: what `best_weights` asks for."""
        orders, mean, r = int(groups.max()) + 1, policy.mean, self.f.shape[1]
        scores = [self.score(pair) for pair in pairs]
        J, S = np.zeros((orders, r, r)), np.zeros((orders, orders, r, r))
        totals = np.zeros((orders, *self.f.shape))
        for s, g, share in zip(scores, groups.tolist(), mean.tolist(), strict=True):
            J[g] += share * ((s.T * self.p) @ s)
            totals[g] += share * s
        S += np.einsum("c,kcp,lcq->klpq", self.p, totals, totals, optimize=True)
        if not refresh:
            extra = policy.second - np.outer(mean, mean)
            for i, j in zip(*np.nonzero(np.abs(extra) > 1e-15), strict=True):
                S[groups[i], groups[j]] += extra[i, j] * ((scores[i].T * self.p) @ scores[j])
        return J, S


class Limits:
    """What estimates of a composite likelihood tend to if a model is true with weights theta.

    Exact where all configurations can be listed, else from `samples` of them, drawn exactly, if the junction tree fits.

    Parameters
    ----------
    features : TiedTables
        Of a single graph.
    theta : array
    samples : int
    random_state : int, Generator or None
    """

    features: TiedTables
    theta: FloatArray

    def __init__(self, features: TiedTables, theta: Any, samples: int = 10_000, random_state: Any = None) -> None:
        self.features, self.theta = features, np.asarray(theta, dtype=np.float64)
        if self.theta.shape != (features.size,) or not np.isfinite(self.theta).all():
            raise ValueError(f"theta must be {features.size} finite numbers, got shape {self.theta.shape}")
        self.enumeration: Enumeration | None = Enumeration(features, self.theta) if enumerable(features) else None
        self.rows: Any = None
        if self.enumeration is None:
            self.rows = features.graph.sample(features.forward(self.theta), samples, random_state)

    @cached_property
    def information(self) -> FloatArray:
        """Of one example, for the likelihood of the whole."""
        if self.enumeration is not None:
            return self.enumeration.information
        whole = GraphLikelihood(self.features, self.rows[:1], engine="exact").at(self.theta)
        return dense_hessian(whole.hessian_product(), self.features.size)

    def beta(self, composite: CompositeLikelihood) -> FloatArray:
        """Weights of orders: those given, or the best."""
        if not composite.automatic:
            return composite.beta
        if self.enumeration is None:
            moments = self._objective(composite, composite.beta).moments(self.theta)
            return estimated_weights(*moments, len(self.rows))
        pairs, groups = object_pairs(self.features.graph, composite)
        return best_weights(*self.enumeration.moments(pairs, groups, composite.law(groups), composite.refresh))

    def covariance(self, composite: CompositeLikelihood, beta: FloatArray | None = None) -> FloatArray:
        """n times the variance of the estimates of n examples."""
        if composite.refine is not None:
            return (
                inverse_information(self.information, "the model")
                if composite.refine == FULL
                else self.covariance(composite.refinement)
            )
        beta = self.beta(composite) if beta is None else beta
        if self.enumeration is not None:
            pairs, groups = object_pairs(self.features.graph, composite)
            each = beta[groups] * composite.weights_within(groups, np.zeros_like(groups))
            return self.enumeration.covariance(pairs, each, composite.law(groups), composite.refresh)
        point = self._objective(composite, beta).at(self.theta)
        J = dense_hessian(point.hessian_product(), self.features.size) / len(self.rows)
        K = np.zeros_like(J)
        for S in point.score_chunks():
            K += S.T @ S
        inverse = inverse_information(J, "the objects")
        return np.asarray(inverse @ (K / len(self.rows)) @ inverse)

    def _objective(self, composite: CompositeLikelihood, beta: FloatArray) -> GraphComposite:
        return GraphComposite(self.features, self.rows, composite, beta=beta)


class Population(NamedTuple):
    """What estimates tend to where examples have a given distribution, which need not be that of a model.

    Attributes
    ----------
    parameters : array
        The weights that maximise the expected likelihood.
    covariance : array
        n times the variance of the estimates from n examples, in the limit.
    """

    parameters: FloatArray
    covariance: FloatArray


def population_optimum(net: HasFeatureMap, distribution: ArrayLike, likelihood: Any = FULL) -> Population:
    """The weights that a likelihood leads to if examples have a distribution, and how they vary around these.

    That is the sandwich ``(E psi')^-1 E[psi psi'] (E psi')^-1`` with expectations of the distribution: of a true model it is
    `CompositeLikelihood.asymptotic_covariance`. All configurations are listed.

    Parameters
    ----------
    net : MarkovNetwork
        Fitted, or with `cardinalities`.
    distribution : array of shape (states of the first variable, of the second, ...)
        Probabilities of all configurations.
    likelihood : {"full", "pseudo"} or CompositeLikelihood

    Examples
    --------
    Three coins that are all heads or all tails half of the time, seen by a network of two of their three pairs:

    >>> import numpy as np
    >>> from partita import MarkovNetwork
    >>> from partita.objectives import population_optimum
    >>> p = np.full((2, 2, 2), 1 / 16)
    >>> p[0, 0, 0] = p[1, 1, 1] = 5 / 16
    >>> population_optimum(MarkovNetwork.ising([(0, 1), (1, 2)], fields=False), p).parameters.round(3)
    array([0.549, 0.549])
    """
    features = net.feature_map()
    composite = as_composite(likelihood, (FULL,)) or CompositeLikelihood({FULL: 1.0})
    p = np.asarray(distribution, dtype=np.float64)
    shape = tuple(features.graph.cardinalities.tolist())
    if p.shape != shape or not (p >= 0.0).all() or not np.isclose(p.sum(), 1.0, atol=1e-9):
        raise ValueError(f"distribution must hold probabilities of shape {shape} that sum to one, got shape {p.shape}")
    if composite.automatic or composite.refine is not None:
        raise ValueError(
            "weights='auto' and refine depend on the examples there are: give weights, or the likelihood of the last step"
        )
    if not enumerable(features):
        raise TooLargeError(f"{len(shape)} variables have too many configurations to enumerate")
    rows = np.indices(shape).reshape(len(shape), -1).T
    expected = GraphComposite(features, rows, replace(composite, refresh=True), weights=p.ravel())
    found = minimize(expected, None, "newton", max_iter=200, tol=POPULATION)
    J = dense_hessian(found.point.hessian_product(), features.size)
    pairs, groups = object_pairs(features.graph, composite)
    beta = composite.beta[groups] * composite.weights_within(groups, np.zeros_like(groups))
    inverse = inverse_information(J, "the objects")
    there = Enumeration(features, found.parameters)
    S = there.score_covariance(pairs, beta, composite.law(groups), composite.refresh, p.ravel())
    return Population(found.parameters, np.asarray(inverse @ S @ inverse))


def enumerable(features: TiedTables) -> bool:
    """Whether all configurations can be listed."""
    return float(np.prod(features.graph.cardinalities.astype(np.float64))) * features.size <= LARGEST
