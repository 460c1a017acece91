"""What objectives on factor graphs share: features, states, weights, penalty, and the way along a line."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.contracts.capabilities import Product
from ...core.results import FloatArray, IntArray
from ...core.validation import check_weights
from ...objectives.batches import SumOverExamples
from ...objectives.bounds.quadratic import BoundedPoint
from ...objectives.penalized import check_penalty
from ..features.tied_tables import TiedTables
from ..structure.evidence import check_states
from ..structure.factor_graph import FactorGraph
from ..structure.mixture import Examples

P = TypeVar("P", bound="GraphObjectivePoint")


class GraphObjective(SumOverExamples, Generic[P]):
    """Data of an objective on a factor graph, checked. See `GraphLikelihood` for its parameters."""

    features: TiedTables
    graph: FactorGraph
    size: int

    def __init__(
        self,
        features: TiedTables,
        y: ArrayLike,
        weights: Any,
        penalty: float | FloatArray,
        base: FloatArray | None,
        sets: NDArray[np.bool_] | None = None,
    ) -> None:
        graph = features.graph
        self.features, self.graph, self.size = features, graph, features.size
        self.states: IntArray = check_states(graph, y, "y", sets)
        if len(self.states) != 1 and graph.n_examples != 1:
            raise ValueError(f"y must be one row for a union of {graph.n_examples} graphs, got {len(self.states)} rows")
        self.n_examples: int = max(len(self.states), graph.n_examples)
        self.weights: NDArray[Any] = check_weights("weights", weights, self.n_examples)
        self.penalty: FloatArray = check_penalty(penalty, self.size)
        self.base: FloatArray | None = None if base is None else np.ascontiguousarray(base, dtype=np.float64)
        if self.base is not None and (self.base.shape != (graph.size,) or not (self.base < np.inf).all()):
            raise ValueError(f"base must have shape ({graph.size},) without NaN or +inf (-inf forbids)")

    @cached_property
    def examples(self) -> Examples[FactorGraph]:
        """Where the examples of a union are."""
        return Examples(self.graph)

    def some(self, rows: IntArray) -> tuple[TiedTables, IntArray, FloatArray | None]:
        """Map, states and base of some examples: rows of one graph, or graphs of a union, given in order."""
        if self.graph.n_examples == 1:
            return self.features, self.states[rows], self.base
        part = self.examples.take(rows)
        base = None if self.base is None else self.base[part.index]
        return self.features.take(part), self.states[:, part.variables], base

    def pull_back(self, residual: Sequence[FloatArray]) -> FloatArray:
        return self.features.adjoint(residual[0])

    def potentials(self, theta: FloatArray) -> FloatArray:
        """``A theta + base``."""
        u = self.features.forward(theta)
        return u if self.base is None else u + self.base

    def at(self, parameters: FloatArray) -> P:
        """The objective seen from `parameters`."""
        theta = np.ascontiguousarray(parameters, dtype=np.float64)
        return self.with_potentials(theta, self.potentials(theta))

    @abstractmethod
    def with_potentials(self, theta: FloatArray, u: FloatArray) -> P:
        """The point with parameters theta, whose potentials u are known."""


class GraphObjectivePoint(BoundedPoint):
    """An objective on a factor graph at one parameter vector, with its potentials u."""

    objective: GraphObjective[Any]
    u: FloatArray

    @abstractmethod
    def hessian_product(self, precise: bool = True) -> Product: ...

    def along(self, direction: FloatArray) -> GraphRay:
        return GraphRay(self, direction)


class GraphRay:
    """An objective on a factor graph on a half-line: potentials are linear in the step."""

    origin: GraphObjectivePoint
    direction: FloatArray

    def __init__(self, origin: GraphObjectivePoint, direction: FloatArray) -> None:
        self.origin, self.direction = origin, direction

    @cached_property
    def image(self) -> FloatArray:
        """The potentials of the direction."""
        return self.origin.objective.features.forward(self.direction)

    def at(self, step: float) -> tuple[GraphObjectivePoint, float]:
        """The point at `step`, and the slope there."""
        origin = self.origin
        theta, u = origin.parameters + step * self.direction, origin.u + step * self.image
        point: GraphObjectivePoint = origin.objective.with_potentials(theta, u)
        return point, float((point.gradient * self.direction).sum())
