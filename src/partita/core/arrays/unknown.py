"""What stands for "unknown" in data, and what only looks like it.

Unknown is None, NaN, ``pd.NA``, or -1 in an array of integers. An array of -1 and 1 only holds spins, and -100 is the index
that other libraries ignore: both are refused with the cure, as reading them as unknown or as a class is silent nonsense.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

#: The label that PyTorch and libraries on it leave out of a loss.
IGNORED = -100


def is_unknown(value: Any) -> bool:
    """Whether a single value stands for "unknown": None, NaN, NaT or ``pd.NA`` (-1 only counts in arrays of integers)."""
    if value is None:
        return True
    if isinstance(value, float | np.floating):
        return math.isnan(value)
    return type(value).__name__ in ("NAType", "NaTType")


def refuse_spins(name: str, values: Any, cure: str) -> None:
    """Raise a ValueError for numbers that are -1 and 1 only.

    Parameters
    ----------
    name : str
        Name of the parameter, for the message.
    values : array of numbers
        The distinct values are enough. NaN is passed over.
    cure : str
        How to say what is meant, as ``"Give (X + 1) // 2"``.
    """
    found = np.asarray(values)
    if found.dtype.kind not in "if" or not found.size:
        return
    if (np.isin(found, (-1, 1)) | (found != found)).all() and (found == -1).any() and (found == 1).any():
        raise ValueError(f"{name} holds -1 and 1 only: these are spins, but -1 among integers means unknown. {cure}")


def refuse_ignored(name: str, values: Any, cure: str) -> None:
    """Raise a ValueError if -100 is among integers or floats (the distinct values are enough)."""
    found = np.asarray(values)
    if found.dtype.kind in "if" and (found == IGNORED).any():
        raise ValueError(
            f"{name} holds -100, which other libraries ignore, but which is a number like any other here. {cure}"
        )
