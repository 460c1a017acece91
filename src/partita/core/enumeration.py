"""Every output of a small structure, as rows of integers."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from .errors import TooLargeError
from .memory import check_memory
from .results import IntArray

#: Outputs that `enumerate` of a structure lists, at most.
MOST_OUTPUTS = 1 << 20
#: What else to do.
CURE = "Ask for log_partition, argmax or sample instead"


def check_few(count: float, width: int, what: str = "outputs") -> None:
    """Raise a TooLargeError, before any work, if so many outputs, of `width` numbers each, are too many to list."""
    if count > MOST_OUTPUTS:
        raise TooLargeError(f"there are {count:.4g} {what} or more to enumerate; the limit is {MOST_OUTPUTS}. {CURE}")
    check_memory(f"a list of {count:.0f} {what}", 16.0 * count * width, CURE)


def configurations(sizes: Iterable[int]) -> IntArray:
    """Every choice of one number below each size, a row each; the last changes fastest.

    >>> from partita.core.enumeration import configurations
    >>> configurations([2, 3]).tolist()
    [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]]
    """
    counts, total = [], 1
    for size in sizes:
        counts.append(int(size))
        total *= counts[-1]
        if total > MOST_OUTPUTS:
            break
    check_few(float(total), len(counts))
    codes = np.arange(total)
    out = np.empty((len(codes), len(counts)), np.int64)
    for v in reversed(range(len(counts))):
        codes, out[:, v] = np.divmod(codes, counts[v])
    return out
