"""Upper bounds on log Z along one direction, without a matrix, and the iteration count of Theorem 2."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from ...core.results import FloatArray
from ...core.validation import check_count, check_real


def _two_point_curvature(above: FloatArray, below: FloatArray) -> FloatArray:
    """B = tanh(|r|/2) / (2|r|) at r = log(above / below); 0 if one of them is."""
    with np.errstate(divide="ignore"):
        r = np.minimum(np.abs(np.log(above) - np.log(below)), 1e300)
    small = r < 1e-2
    square = np.where(small, r, 0.0) ** 2
    safe = np.where(small, 1.0, r)
    return np.where(small, 0.25 - square / 48.0 + square**2 / 480.0, np.tanh(0.5 * safe) / (2.0 * safe))


def range_certificate(probabilities: ArrayLike, values: ArrayLike) -> FloatArray:
    """K with ``log Z(u + t v) <= log Z(u) + t m + t^2 K / 2`` for all t, where m is the mean of v.

    Parameters
    ----------
    probabilities, values : arrays of shape (examples, labels)
        Label probabilities at u, and the direction v in potentials.

    Notes
    -----
    K = R^2 B((m - lo) / R) with R = hi - lo the range of v over labels of positive probability (proved).
    """
    p, v = np.atleast_2d(np.asarray(probabilities, float)), np.atleast_2d(np.asarray(values, float))
    live = p > 0.0
    lo = np.where(live, v, np.inf).min(1)
    hi = np.where(live, v, -np.inf).max(1)
    spread = hi - lo
    # Both distances are sums of positive terms: exact even when nearly all mass is at one end.
    above = np.where(live, p * (v - lo[:, None]), 0.0).sum(1)
    below = np.where(live, p * (hi[:, None] - v), 0.0).sum(1)
    varies = (above > 0.0) & (below > 0.0)
    curvature = _two_point_curvature(np.where(varies, above, 1.0), np.where(varies, below, 1.0))
    return np.asarray(np.where(varies, spread**2 * curvature, 0.0))


def self_concordant_certificate(probabilities: ArrayLike, values: ArrayLike, step: float) -> FloatArray:
    """E with ``log Z(u + t v) <= log Z(u) + t m + E`` at t = `step`: Var(v) (e^{R|t|} - R|t| - 1) / R^2."""
    p, v = np.atleast_2d(np.asarray(probabilities, float)), np.atleast_2d(np.asarray(values, float))
    t = abs(check_real("step", step))
    live = p > 0.0
    spread = np.where(live, v, -np.inf).max(1) - np.where(live, v, np.inf).min(1)
    mean = np.where(live, p * v, 0.0).sum(1)
    variance = np.where(live, p * (v - mean[:, None]) ** 2, 0.0).sum(1)
    x = spread * t
    with np.errstate(over="ignore"):
        growth = np.where(x < 1e-4, 0.5 * x * x * (1.0 + x / 3.0), np.expm1(x) - x)
    safe = np.where(spread > 0.0, spread, 1.0)
    return np.asarray(np.where(spread > 0.0, variance * growth / safe**2, 0.0))


def iteration_limit(n_labels: int, radius: float, l2_per_example: float, epsilon: float, *, softmax: bool = True) -> int:
    """Theorem 2: plain majorization reaches ``1 - epsilon`` of the possible decrease in at most this many iterations.

    Parameters
    ----------
    radius : float
        max ||f(x, y)||; with ``softmax=True``, max ||x|| (features e_y x, for which omega is halved).
    l2_per_example : float
        The paper's lambda: l2 divided by the number of examples.

    Notes
    -----
    N = ceil(log(1/eps) / log(1 + lambda/omega)), omega = 2 r^2 sum_{i=1}^{n-1} a_i, a_1 = 1/2, a_i = (i-1)/((i+1) ln i).
    The paper's proof holds on average over orderings; in descending order it holds always.
    """
    check_count("n_labels", n_labels, minimum=2)
    check_real("radius", radius, minimum=0.0, strict=True)
    check_real("l2_per_example", l2_per_example, minimum=0.0, strict=True)
    check_real("epsilon", epsilon, minimum=0.0, strict=True)
    terms = [0.5] + [(i - 1) / ((i + 1) * math.log(i)) for i in range(2, n_labels)]
    omega = 2.0 * radius**2 * sum(terms[: n_labels - 1]) * (0.5 if softmax else 1.0)
    return math.ceil(math.log(1.0 / epsilon) / math.log1p(l2_per_example / omega))
