"""Linear maps from parameters to scores of parts."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.results import FloatArray


class PartFeatures:
    """Features of the parts of one example.

    Parameters
    ----------
    features : array or CSR matrix of shape (features, parts)
    """

    size: int
    n_parts: int

    def __init__(self, features: Any) -> None:
        self.size, self.n_parts = features.shape
        self._F = features
        self._T = features.T if isinstance(features, np.ndarray) else features.T.tocsr()

    def forward(self, theta: FloatArray) -> FloatArray:
        """Scores of parts."""
        return np.asarray(self._T @ theta)

    def adjoint(self, values: FloatArray) -> FloatArray:
        """Sums of features."""
        return np.asarray(self._F @ values)
