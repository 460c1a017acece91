"""What objectives on factor graphs share: features, states, weights, penalty."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.results import FloatArray
from ...core.validation import check_weights
from ...objectives.by_products import ByProducts
from ..features.tied_tables import TiedTables
from ..structure.evidence import check_states


class GraphObjective(ByProducts):
    """Data of an objective on a factor graph, checked. See `GraphLikelihood` for its parameters."""

    def __init__(
        self, features: TiedTables, y: ArrayLike, weights: Any, penalty: float | FloatArray, base: FloatArray | None
    ) -> None:
        graph = features.graph
        self.features, self.graph, self.size = features, graph, features.size
        self.states = check_states(graph, y, "y")
        if len(self.states) != 1 and graph.n_examples != 1:
            raise ValueError(f"y must be one row for a union of {graph.n_examples} graphs, got {len(self.states)} rows")
        self.n_examples = max(len(self.states), graph.n_examples)
        self.weights = check_weights("weights", weights, self.n_examples)
        self.penalty = np.broadcast_to(np.asarray(penalty, dtype=np.float64), (self.size,))
        if not np.isfinite(self.penalty).all() or self.penalty.min(initial=0.0) < 0.0:
            raise ValueError("penalty must be finite and non-negative")
        self.base = None if base is None else np.ascontiguousarray(base, dtype=np.float64)
        if self.base is not None and (self.base.shape != (graph.size,) or not (self.base < np.inf).all()):
            raise ValueError(f"base must have shape ({graph.size},) without NaN or +inf (-inf forbids)")

    def potentials(self, theta: FloatArray) -> FloatArray:
        """``A theta + base``."""
        u = self.features.forward(theta)
        return u if self.base is None else u + self.base
