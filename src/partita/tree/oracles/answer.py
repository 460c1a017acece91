"""How answers about trees are checked."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...inference.oracle import Answer, scored
from ..structure.spanning_tree import SpanningTree


def checked_answer(structure: SpanningTree, y: Any, weights: FloatArray, solver: str) -> Answer:
    """A tree as a point whose score is counted here, if it is a tree of the structure without a forbidden edge."""
    try:
        point = structure.trees(y)[0].astype(np.float64)
    except ValueError as error:
        raise RuntimeError(f"the solver {solver} failed: {error}") from None
    answer = scored(point, weights, "exact")
    if not answer.value > -np.inf:
        raise RuntimeError(f"the solver {solver} failed: its tree has an edge that potentials forbid")
    return answer
