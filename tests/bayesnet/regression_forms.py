"""Log-linear regression on equivalence relations: three forms of one problem.

A child of v values given c configurations of its parents, with weights W (c x v) and penalty alpha/2 |W|^2. With
indicators Phi (t x c) of configurations and Y (t x v) of values, K = Phi Phi' and M = YY':

    (3)  min_W      sum_i log sum_a exp(Phi_i W_a) - tr(Phi W Y') + alpha/2 |W|^2
    (4)  max_Theta  -sum Theta log Theta - tr((Y - Theta)' K (Y - Theta)) / 2 alpha
    (6)  max_Lambda -sum Lambda log Lambda - 1' Lambda log(M1) - tr((I - Lambda)' K (I - Lambda) M) / 2 alpha

with rows of Theta and Lambda on simplices. (3) and (4) are equal; (6) is equal to them if every value occurs, since M
does not know of values that never do. The last two are for small t: they are there to show that.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize

from partita.bayesnet.relaxation.relational import log_softmax, table_loss, table_weights


class Regression(NamedTuple):
    """The optimum of one form and where it is attained: W, Theta or Lambda."""

    optimum: float
    solution: np.ndarray


def indicators(codes, n_values=None):
    """A row with a single 1 for every code."""
    return np.eye(int(np.max(codes)) + 1 if n_values is None else n_values)[np.asarray(codes)]


def primal(parents, child, n_values, alpha):
    """Form (3), by Newton's method: configurations of the parents do not touch each other."""
    counts = indicators(parents).T @ indicators(child, n_values)
    W = table_weights(counts, alpha)
    return Regression(table_loss(counts, W, alpha), W)


def dual(parents, child, n_values, alpha):
    """Form (4); ``W = Phi'(Y - Theta) / alpha``."""
    Phi, Y = indicators(parents), indicators(child, n_values)
    return _maximize(Y, Phi @ Phi.T, np.eye(n_values), np.zeros(n_values), alpha)


def relational_dual(K, M, alpha):
    """Form (6), which knows only which rows agree: K (t x t) in the parents, M (t x t) in the child."""
    return _maximize(np.eye(len(K)), K, M, np.log(M.sum(1)), alpha)


def weights(Lambda, parents, child, n_values, alpha):
    """W of (3) from Lambda of (6): ``Phi'(I - Lambda) Y / alpha``."""
    Y = indicators(child, n_values)
    return indicators(parents).T @ (Y - Lambda @ Y) / alpha


def _maximize(target, K, M, cost, alpha):
    """max over P, rows on simplices, of ``-sum P log P - 1'P cost - tr((target - P)' K (target - P) M) / 2 alpha``.

    Entropy keeps the maximum inside, where P = softmax of scores has no other stationary point.
    """

    def loss(z):
        logs = log_softmax(z.reshape(target.shape))
        P = np.exp(logs)
        pulled = K @ (target - P) @ M / alpha
        value = np.sum(P * (logs + cost)) + 0.5 * np.sum(pulled * (target - P))
        slope = logs + cost - pulled
        return float(value), (P * (slope - np.sum(P * slope, axis=1, keepdims=True))).ravel()

    start = -np.broadcast_to(cost, target.shape).ravel()
    options = {"maxiter": 20_000, "maxfun": 100_000, "ftol": 1e-16, "gtol": 1e-12, "maxcor": 30}
    found = minimize(loss, start, jac=True, method="L-BFGS-B", options=options)
    return Regression(-float(found.fun), np.exp(log_softmax(found.x.reshape(target.shape))))
