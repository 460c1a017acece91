"""What majorization asks of the likelihood of factor graphs: a quadratic above it, and its value within a plane."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ...core.contracts.capabilities import Capability
from ...core.results import FloatArray
from ...softmax import PartitionBound
from ..bounds import graph_bound
from ..features.tied_tables import TiedTables
from ..structure.factor_graph import FactorGraph
from .base import GraphObjectivePoint

#: Parameters and operations up to which a bound is formed as a matrix.
DENSE_PARAMETERS, DENSE_OPERATIONS = 300, 3e10

P = TypeVar("P", bound=GraphObjectivePoint)


class DenseGraph:
    """A graph whose examples are one, with its features written out."""

    def __init__(self, features: TiedTables, weight: float) -> None:
        graph = features.graph
        self.graph: FactorGraph = FactorGraph(graph.cardinalities, graph.factors, n_jobs=graph.n_jobs)
        self.weight: float = weight
        self._matrix = features.matrix

    @cached_property
    def features(self) -> FloatArray:
        return np.asarray(self._matrix.toarray())


def bound_capabilities(features: TiedTables, mass: FloatArray, options: Mapping[str, Any]) -> frozenset[Capability]:
    """A bound as a matrix, for few parameters on small graphs of equal weights; `options` are those of exact sums."""
    if np.ptp(mass) > 0.0 or features.size > DENSE_PARAMETERS:
        return frozenset()
    if float(features.graph.tree(**options).work[-1]) * features.size**2 > DENSE_OPERATIONS:
        return frozenset()
    return frozenset({Capability.QUADRATIC_BOUND, Capability.SUBSPACE})


def quadratic_bound(point: GraphObjectivePoint, dense: DenseGraph, kind: str) -> PartitionBound:
    """A quadratic above the objective that touches it at `point`: what unknown states add is concave, and linear there."""
    o = point.objective
    loss = graph_bound(dense.graph, dense.features, point.parameters, base=o.base, bound=kind)
    assert isinstance(loss, PartitionBound)
    curvature = dense.weight * loss.curvature
    curvature.flat[:: o.size + 1] += o.penalty
    return PartitionBound(point.parameters, point.value, point.gradient, curvature)


class GraphSubspace(Generic[P]):
    """The objective on a point plus the span of a few directions."""

    def __init__(self, origin: P, directions: Sequence[FloatArray], momentum: bool) -> None:
        self.origin = origin
        last = origin.came_by if momentum else None
        self.basis: NDArray[Any] = np.array([*directions] if last is None else [*directions, last])
        self.images: NDArray[Any] = np.array([origin.objective.features.forward(direction) for direction in self.basis])

    @property
    def dimension(self) -> int:
        return len(self.basis)

    def evaluate(self, coordinates: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Value, gradient and curvature in the coordinates."""
        point = self.at(coordinates)
        product = point.hessian_product()
        return point.value, self.basis @ point.gradient, np.array([self.basis @ product(v) for v in self.basis])

    def at(self, coordinates: FloatArray) -> P:
        origin, step = self.origin, coordinates @ self.basis
        u = origin.u + coordinates @ self.images
        point: P = origin.objective.with_potentials(origin.parameters + step, u)
        point.came_by = step
        return point
