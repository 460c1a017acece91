"""Classes that are separated: the verdict of a fit, in words."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import Status
from ..objective.separation import Separation, separation

#: Columns whose part of a separating direction is at least this share of the largest are named, if they are so few.
NAMED, FEW = 0.2, 3


def find_separation(model: Any, point: Any, status: Status) -> Separation | None:
    """What separates the classes where a softmax regression has stopped, if no penalty can be felt at its tol there."""
    if status is Status.INTERRUPTED:
        return None
    smooth = point.likelihood
    if model.l2 > 0.0 or model.l1 > 0.0:
        largest = float(np.abs(smooth.parameters).max(initial=0.0))
        if max(model.l2 * largest, model.l1) > model.tol * smooth.objective.scale:
            return None
    closely = model.l2 == 0.0 and model.l1 == 0.0 and status in (Status.CONVERGED, Status.PRECISION)
    return separation(smooth, model.tol, closely)


def hidden_separation(point: Any) -> float:
    """The least score by which the best state of an example's class is ahead of those of other classes; > 0 is separation.

    Then the loss of the same weights times t tends to zero: that is its lowest value, and no weights reach it.
    """
    o = point.objective
    own = np.where(o.allowed, point.u, -np.inf).max(axis=1)
    others = np.where(o.allowed, -np.inf, point.u).max(axis=1)
    margins = (own - others)[(o.weights > 0.0) & ~o.allowed.all(axis=1)]
    least = float(margins.min(initial=np.inf))
    return least if least > 1e-9 * float(np.abs(margins).max(initial=0.0)) else min(least, 0.0)


def separated_text(model: Any, found: Separation, features: Any, coefficients: Any, named: bool) -> str:
    """A warning: what separates the classes, how large weights have become, and what to do."""
    penalty = f" (l2={model.l2:g} and l1={model.l1:g} are too small to count at tol={model.tol:g})"
    largest = float(np.abs(coefficients).max(initial=0.0))
    end = (
        f"the likelihood has no maximum{penalty if model.l2 or model.l1 else ''}, and the weights returned, up to "
        f"{largest:.3g}, are where the solver stopped. Raise l2"
    )
    if found.complete:
        return (
            f"the classes are separated: every one of {features.n_examples} examples is on the right side, by a score of "
            f"at least {found.margin:.3g}, so that larger weights always fit better; {end}"
        )
    sizes = np.abs(features.unpack(found.direction)[0]).max(axis=0)
    columns = np.flatnonzero(sizes >= NAMED * sizes.max(initial=0.0))
    where = "along a combination of columns"
    if named and 0 < len(columns) <= FEW:
        names = getattr(model, "feature_names_in_", [f"x{j}" for j in range(model.n_features_in_)])
        where = f"along {', '.join(repr(str(names[j])) for j in columns)}"
    return f"the classes are separated {where}: larger weights there always fit better; {end}, or drop those columns"
