"""Large arrays that are used again: mapping fresh memory can cost as much as the arithmetic that fills it."""

from __future__ import annotations

import sys
import weakref
from typing import Any

import numpy as np

from .results import FloatArray

#: Arrays kept for later.
MOST_FREE = 8


class Owner:
    """Something to own a buffer for a while."""


class Buffers:
    """Uninitialised float64 arrays of one shape, lent to an owner and used again after its death.

    An array that somebody else still holds then is left to them.
    """

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape
        self._free: list[FloatArray] = []
        self._unshared = 0  # references seen by `_back` to an array that only the buffers hold
        owner = Owner()
        self.lend(owner)
        del owner
        self._free.clear()

    def lend(self, owner: Any) -> FloatArray:
        """An array with arbitrary contents for the life of `owner`."""
        array = self._free.pop() if self._free else np.empty(self.shape)
        weakref.finalize(owner, self._back, array).atexit = False
        return array

    def _back(self, array: FloatArray) -> None:
        count = sys.getrefcount(array)
        if not self._unshared:
            self._unshared = count
        if count <= self._unshared and len(self._free) < MOST_FREE:
            self._free.append(array)
