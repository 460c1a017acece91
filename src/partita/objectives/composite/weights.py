"""Weights of the orders of a composite likelihood that make its estimates most accurate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...core.results import FloatArray, Solution, Status
from ...core.warn import warn

#: Most times that weights are chosen anew, and the change of their logarithms that ends it.
ROUNDS, SETTLED = 5, 1e-2
#: Part of the largest contribution to the information below which an order is dropped.
DROPPED = 1e-3
#: Logarithm of the largest ratio of contributions that is tried.
FARTHEST = 12.0
#: Part of the largest entry below which a parameter has no information, and of the largest eigenvalue a direction.
NOTHING, SINGULAR = 1e-12, 1e-10
#: Gain in the mean logarithm of variances that is not trusted where it is judged by diagonals.
LEAST_GAIN = 1e-2
#: The same for matrices that are estimated, for one example: in the best of weights, noise of 1/sqrt(n) counts squared.
NOISE = 1.0
#: When the search for weights ends.
EXACTLY = {"ftol": 1e-14, "gtol": 1e-9}
IGNORANT = "weights='auto': no parameter has any information to choose weights by"


def best_weights(J: FloatArray, S: FloatArray, least_gain: float | None = None) -> FloatArray:
    """The weights beta that minimise ``log det S(beta) - 2 log det J(beta)``, the size of the variance of the estimates.

    ``J(beta) = sum_k beta_k J_k``, ``S(beta) = sum_kl beta_k beta_l S_kl``. Only ratios of weights matter: the first
    order that is kept has weight one. An order that hardly contributes to J is dropped, with weight zero, and all but one
    are where together they are not better than the best of them. Directions about which nothing is known are left out.

    Parameters
    ----------
    J : array of shape (orders, parameters), or (orders, parameters, parameters)
        The Hessian of each order, or its diagonal: determinants are then as if the matrices were diagonal.
    S : array of shape (orders, orders, parameters), or (orders, orders, parameters, parameters)
        The covariances of the scores of orders, selection included, or their diagonals.
    least_gain : float, optional
        How much smaller than with the best order alone the variance must be, in the mean of logarithms. Default: anything,
        if matrices are given. Diagonals are often wrong by a part in a thousand, and must promise more.

    Examples
    --------
    Independent estimates of one number, with variances 1 and 4:

    >>> import numpy as np
    >>> from partita.objectives.composite.weights import best_weights
    >>> best_weights(np.array([[1.0], [1.0]]), np.array([[[1.0], [0.0]], [[0.0], [4.0]]])).round(4)
    array([1.  , 0.25])
    """
    dense = J.ndim == 3
    size, criterion = _whole(J, S) if dense else _by_diagonals(J, S)
    K = len(J)

    def value(b: FloatArray) -> tuple[float, FloatArray]:
        beta = np.exp(b)
        found, gradient = criterion(beta)
        return found, beta * gradient

    starts = [np.zeros(K), *(FARTHEST / 3.0 * np.eye(K))] if K > 1 else [np.zeros(K)]
    given: dict[str, Any] = {"jac": True, "method": "L-BFGS-B", "bounds": [(-FARTHEST, FARTHEST)] * K, "options": EXACTLY}
    runs = [minimize(value, start, **given) for start in starts]
    together = min(runs, key=lambda run: float(run.fun))
    beta = np.exp(together.x - together.x.max())
    beta[(beta < DROPPED) | np.isinf(size)] = 0.0
    units = np.eye(K)[np.isfinite(size)]
    alone = [criterion(unit)[0] for unit in units]
    gain = (LEAST_GAIN if not dense else 0.0) if least_gain is None else least_gain
    if not min(alone) - criterion(beta)[0] > gain:
        beta = units[int(np.argmin(alone))]
    beta = beta / size
    return np.asarray(beta / beta[np.flatnonzero(beta)[0]])


def estimated_weights(J: FloatArray, S: FloatArray, examples: int) -> FloatArray:
    """`best_weights`, from moments of so many examples: a gain that is no larger than their noise counts as none."""
    return best_weights(J, S, NOISE / examples if J.ndim == 3 else None)


#: The mean logarithm of variances of weights whose contributions to J are given, and its gradient.
Criterion = Callable[[FloatArray], tuple[float, FloatArray]]


def _by_diagonals(J: FloatArray, S: FloatArray) -> tuple[FloatArray, Criterion]:
    """Sizes of J, in units of which weights are, and the criterion if matrices were diagonal."""
    K = len(J)
    own = S[np.arange(K), np.arange(K)].sum(0)
    known = (J.sum(0) > NOTHING * J.sum(0).max()) & (own > NOTHING * own.max())
    if not known.any():
        raise ValueError(IGNORANT)
    size = J[:, known].sum(1)
    size[size <= 0.0] = np.inf
    j = J[:, known] / size[:, None]  # contributions of the same size at b = 0
    s = S[:, :, known] / (size[:, None, None] * size[None, :, None])

    def criterion(beta: FloatArray) -> tuple[float, FloatArray]:
        mean = np.maximum(beta @ j, 1e-300)
        half = np.einsum("l,klp->kp", beta, s)
        spread = np.maximum(beta @ half, 1e-300)
        value = np.log(spread).mean() - 2.0 * np.log(mean).mean()
        return float(value), (2.0 * half / spread).mean(1) - 2.0 * (j / mean).mean(1)

    return size, criterion


def _whole(J: FloatArray, S: FloatArray) -> tuple[FloatArray, Criterion]:
    """The same of matrices."""
    size = np.einsum("kpp->k", J).copy()
    if not size.max(initial=0.0) > 0.0:
        raise ValueError(IGNORANT)
    size[size <= NOTHING * size.max()] = np.inf
    values, vectors = np.linalg.eigh(np.einsum("kpq,k->pq", J, 1.0 / size))
    known = values > SINGULAR * values[-1]
    Q = vectors[:, known] / np.sqrt(values[known])  # where all contributions together are one
    j = np.einsum("ap,kab,bq,k->kpq", Q, J, Q, 1.0 / size, optimize=True)
    s = np.einsum("ap,klab,bq,k,l->klpq", Q, S, Q, 1.0 / size, 1.0 / size, optimize=True)
    count = Q.shape[1]

    def criterion(beta: FloatArray) -> tuple[float, FloatArray]:
        mean = np.einsum("k,kpq->pq", beta, j)
        half = np.einsum("l,klpq->kpq", beta, s)
        spread = np.einsum("k,kpq->pq", beta, half)
        signs, logs = np.linalg.slogdet(np.array([mean, spread]))
        if not signs.min() > 0.0 or np.linalg.cond(mean) > 1.0 / SINGULAR:
            return np.inf, np.zeros(len(beta))  # these objects alone do not determine the weights
        inverse = np.linalg.inv(np.array([mean, spread]))
        gradient = 2.0 * np.einsum("kpq,pq->k", half, inverse[1]) - 2.0 * np.einsum("kpq,pq->k", j, inverse[0])
        return float(logs[1] - 2.0 * logs[0]) / count, gradient / count

    return size, criterion


def alternate(
    solve: Callable[[FloatArray, FloatArray | None], Solution],
    moments: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    orders: Sequence[Hashable],
    examples: int,
) -> tuple[Solution, FloatArray]:
    """Parameters and weights in turn, until weights settle: the last solution, and the weights that it was found with.

    Parameters
    ----------
    solve : function of weights and a start
        Minimises the objective with these weights.
    moments : function of parameters
        J and S there, see `best_weights`, diagonals or matrices.
    orders : list
        Names of the orders. A UserWarning names those that are dropped.
    examples : int
        That the moments are of.
    """
    beta = np.ones(len(orders))
    solution = solve(beta, None)
    for _ in range(0 if solution.status is Status.INTERRUPTED else ROUNDS):
        found = estimated_weights(*moments(solution.parameters), examples)
        with np.errstate(divide="ignore", invalid="ignore"):
            moved = np.abs(np.log(found) - np.log(beta))
        beta = found
        solution = solve(beta, solution.parameters)
        if np.nanmax(moved, initial=0.0) < SETTLED or solution.status is Status.INTERRUPTED:
            break
    dropped = list(itertools.compress(orders, (beta == 0.0).tolist()))
    if dropped:
        names = ", ".join(f"order {order!r}" for order in dropped)
        warn(f"weights='auto' drops {names}: estimates are most accurate without", UserWarning)
    return solution, beta
