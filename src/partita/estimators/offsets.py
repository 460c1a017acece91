"""What is added to the scores of labels before a model: offsets, the logarithms of a base measure h(y) of each example."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.arrays.potentials import real_array
from ..core.results import FloatArray, IntArray


def read_offset(offset: Any, count: int, n_labels: int) -> FloatArray | None:
    """Offsets of `count` examples, (examples, labels), or None.

    Of two labels there may be one number for each example, which is added to the log-odds of the second. -inf forbids.
    """
    if offset is None:
        return None
    found = real_array("offset", offset)
    if n_labels == 2 and found.shape == (count,):
        found = np.column_stack([np.zeros(count), found])
    if found.shape != (count, n_labels):
        one = f"({count},) or " if n_labels == 2 else ""
        raise ValueError(f"offset must have shape {one}({count}, {n_labels}), a number for each class; got {found.shape}")
    if np.isnan(found).any() or (found == np.inf).any():
        raise ValueError("offset must not hold NaN or +inf (-inf forbids a class)")
    if not (found > -np.inf).any(axis=1).all():
        row = int(np.argmin((found > -np.inf).any(axis=1)))
        raise ValueError(f"offset forbids every class of example {row}")
    return np.ascontiguousarray(found, dtype=np.float64)


def check_observed(offset: FloatArray | None, codes: IntArray, weights: FloatArray) -> None:
    """Raise a ValueError if a label that was observed is forbidden."""
    if offset is None:
        return
    impossible = (offset[np.arange(len(codes)), codes] == -np.inf) & (weights > 0.0)
    if impossible.any():
        raise ValueError(f"offset forbids the class of example {int(np.argmax(impossible))}: its likelihood is zero")
