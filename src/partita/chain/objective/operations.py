"""What composite likelihoods of chains cost, in operations."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray, IntArray
from ...objectives.composite.budget import EACH
from ...objectives.composite.likelihood import CompositeLikelihood


def chain_operations(lengths: IntArray, n_labels: int, composite: CompositeLikelihood) -> FloatArray:
    """Operations of an evaluation for a chain, of each order.

    Windows of labels take two products of a matrix and a vector at every step.
    """
    out = []
    for order, rate in composite.rates.items():
        T = np.asarray(lengths, dtype=np.float64)
        k = T if isinstance(order, str) else np.minimum(T, order)
        windows = T - k + 1.0 if composite.policy == "independent" else 1.0
        step = 6.0 * n_labels**2
        out.append(float(np.mean(rate * windows * (EACH * n_labels * k + step * (k - 1.0)))))
    return np.array(out)
