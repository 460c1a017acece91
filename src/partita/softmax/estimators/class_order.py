"""Whether the examples of a stream come sorted by class, which makes it forget."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import chdtrc

from ...core.errors import DataWarning
from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray
from ...core.warn import warn

#: Examples that are compared with those before at once, at least.
WINDOW = 50
#: Part of the examples whose class would have to be another one, and probability of so much by chance, from which it counts.
APART, CHANCE = 0.5, 1e-6


@dataclass(frozen=True)
class ClassOrder:
    """How often each class came: before, and in the latest examples, which are too few yet to be compared."""

    before: FloatArray
    latest: FloatArray
    warned: bool = False

    @classmethod
    def after(cls, order: ClassOrder | None, codes: IntArray, classes: LabelArray) -> ClassOrder:
        """With more examples, whose classes are `codes`. Warns, once for a stream, if these are not like those before.

        The comparison is a chi-squared test of two samples; a difference must also be large, because streams drift.
        """
        order = order or cls(np.zeros(len(classes)), np.zeros(len(classes)))
        latest = order.latest + np.bincount(codes, minlength=len(classes))
        if latest.sum() < WINDOW:
            return replace(order, latest=latest)
        apart = not order.warned and order.before.any() and _differ(order.before, latest)
        if apart:
            _warn(order.before, latest, classes)
        return cls(order.before + latest, np.zeros(len(classes)), order.warned or bool(apart))


def _differ(before: FloatArray, latest: FloatArray) -> bool:
    n, m = before.sum(), latest.sum()
    if 0.5 * np.abs(before / n - latest / m).sum() < APART:
        return False
    both = before + latest
    came = both > 0.0
    squares = (np.sqrt(m / n) * before - np.sqrt(n / m) * latest)[came] ** 2 / both[came]
    return bool(chdtrc(max(1, int(came.sum()) - 1), float(squares.sum())) < CHANCE)


def _warn(before: FloatArray, latest: FloatArray, classes: LabelArray) -> None:
    most = int(np.argmax(latest / latest.sum() - before / before.sum()))
    warn(
        f"partial_fit: of the last {latest.sum():.0f} examples {latest[most] / latest.sum():.0%} are of class "
        f"{classes.tolist()[most]!r}, of the {before.sum():.0f} before {before[most] / before.sum():.0%}. A stream sorted "
        "by class forgets the classes that came first: shuffle the examples before they are cut into pieces, or use fit",
        DataWarning,
    )
