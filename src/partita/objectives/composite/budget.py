"""The best policy of a composite likelihood that a budget of operations allows."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.results import FloatArray
from .weights import best_weights

#: Operations on a configuration of a set: its exponential, sums, and a product; and on each of its factors, in and out.
EACH, PER_FACTOR = 8.0, 2.0
#: Relative difference of variances that does not count.
AS_GOOD = 1e-3
#: Part of the largest eigenvalue of the information below which nothing is known.
NOTHING = 1e-10


@dataclass(frozen=True)
class Choice:
    """A policy under a budget.

    Attributes
    ----------
    rates, weights : dict
        How often the objects of each order are used, and their weights.
    cost : float
        In units of the pseudo-likelihood.
    efficiency : float
        Variances of the estimates relative to those of `reference`: their geometric mean, over principal axes, or if only
        diagonals are known over weights.
    reference : order
    """

    rates: dict[Any, float]
    weights: dict[Any, float]
    cost: float
    efficiency: float
    reference: Hashable


def choose(J: FloatArray, C: FloatArray, costs: Mapping[Any, float], budget: float) -> Choice:
    """The most accurate policy of at most two orders whose cost is within a budget; of two that are as good, the cheaper.

    Objects of an order are drawn independently, once for each example. J and C are moments with all objects used (see
    `GraphComposite.moments`): if a share r of an order is drawn, its J is r times that, and the variance of its scores
    ``r^2 C + r (1 - r) J``.

    Parameters
    ----------
    J, C : arrays of shapes (orders, parameters) and (orders, orders, parameters)
        Diagonals, or matrices with one more axis of parameters.
    costs : dict
        Of each order, in units of the first; the last is what others are compared with.
    budget : float
        In the same units.
    """
    orders = list(costs)
    cost = np.array([costs[order] / costs[orders[0]] for order in orders])
    reference = _spread(J[-1:], C[-1:, -1:], np.ones(1))[0]
    found: list[tuple[float, float, list[int], FloatArray, FloatArray]] = []
    for members in _candidates(cost, budget):
        numbers, rates = list(members), np.array(list(members.values()))
        value, beta = _spread(J[numbers], C[np.ix_(numbers, numbers)], rates)
        if beta.min() > 0.0:
            found.append((value, float(cost[numbers] @ rates), numbers, rates, beta))
    best = min(entry[0] for entry in found)
    value, spent, numbers, rates, beta = min((e for e in found if e[0] <= best + AS_GOOD), key=lambda e: e[1])
    names = [orders[g] for g in numbers]
    return Choice(
        rates=dict(zip(names, rates.tolist(), strict=True)),
        weights=dict(zip(names, beta.tolist(), strict=True)),
        cost=spent,
        efficiency=float(np.exp(value - reference)),
        reference=orders[-1],
    )


def _candidates(cost: FloatArray, budget: float) -> list[dict[int, float]]:
    """Orders with their shares: each alone, and each two of which the cheaper is used whole."""
    out = [{g: min(1.0, budget / c)} for g, c in enumerate(cost.tolist()) if np.isfinite(c)]
    for a, b in itertools.permutations(range(len(cost)), 2):
        if cost[a] < budget and cost[a] < cost[b] < np.inf:
            out.append({a: 1.0, b: min(1.0, (budget - cost[a]) / cost[b])})
    return out


def _spread(J: FloatArray, C: FloatArray, rates: FloatArray) -> tuple[float, FloatArray]:
    """The mean logarithm of the variances at the best weights (of the eigenvalues of the covariance), and these."""
    K, dense = len(rates), J.ndim == 3
    j = np.einsum("k,k...->k...", rates, J)
    S = np.einsum("k,l,kl...->kl...", rates, rates, C)
    S[np.arange(K), np.arange(K)] += np.einsum("k,k...->k...", rates * (1.0 - rates), J)
    beta = best_weights(j, S) if K > 1 else np.ones(1)
    mean, spread = np.einsum("k,k...->...", beta, j), np.einsum("k,l,kl...->...", beta, beta, S)
    if dense:
        values, Q = np.linalg.eigh(mean)
        Q = Q[:, values > NOTHING * values[-1]]
        logs = np.linalg.slogdet(Q.T @ spread @ Q)[1] - 2.0 * np.linalg.slogdet(Q.T @ mean @ Q)[1]
        return float(logs / Q.shape[1]), beta
    known = (mean > 0.0) & (spread > 0.0)
    return float(np.mean(np.log(spread[known]) - 2.0 * np.log(mean[known]))), beta
