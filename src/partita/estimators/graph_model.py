"""What estimators on factor graphs share."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from ..core.results import FloatArray, IntArray
from ..structures import FactorGraph
from .persistence import SavedModel


class GraphModel(SavedModel, BaseEstimator):
    """An estimator with `engine` and `engine_options`."""

    engine: str
    engine_options: Any

    def _options(self) -> dict[str, Any]:
        return dict(self.engine_options or {})

    def _memory(self) -> dict[str, Any]:
        """Of the options of the engine, the one that exact answers take."""
        return {key: value for key, value in self._options().items() if key == "memory_limit"}

    def _argmax(self, graph: FactorGraph, u: FloatArray) -> IntArray:
        """The best configuration, or a good one by max-product where sums are not exact either."""
        if self.engine in ("auto", "exact"):
            return graph.argmax(u, self.engine, **self._memory())[0]
        return graph.argmax(u, "bp")[0]
