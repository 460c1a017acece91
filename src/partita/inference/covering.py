"""Where Frank-Wolfe begins with nothing but a solver: configurations whose mean has no zero or one that can be avoided."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..core.results import FloatArray


def covering(best: Callable[[FloatArray], FloatArray], size: int, first: FloatArray | None = None) -> FloatArray:
    """Configurations, one per row, such that every part that any configuration has is in one, and missing in another one if
    there is one without it.

    Each call asks for as many parts as can be that were never had (then: never missing). An answer without a new one proves
    that no configuration has any of them.

    Parameters
    ----------
    best : callable
        The configuration of largest score, as a point.
    size : int
        Parts.
    first : array, optional
        A configuration that is known.
    """
    rows = [] if first is None else [np.asarray(first, dtype=np.float64)]
    seen = np.zeros((2, size), bool)  # had, and missing
    for row in rows:
        seen |= row > 0.0, row < 1.0
    for kind in range(2):
        while not seen[kind].all():
            scores = np.where(seen[kind], 0.0, 1.0 if kind == 0 else -1.0)
            row = best(scores)
            new = np.array([row > 0.0, row < 1.0]) & ~seen
            if not new[kind].any():
                break
            seen |= new
            rows.append(row)
    return np.array(rows if rows else [best(np.zeros(size))])
