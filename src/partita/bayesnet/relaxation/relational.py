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

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize

from ...core.results import FloatArray, IntArray
from ...core.validation import check_count, check_real
from ..kernels.network import fit_distributions


@dataclass(frozen=True)
class Regression:
    """The optimum of one form and where it is attained: W, Theta or Lambda."""

    optimum: float
    solution: FloatArray


def indicators(codes: Any, n_values: int | None = None, name: str = "codes") -> FloatArray:
    """A row with a single 1 for every code."""
    found = check_codes(name, codes, n_values)
    return np.eye(int(found.max()) + 1 if n_values is None else n_values)[found]


def check_codes(name: str, codes: Any, n_values: int | None = None, length: int | None = None) -> IntArray:
    """Return codes 0, 1, ... as int64, or raise a ValueError that says what is wrong with them."""
    found = np.asarray(codes)
    if found.ndim != 1 or (length is not None and len(found) != length) or not np.issubdtype(found.dtype, np.integer):
        expected = "integers of shape (n_rows,)" if length is None else f"integers of shape ({length},)"
        raise ValueError(f"{name} must be {expected}, got {found.dtype} of shape {found.shape}")
    limit = np.inf if n_values is None else n_values
    if len(found) and (found.min() < 0 or found.max() >= limit):
        upper = "" if n_values is None else f" and below {n_values}"
        raise ValueError(f"{name} must be at least 0{upper}, got {found.min()} to {found.max()}")
    return found.astype(np.int64)


def primal(parents: Any, child: Any, n_values: int, alpha: float) -> Regression:
    """Form (3), by Newton's method: configurations of the parents do not touch each other."""
    Phi, Y = _checked(parents, child, n_values, alpha)
    counts = Phi.T @ Y
    W = table_weights(counts, alpha)
    return Regression(table_loss(counts, W, alpha), W)


def dual(parents: Any, child: Any, n_values: int, alpha: float) -> Regression:
    """Form (4); ``W = Phi'(Y - Theta) / alpha``."""
    Phi, Y = _checked(parents, child, n_values, alpha)
    return _maximize(Y, Phi @ Phi.T, np.eye(n_values), np.zeros(n_values), alpha)


def relational_dual(K: Any, M: Any, alpha: float) -> Regression:
    """Form (6), which knows only which rows agree: K (t x t) in the parents, M (t x t) in the child."""
    K, M = np.asarray(K, dtype=np.float64), np.asarray(M, dtype=np.float64)
    if K.ndim != 2 or K.shape[0] != K.shape[1] or K.shape != M.shape or not len(K):
        raise ValueError(f"K and M must be square and of one size, got {K.shape} and {M.shape}")
    if M.sum(1).min() <= 0.0:
        raise ValueError("M must have rows of positive sum: an equivalence relation has ones on its diagonal")
    check_real("alpha", alpha, minimum=0.0, strict=True)
    return _maximize(np.eye(len(K)), K, M, np.log(M.sum(1)), alpha)


def weights(Lambda: FloatArray, parents: Any, child: Any, n_values: int, alpha: float) -> FloatArray:
    """W of (3) from Lambda of (6): ``Phi'(I - Lambda) Y / alpha``."""
    Phi, Y = _checked(parents, child, n_values, alpha)
    return np.asarray(Phi.T @ (Y - Lambda @ Y) / alpha)


def _checked(parents: Any, child: Any, n_values: int, alpha: float) -> tuple[FloatArray, FloatArray]:
    check_count("n_values", n_values, minimum=1)
    check_real("alpha", alpha, minimum=0.0, strict=True)
    Phi = indicators(parents, name="parents")
    check_codes("child", child, n_values, len(Phi))
    return Phi, indicators(child, n_values)


def table_weights(counts: FloatArray, alpha: float) -> FloatArray:
    """The minimiser of `table_loss` for every row of counts (configurations x values) by itself."""
    W = np.zeros(counts.shape)
    starts = counts.shape[1] * np.arange(len(counts) + 1)
    fit_distributions(np.ascontiguousarray(counts, dtype=np.float64).ravel(), starts, float(alpha), W.reshape(-1))
    return W


def table_loss(counts: FloatArray, W: FloatArray, alpha: float) -> float:
    """``sum n log sum exp W - sum counts W + alpha/2 |W|^2``."""
    return float(0.5 * alpha * np.sum(W * W) - np.sum(counts * log_softmax(W)))


def log_softmax(scores: FloatArray) -> FloatArray:
    """Logarithms of the softmax of every row."""
    shifted = scores - scores.max(1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))


def _maximize(target: FloatArray, K: FloatArray, M: FloatArray, cost: FloatArray, alpha: float) -> Regression:
    """max over P, rows on simplices, of ``-sum P log P - 1'P cost - tr((target - P)' K (target - P) M) / 2 alpha``.

    Entropy keeps the maximum inside, where P = softmax of scores has no other stationary point.
    """

    def loss(z: FloatArray) -> tuple[float, FloatArray]:
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
