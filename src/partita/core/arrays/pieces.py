"""Pieces of different lengths, one after another in one array."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..results import IntArray


def take_pieces(offsets: Any, order: Any) -> tuple[IntArray, IntArray]:
    """The offsets of some pieces put one after the other, and where each of their entries was.

    >>> import numpy as np
    >>> [part.tolist() for part in take_pieces(np.array([0, 2, 3, 6]), np.array([2, 0]))]
    [[0, 3, 5], [3, 4, 5, 0, 1]]
    """
    lengths = np.diff(offsets)[order].astype(np.int64)
    taken = np.zeros(len(lengths) + 1, np.int64)
    taken[1:] = np.cumsum(lengths)
    return taken, np.repeat(offsets[:-1][order].astype(np.int64) - taken[:-1], lengths) + np.arange(taken[-1])
