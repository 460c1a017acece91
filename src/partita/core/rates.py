"""Choosing a learning rate by trying."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

#: Most powers of two tried.
TRIES = 14


def best_rate(loss: Callable[[float], float], first: float) -> float:
    """The power of two times `first` with the smallest loss, reached downhill from `first` (Bottou's recipe)."""
    tried: dict[int, float] = {}

    def at(power: int) -> float:
        if power not in tried:
            value = loss(first * 2.0**power)
            tried[power] = value if np.isfinite(value) else np.inf
        return tried[power]

    best = 0
    while at(best) == np.inf and len(tried) < TRIES:
        best -= 1
    while len(tried) < TRIES:
        better = min((best + 1, best - 1), key=at)
        if not at(better) < at(best):
            break
        best = better
    return first * 2.0**best
