"""Whether a likelihood has no maximum, because its classes are separated: in any units, and from any point near the end.

Classes are separated along a direction of the weights if moving along it lowers the score of no example's class, beside the
other classes, and raises that of some: the likelihood then rises for ever. Gradient and curvature vanish together on the
way, so that a solver sees them fall below any tolerance, sooner or later as the units are.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray
from ..features.linear import LinearMap
from .likelihood import SoftmaxPoint

#: Smallest margin, relative to the largest, that is no rounding.
ROUNDING = 1e-9
#: Probabilities below which a fit is looked at more closely: along a separating direction they fall with the tolerance.
CERTAIN, PER_TOLERANCE = 1e-4, 100.0
#: Share of the most information that these columns could carry above which a direction is no separating one.
INFORMED = 0.02
#: and below which nothing is left to learn along it: the estimate is at infinity, for double precision.
VANISHED = 1e-10
#: Steps of Newton's method that are tried then, and the share of the last one's gain below which a step's gain shows a
#: maximum: there gains fall as squares do, along a separating direction by e.
STEPS, FALL = 8, 0.1
#: Gain for each example at which a maximum is reached.
REACHED = 1e-18
#: Share of the largest eigenvalue below which columns count as collinear.
SINGULAR = 1e-10
#: Weights, and operations of one Newton step, above which only whole separation is recognised.
MOST_WEIGHTS, MOST_OPERATIONS = 600, 2e10


class Separation(NamedTuple):
    """What separates the classes: all examples at once, or a direction of the weights."""

    complete: bool
    margin: float  # the smallest score by which the class of an example is ahead
    direction: FloatArray  # flat, as the weights


def separation(point: SoftmaxPoint, tol: float, closely: bool = True) -> Separation | None:
    """What separates the classes at a point where a solver has stopped; None if nothing does, or there are too many data.

    Whole separation is proved by the weights themselves. Separation along a direction is recognised if `closely`, by steps
    of Newton's method, which do not depend on units: to a maximum they lead at once.
    """
    margin = smallest_margin(point)
    if margin > 0.0:
        return Separation(True, margin, point.parameters)
    if not closely or not isinstance(point.objective.features, LinearMap):
        return None
    low = point.marginals if point.marginals.shape[1] > 1 else np.minimum(point.marginals, 1.0 - point.marginals)
    if float(low.min()) > max(CERTAIN, PER_TOLERANCE * tol):
        return None
    direction = _runaway(point)
    return None if direction is None else Separation(False, 0.0, direction)


def smallest_margin(point: SoftmaxPoint) -> float:
    """How far the true class is ahead of the others, in the example where that is least; base measures left out."""
    o = point.objective
    if not isinstance(o.features, LinearMap):
        return -np.inf
    with np.errstate(invalid="ignore"):
        u = np.where(np.isfinite(o.structure.offset), point.u - o.structure.offset, -np.inf)
    counts = o.weights > 0.0
    if u.shape[1] == 1:
        margins = np.where(o.y == 1, u[:, 0], -u[:, 0])[counts]
    else:
        rows = np.arange(len(u))
        own = u[rows, o.y]
        u[rows, o.y] = -np.inf
        margins = (own - u.max(axis=1))[counts]
    least = float(margins.min())
    return least if least > ROUNDING * float(np.abs(margins).max()) else min(least, 0.0)


def _runaway(point: SoftmaxPoint) -> FloatArray | None:
    """The direction in which Newton's method goes on and on, if there is one."""
    o = point.objective
    if o.size > MOST_WEIGHTS or float(o.features.n_examples) * o.size**2 > MOST_OPERATIONS:
        return None
    root, start, last = whitening(point), point.parameters, 0.0
    for _ in range(STEPS):
        shares, vectors = np.linalg.eigh(root.T @ point.model("hessian").matrix() @ root)
        if shares[0] > INFORMED:
            return None
        if shares[0] < VANISHED:
            return np.asarray(root @ vectors[:, 0])
        slope = vectors.T @ (root.T @ point.gradient)
        gain = float(slope @ (slope / shares))
        if gain <= REACHED * o.scale or gain < FALL * last:
            return None
        last = gain
        ray, length = point.along(root @ (vectors @ (-slope / shares))), 1.0
        following = ray.at(length)[0]
        while not following.value < point.value and length > 1e-3:
            length *= 0.5
            following = ray.at(length)[0]
        if not following.value < point.value:
            return None
        point = following
    return np.asarray(point.parameters - start)


def whitening(point: SoftmaxPoint) -> FloatArray:
    """Columns in which the most information that the data could carry (Böhning's bound) is the identity."""
    limit = point.model("bohning").matrix()
    diagonal = np.diag(limit)
    scale = np.where(diagonal > 0.0, np.sqrt(np.maximum(diagonal, 0.0)), np.inf)  # columns without any: weight zero
    values, vectors = np.linalg.eigh(limit / np.outer(scale, scale))
    keep = values > SINGULAR * values[-1]
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]) / scale[:, None])
