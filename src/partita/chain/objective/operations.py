"""What composite likelihoods of chains cost, in operations."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray, IntArray
from ...objectives.composite.budget import EACH
from ...objectives.composite.likelihood import CompositeLikelihood


def chain_operations(lengths: IntArray, n_labels: int, composite: CompositeLikelihood, draws: bool = False) -> FloatArray:
    """Operations of a pass for a chain, of each order.

    With ``refresh=True`` all windows are computed, whatever their probability, unless the solver `draws` in every pass.
    Windows of labels take two products of a matrix and a vector at every step.
    """
    out, drawn = [], composite.drawn(draws)
    for order, probability in composite.rates.items():
        rate = probability if drawn else 1.0
        T = np.asarray(lengths, dtype=np.float64)
        k = T if isinstance(order, str) else np.minimum(T, order)
        windows = 1.0 if drawn and composite.policy != "independent" else T - k + 1.0
        step = 6.0 * n_labels**2
        out.append(float(np.mean(rate * windows * (EACH * n_labels * k + step * (k - 1.0)))))
    return np.array(out)
