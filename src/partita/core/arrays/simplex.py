"""Probabilities as users get them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..results import FloatArray


def normalized(probabilities: Any) -> FloatArray:
    """Probabilities whose last axis sums to one, none above one: rounding is divided out.

    A sum of numbers that are not negative is never below any of them, rounded or not, so that no quotient is above one.
    Metrics of other libraries refuse 1 + 1e-15, and a search over parameters then takes NaN for a score.
    """
    values = np.asarray(probabilities, dtype=np.float64)
    return np.asarray(values / values.sum(axis=-1, keepdims=True))
