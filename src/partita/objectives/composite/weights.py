"""Weights of the orders of a composite likelihood that make its estimates most accurate."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence

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
#: Part of the largest entry below which a parameter has no information.
NOTHING = 1e-12


def best_weights(J: FloatArray, S: FloatArray) -> FloatArray:
    """The weights beta that minimise ``sum_p [log S_pp(beta) - 2 log J_pp(beta)]``.

    That is the logarithm of the determinant of ``J^-1 S J^-1``, the variance of the estimates, if both were diagonal:
    ``J(beta) = sum_k beta_k J_k``, ``S(beta) = sum_kl beta_k beta_l S_kl``. Only ratios of weights matter: the first
    order that is kept has weight one. An order that hardly contributes to J is dropped, with weight zero. Parameters
    about which nothing is known are left out.

    Parameters
    ----------
    J : array of shape (orders, parameters)
        Diagonals of the Hessian of each order.
    S : array of shape (orders, orders, parameters)
        Diagonals of the covariances of the scores of orders, selection included.

    Examples
    --------
    Independent estimates of one number, with variances 1 and 4:

    >>> import numpy as np
    >>> from partita.objectives.composite.weights import best_weights
    >>> best_weights(np.array([[1.0], [1.0]]), np.array([[[1.0], [0.0]], [[0.0], [4.0]]])).round(4)
    array([1.  , 0.25])
    """
    K = len(J)
    own = S[np.arange(K), np.arange(K)].sum(0)
    known = (J.sum(0) > NOTHING * J.sum(0).max()) & (own > NOTHING * own.max())
    if not known.any():
        raise ValueError("weights='auto': no parameter has any information to choose weights by")
    size = J[:, known].sum(1)
    size[size <= 0.0] = np.inf
    j = J[:, known] / size[:, None]  # contributions of the same size at b = 0
    s = S[:, :, known] / (size[:, None, None] * size[None, :, None])

    def value(b: FloatArray) -> tuple[float, FloatArray]:
        beta = np.exp(b)
        mean = np.maximum(beta @ j, 1e-300)
        half = np.einsum("l,klp->kp", beta, s)
        spread = np.maximum(beta @ half, 1e-300)
        gradient = beta * ((2.0 * half / spread).sum(1) - 2.0 * (j / mean).sum(1))
        return float(np.log(spread).sum() - 2.0 * np.log(mean).sum()), gradient

    starts = [np.zeros(K), *(FARTHEST / 3.0 * np.eye(K))] if K > 1 else [np.zeros(K)]
    runs = [minimize(value, start, jac=True, method="L-BFGS-B", bounds=[(-FARTHEST, FARTHEST)] * K) for start in starts]
    b = min(runs, key=lambda run: float(run.fun)).x
    beta = np.exp(b - b.max())
    beta[(beta < DROPPED) | np.isinf(size)] = 0.0
    beta = beta / size
    return np.asarray(beta / beta[np.flatnonzero(beta)[0]])


def alternate(
    solve: Callable[[FloatArray, FloatArray | None], Solution],
    moments: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    orders: Sequence[Hashable],
) -> tuple[Solution, FloatArray]:
    """Parameters and weights in turn, until weights settle: the last solution, and the weights that it was found with.

    Parameters
    ----------
    solve : function of weights and a start
        Minimises the objective with these weights.
    moments : function of parameters
        J and S there, see `best_weights`.
    orders : list
        Names of the orders. A UserWarning names those that are dropped.
    """
    beta = np.ones(len(orders))
    solution = solve(beta, None)
    for _ in range(0 if solution.status is Status.INTERRUPTED else ROUNDS):
        found = best_weights(*moments(solution.parameters))
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
