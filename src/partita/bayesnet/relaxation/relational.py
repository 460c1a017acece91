"""Tables of child values given configurations of parents, by penalised maximum likelihood."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ..kernels.network import fit_distributions


def check_codes(name: str, codes: Any, n_values: int | None = None, length: int | None = None) -> IntArray:
    """Return codes 0, 1, ... as int64, or raise a ValueError that says what is wrong with them."""
    found = np.asarray(codes)
    if found.ndim != 1 or (length is not None and len(found) != length) or not np.issubdtype(found.dtype, np.integer):
        expected = "integers of shape (n_rows,)" if length is None else f"integers of shape ({length},)"
        raise ValueError(f"{name} must be {expected}, got {found.dtype} of shape {found.shape}")
    limit = np.inf if n_values is None else n_values
    if len(found) and (found.min() < 0 or found.max() >= limit):
        upper = "" if n_values is None else f" and below {n_values}"
        raise ValueError(f"{name} must be at least 0{upper}, got {found.min()} to {found.max()}")
    return found.astype(np.int64)


def table_weights(counts: FloatArray, alpha: float) -> FloatArray:
    """The minimiser of `table_loss` for every row of counts (configurations x values) by itself."""
    W = np.zeros(counts.shape)
    starts = counts.shape[1] * np.arange(len(counts) + 1)
    fit_distributions(np.ascontiguousarray(counts, dtype=np.float64).ravel(), starts, float(alpha), W.reshape(-1))
    return W


def table_loss(counts: FloatArray, W: FloatArray, alpha: float) -> float:
    """``sum n log sum exp W - sum counts W + alpha/2 |W|^2``."""
    return float(0.5 * alpha * np.sum(W * W) - np.sum(counts * log_softmax(W)))


def log_softmax(scores: FloatArray) -> FloatArray:
    """Logarithms of the softmax of every row."""
    shifted = scores - scores.max(1, keepdims=True)
    return np.asarray(shifted - np.log(np.exp(shifted).sum(1, keepdims=True)))
