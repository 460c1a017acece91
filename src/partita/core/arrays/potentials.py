"""The door for potentials: what kernels trust about the numbers that structures are given."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..results import FloatArray, IntArray

#: The largest potential that sums, products with weights and their squares are sure to hold.
LARGEST = 1e100


def real_array(name: str, values: Any) -> FloatArray:
    """Numbers as a contiguous array of doubles that can be written to: kernels are compiled once more for other arrays."""
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} must not be masked: fill in what is missing (-inf forbids)")
    array = np.asarray(values)
    if array.dtype.kind not in "fiub":
        raise ValueError(f"{name} must be real numbers, got an array of {array.dtype}")
    return np.require(array, np.float64, ["C", "W"])


def are_potentials(values: FloatArray) -> bool:
    """Whether all are potentials: -inf, or at most `LARGEST` in size."""
    if not values.size:
        return True
    if not values.max() <= LARGEST:  # NaN too
        return False
    least = values.min()
    return bool(least >= -LARGEST or (least == -np.inf and not ((values < -LARGEST) & (values > -np.inf)).any()))


def not_potential(values: FloatArray) -> NDArray[np.bool_]:
    """Which are none."""
    return np.asarray(~(values <= LARGEST) | ((values < -LARGEST) & (values > -np.inf)))


def refusal(name: str, value: float, where: str = "", forbids: str = "forbids") -> ValueError:
    """What to say about one that is none."""
    if np.isnan(value) or value == np.inf:
        return ValueError(f"{name} must not be NaN or +inf (-inf {forbids}){where}")
    return ValueError(
        f"{name} must be at most {LARGEST:g} in size, so that sums of them do not overflow, got {value:g}{where}; "
        f"-inf {forbids}"
    )


def whole_array(name: str, values: Any, shape: str) -> IntArray:
    """States, labels or partners as they came, if they are integers."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu":
        raise ValueError(f"{name} must be {shape}; got {array.shape} of {array.dtype}")
    if isinstance(values, np.ma.MaskedArray) and np.ma.is_masked(values):
        raise ValueError(f"{name} must not be masked")
    return array
