"""The softmax loss of scores that are held label by label, (labels x examples), for coordinate descent.

Two classes have one row, the log-odds. Sums are taken in loops that store nothing, see `proximal`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray
from ...numerics.jit import sum_kernel
from ...numerics.math import exp, log1p_unit
from .newton import cholesky_solve

#: Relative differences of the objective that are rounding.
ROUNDING = 4e-16


class Scores(NamedTuple):
    """Scores and what the loss is there, label by label.

    Attributes
    ----------
    U : array (labels, examples)
        Scores; of two classes one row, the log-odds.
    P : array (labels, examples)
        Probabilities.
    R : array (labels, examples)
        Residuals w (P - e_y), the gradient of the loss in U.
    """

    U: FloatArray
    P: FloatArray
    R: FloatArray


@sum_kernel
def binary_loss(U, targets, P, R):
    """sum_i w_i (-log p(y_i)); writes the probability of label 1 and the residual w (p - y)."""
    y, w = targets.y, targets.w
    n = U.shape[1]
    losses = np.empty(n)
    for i in range(n):
        s = U[0, i]
        size = abs(s)
        e = exp(-size)
        small = e / (1.0 + e)
        large = 1.0 / (1.0 + e)
        P[0, i] = large if s > 0.0 else small
        sign = 2.0 * y[i] - 1.0
        right = s * sign > 0.0
        R[0, i] = -sign * w[i] * (small if right else large)
        losses[i] = w[i] * (log1p_unit(e) + (0.0 if right else size))
    return losses.sum()


@sum_kernel
def loss(U, targets, P, R):
    """sum_i w_i (-log p(y_i)); writes the probabilities P and the residuals R = w (P - e_y)."""
    y, w = targets.y, targets.w
    K, n = U.shape
    if K == 1:
        return binary_loss(U, targets, P, R)
    top = U[0].copy()
    for k in range(1, K):
        for i in range(n):
            top[i] = max(top[i], U[k, i])
    for k in range(K):
        for i in range(n):
            P[k, i] = exp(U[k, i] - top[i])
    rest = np.zeros(n)  # the sum of the wrong labels: 1 - p of the target is exact when p is close to 1
    target = np.empty(n)
    for i in range(n):
        target[i] = P[y[i], i]
        P[y[i], i] = 0.0
    for k in range(K):
        for i in range(n):
            rest[i] += P[k, i]
    losses = np.zeros(n)
    for i in range(n):
        e = target[i]
        P[y[i], i] = e
        if w[i] != 0.0:
            if rest[i] <= e:
                losses[i] = w[i] * np.log1p(rest[i] / e)
            elif e > 1e-300:
                losses[i] = w[i] * np.log((rest[i] + e) / e)
            else:
                losses[i] = w[i] * (top[i] + np.log(rest[i] + e) - U[y[i], i])
        target[i] = 1.0 / (rest[i] + e)
    for k in range(K):
        for i in range(n):
            P[k, i] *= target[i]
            R[k, i] = w[i] * P[k, i]
    for i in range(n):
        R[y[i], i] = -w[i] * (rest[i] * target[i])
    return losses.sum()


@sum_kernel
def fit_intercepts(targets, accuracy, value, b, scores):
    """Newton's method on free intercepts b (labels), until no slope exceeds `accuracy`, in place.

    Takes and returns the loss.
    """
    w = targets.w
    U, P, R = scores
    K, n = U.shape
    m = max(1, K - 1)  # with several labels the last one's is held: a constant added to all changes nothing
    H = np.empty((m, m))
    d = np.empty(K)
    trial = np.empty_like(U)
    previous = np.inf
    flat = False
    for _ in range(50):
        largest = 0.0
        for k in range(K):
            d[k] = -R[k].sum()
            largest = max(largest, abs(d[k]))
        if largest <= accuracy or (flat and largest > 0.25 * previous):  # at the limit of rounding
            break
        previous = largest
        for k in range(m):
            for l in range(k + 1):  # noqa: E741
                s = 0.0
                for i in range(n):
                    s -= w[i] * P[k, i] * P[l, i]
                H[k, l] = s
            s = 0.0
            for i in range(n):
                s += w[i] * P[k, i]
            H[k, k] = (H[k, k] + s) * (1.0 + 1e-12) if s > 0.0 else 1.0  # a label that the base measure forbids
        if cholesky_solve(H, d[:m]) != 0:
            break
        if K > 1:
            d[m] = 0.0
        t = 1.0
        lower = False
        while t > 1e-9 and not lower:
            for k in range(K):
                for i in range(n):
                    trial[k, i] = U[k, i] + t * d[k]
            following = loss(trial, targets, P, R)
            lower = following <= value * (1.0 + ROUNDING)
            if not lower:
                t *= 0.25
        if not lower:
            value = loss(U, targets, P, R)
            break
        flat = following >= value * (1.0 - 1e3 * ROUNDING)
        value = following
        for k in range(K):
            b[k] += t * d[k]
            for i in range(n):
                U[k, i] = trial[k, i]
    return value


@sum_kernel
def divergence(P, targets, c):
    """sum_i w_i KL(q_i || p_i) for q = e_y + c (p - e_y).

    P is (examples x labels). One column holds the log-odds instead: of two probabilities one may be too small for 1 - p.
    """
    y, w = targets.y, targets.w
    total = 0.0
    log_c = np.log(c) if c > 0.0 else 0.0
    for i in range(P.shape[0]):
        if P.shape[1] == 1:
            margin = P[i, 0] if y[i] == 1 else -P[i, 0]
            p = 1.0 / (1.0 + np.exp(-margin))
            s = 1.0 / (1.0 + np.exp(margin))
        else:
            p = P[i, y[i]]
            s = 1.0 - p
        if w[i] != 0.0:
            total += w[i] * (c * s * log_c + (1.0 - c * s) * np.log((1.0 - c * s) / p))
    return total
