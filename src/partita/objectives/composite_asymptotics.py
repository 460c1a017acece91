"""Limits of the variance of composite likelihood estimates, by enumeration of all configurations.

An m-pair (A, B) of sets of variables gives the object log p(x_A | x_B), whose score is E[f | x_A, x_B] - E[f | x_B].
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from functools import cached_property

import numpy as np
import scipy.sparse as sp

from ..core.errors import TooLargeError
from ..core.results import FloatArray, IntArray
from ..features.tied_tables import TiedTables
from .policies import Policy

#: Numbers of configurations times parameters that are held.
LARGEST = 20_000_000

Pair = tuple[tuple[int, ...], tuple[int, ...]]


def blocks_given_rest(m: int, k: int) -> list[Pair]:
    """All sets of k of m variables, each with the rest as B: pseudo-likelihood of order k; k = m is the likelihood.

    >>> from partita.objectives.composite_asymptotics import blocks_given_rest
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
        count = float(np.prod(graph.cardinalities.astype(np.float64)))
        if count * features.size > LARGEST:
            raise TooLargeError(f"{count:.3g} configurations of {features.size} features are too many to enumerate")
        states = np.indices(tuple(graph.cardinalities)).reshape(graph.n_variables, -1)
        self.states: IntArray = states
        matrix = features.matrix
        self.f: FloatArray = np.zeros((states.shape[1], features.size))
        for numbers, scope, _, strides in graph.by_arity:
            for k, members, steps in zip(graph.offsets[numbers].tolist(), scope, strides, strict=True):
                self.f += matrix[k + steps @ states[members]].toarray()
        scores = self.f @ theta
        top = scores.max()
        self.log_z = float(top + np.log(np.exp(scores - top).sum()))
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
        _, which = np.unique(self.states[list(variables)], axis=1, return_inverse=True)
        which = which.ravel()
        sums = sp.csr_matrix((self.p, (which, np.arange(len(which)))))
        means = (sums @ self.f) / np.asarray(sums.sum(1))
        return np.asarray(means[which])

    def score(self, pair: Pair) -> FloatArray:
        """The gradient of log p(x_A | x_B) at every configuration."""
        A, B = pair
        if not A or set(A) & set(B):
            raise ValueError(f"A must not be empty and must have no variable of B, got {pair}")
        return self._given((*A, *B)) - self._given(B)

    def covariance(self, pairs: Sequence[Pair], beta: FloatArray, policy: Policy, refresh: bool) -> FloatArray:
        """n times the variance of the estimate, in the limit: ``J^-1 S J^-1`` with ``J = sum_j beta_j lambda_j V_j``.

        With indicators drawn once for each example, S is ``sum_ij beta_i beta_j E[Z_i Z_j] C_ij``; drawn anew in every pass,
        the variance of ``sum_j beta_j lambda_j s_j``.
        """
        used = beta * policy.mean
        total = np.zeros_like(self.f)
        J = np.zeros((self.f.shape[1],) * 2)
        noise = np.zeros_like(J)
        extra = policy.second - np.outer(policy.mean, policy.mean)  # what selection adds
        scores: list[FloatArray] = []
        for j, pair in enumerate(pairs):
            s = self.score(pair)
            total += used[j] * s
            J += used[j] * ((s.T * self.p) @ s)
            scores.append(s)
        if not refresh:
            for i, j in zip(*np.nonzero(np.abs(extra) > 1e-15), strict=True):
                noise += beta[i] * beta[j] * extra[i, j] * ((scores[i].T * self.p) @ scores[j])
        S = (total.T * self.p) @ total + noise
        inverse = np.linalg.inv(J)
        return np.asarray(inverse @ S @ inverse)

    def efficiency(self, covariance: FloatArray, measure: str = "det") -> float:
        """How many times the variance of the maximum likelihood estimate: determinants, their r-th root, or traces."""
        if measure == "trace":
            return float(np.trace(covariance) / np.trace(np.linalg.inv(self.information)))
        ratio = np.linalg.slogdet(covariance)[1] + np.linalg.slogdet(self.information)[1]
        return float(np.exp(ratio / len(covariance) if measure == "rdet" else ratio))
