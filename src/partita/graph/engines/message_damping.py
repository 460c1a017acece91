"""What makes messages settle, and settle sooner: damping that adapts, and Anderson acceleration."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray, IntArray

#: Earlier messages that reweighted ones are mixed with.
MIXED = 5


class AdaptiveDamping:
    """Damping that rises, to a half and then to three quarters, when changes have not shrunk for a while.

    Reweighted messages begin with a little: without, some of strong pairs go back and forth for ever.
    """

    def __init__(self, damping: float | None, reweighted: bool) -> None:
        self.value: float = damping if damping is not None else 0.1 if reweighted else 0.0
        self.steps: list[float] = [0.5, 0.75] if damping is None else []
        self.seen: list[float] = []

    def see(self, change: float) -> None:
        self.seen.append(change)
        if self.steps and len(self.seen) == 40:
            if min(self.seen[20:]) >= min(self.seen[:20]):  # slow is no reason: damping makes it slower
                self.value = self.steps.pop(0)
            self.seen = self.seen[20:]


class AndersonAcceleration:
    """Anderson acceleration: messages after a sweep back and forth become the combination of the last few such that would
    have changed the least, if changes were linear.

    Where reweighted messages settle slowly, as those of strong pairs do, this takes a quarter of the sweeps.
    """

    def __init__(self, messages: FloatArray, index: IntArray) -> None:
        self._messages, self._index = messages, index
        self._before = messages[index]
        self._after, self._change, self._size = self._before, self._before, np.inf
        #: Differences between successive messages, and between successive changes.
        self._steps, self._bends = np.empty((2, MIXED, len(index)))
        self._count = 0

    def mix(self) -> None:
        after = self._messages[self._index]
        change = after - self._before
        size = float(change @ change)
        if np.isfinite(self._size):
            place = self._count % MIXED
            np.subtract(after, self._after, out=self._steps[place])
            np.subtract(change, self._change, out=self._bends[place])
            self._count += 1
        if not size <= 4.0 * self._size:  # not linear at all
            self._count = 0
        self._after, self._change, self._size = after, change, size
        kept = min(self._count, MIXED)
        if kept:
            bends = self._bends[:kept]
            products = bends @ bends.T
            products[np.diag_indices(kept)] += 1e-12 * np.trace(products) + 1e-300
            mixed = after - np.linalg.solve(products, bends @ change) @ self._steps[:kept]
            if np.isfinite(mixed).all():
                after = mixed
        self._messages[self._index] = self._before = after
