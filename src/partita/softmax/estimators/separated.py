"""Classes that are separated: the verdict of a fit, in words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray, Status
from ..features.linear import LinearMap
from ..objective.elastic_net import ElasticNetPoint
from ..objective.latent import LatentPoint
from ..objective.likelihood import LikelihoodPoint, SoftmaxPoint
from ..objective.separation import Separation, separation

#: Columns whose part of a separating direction is at least this share of the largest are named, if they are so few.
NAMED, FEW = 0.2, 3


class Restraint(NamedTuple):
    """What keeps the weights of a softmax regression from growing: its penalties, as far as they count at its tol."""

    l2: float
    l1: float
    tol: float

    def counts(self, point: SoftmaxPoint) -> bool:
        """Whether a penalty can be felt there."""
        if self.l2 == 0.0 and self.l1 == 0.0:
            return False
        largest = float(np.maximum.reduce(np.abs(point.parameters), initial=0.0))
        return max(self.l2 * largest, self.l1) > self.tol * point.objective.scale


def find_separation(point: LikelihoodPoint | ElasticNetPoint, status: Status, restraint: Restraint) -> Separation | None:
    """What separates the classes where a softmax regression has stopped, if no penalty can be felt there."""
    if status is Status.INTERRUPTED:
        return None
    smooth = point.likelihood
    if restraint.counts(smooth):
        return None
    closely = restraint.l2 == 0.0 and restraint.l1 == 0.0 and status in (Status.CONVERGED, Status.PRECISION)
    return separation(smooth, restraint.tol, closely)


def hidden_separation(point: LatentPoint) -> float:
    """The least score by which the best state of an example's class is ahead of those of other classes; > 0 is separation.

    Then the loss of the same weights times t tends to zero: that is its lowest value, and no weights reach it.
    """
    o = point.objective
    own = np.where(o.allowed, point.u, -np.inf).max(axis=1)
    others = np.where(o.allowed, -np.inf, point.u).max(axis=1)
    margins = (own - others)[(o.weights > 0.0) & ~o.allowed.all(axis=1)]
    least = float(margins.min(initial=np.inf))
    return least if least > 1e-9 * float(np.abs(margins).max(initial=0.0)) else min(least, 0.0)


def separated_text(
    found: Separation,
    features: LinearMap,
    coefficients: FloatArray,
    restraint: Restraint,
    names: Sequence[str] | None,
) -> str:
    """A warning: what separates the classes, how large weights have become, and what to do.

    Parameters
    ----------
    features : LinearMap
        Of the parameters of `found`.
    coefficients : array
        The weights that the user gets.
    names : sequence of str, optional
        Of the columns of `features`; None if these are combinations of the user's.
    """
    l2, l1, tol = restraint
    penalty = f" (l2={l2:g} and l1={l1:g} are too small to count at tol={tol:g})" if l2 or l1 else ""
    end = (
        f"the likelihood has no maximum{penalty}, and the weights returned, up to "
        f"{float(np.abs(coefficients).max(initial=0.0)):.3g}, are where the solver stopped. Raise l2"
    )
    if found.complete:
        return (
            f"the classes are separated: every one of {features.n_examples} examples is on the right side, by a score of "
            f"at least {found.margin:.3g}, so that larger weights always fit better; {end}"
        )
    sizes = np.abs(features.unpack(found.direction)[0]).max(axis=0)
    columns = np.flatnonzero(sizes >= NAMED * sizes.max(initial=0.0))
    where = "along a combination of columns"
    if names is not None and 0 < len(columns) <= FEW:
        where = f"along {', '.join(repr(str(names[j])) for j in columns.tolist())}"
    return f"the classes are separated {where}: larger weights there always fit better; {end}, or drop those columns"
