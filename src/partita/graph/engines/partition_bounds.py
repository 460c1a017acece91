"""The best bounds on log Z that engines have together."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...core.warn import one_warning
from ..structure.factor_graph import FactorGraph


@one_warning()
def log_partition_bounds(
    graph: FactorGraph, potentials: FloatArray, engine: str, **options: Any
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """log Z of each example by an engine, and numbers below and above it: equal when exact, else the best of the engine's
    own and those of mean field and tree-reweighted belief propagation."""
    result = graph.infer(potentials, engine, **options)
    value = result.log_z
    if result.exact:
        return value, value, value
    lower, upper = np.full_like(value, -np.inf), np.full_like(value, np.inf)
    for found in (result, graph.infer(potentials, "mean_field"), graph.infer(potentials, "trw")):
        lower = lower if found.lower is None else np.maximum(lower, found.lower)
        upper = upper if found.upper is None else np.minimum(upper, found.upper)
    return value, lower, upper
