"""One configuration of a factor graph, as good as an engine can find."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.results import FloatArray, IntArray
from ..structures import FactorGraph
from .belief_propagation import max_product


def decode(graph: FactorGraph, potentials: FloatArray, engine: str = "auto", **options: Any) -> IntArray:
    """The most probable configuration of each example if the engine is exact; else a good one, by max-product.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference.decoding import decode
    >>> from partita.structures import FactorGraph
    >>> decode(FactorGraph([2, 3], [(0,), (1,)]), np.array([0.0, 1.0, 0.0, 0.0, 2.0]))
    array([1, 2])
    """
    name = graph.choose(engine, **options)
    if name == "exact":
        return graph.argmax(potentials, **options)[0]
    return max_product(graph, potentials)[0]


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
