"""A quadratic above a penalised loss, whose curvature is known by its products, and what points that have one offer."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.contracts.capabilities import BOUNDS, Capability, LowRankModel, Product
from ...core.memory import check_memory
from ...core.results import FloatArray
from ...core.validation import check_choice
from ...numerics.linalg import CholeskyFactor, conjugate_gradient
from ..penalized import PenalizedPoint
from ..products import SOLVE_TOLERANCE
from .low_rank import LowRank, low_rank_quadratic
from .planes import Plane

#: What points with a quadratic above their loss offer.
BOUNDED = frozenset({Capability.QUADRATIC_BOUND, Capability.LOW_RANK_BOUND, Capability.SUBSPACE})
#: Parameters up to which the curvature is formed and factored: with more, products are cheaper.
FACTORED = 100
#: Smallest diagonal of the preconditioner relative to the largest, where neither data nor penalty give one.
FLOOR = 1e-12


@dataclass
class BoundModel:
    """``value0 + g'(x - center) + (x - center)' (C + diag(penalty)) (x - center) / 2``.

    Attributes
    ----------
    curvature : callable
        v -> C v.
    diagonal : array
        About the diagonal of C: it scales conjugate gradients.
    penalty : array
    """

    center: FloatArray
    value0: float
    gradient0: FloatArray
    curvature: Product
    diagonal: FloatArray
    penalty: FloatArray
    is_bound: bool = True

    def value(self, parameters: FloatArray) -> float:
        """The quadratic at any parameters."""
        step = parameters - self.center
        return float(self.value0 + self.gradient0 @ step + 0.5 * (step @ self.matvec(step)))

    def matvec(self, vector: FloatArray) -> FloatArray:
        return self.curvature(vector) + self.penalty * vector

    @cached_property
    def _scaling(self) -> FloatArray:
        total = self.diagonal + self.penalty
        return np.asarray(1.0 / np.maximum(total, FLOOR * float(total.max(initial=1e-300))))

    def precondition(self, vector: FloatArray) -> FloatArray:
        """About the inverse of the matrix times a vector."""
        return self._scaling * vector

    def solve(self, vector: FloatArray) -> FloatArray:
        """By a factor for few parameters, else by conjugate gradients, every step of which lowers the quadratic."""
        if len(self.center) <= FACTORED:
            return self._factor.solve(vector)
        return conjugate_gradient(self.matvec, vector, self.precondition, SOLVE_TOLERANCE, max_iter=1000)[0]

    @cached_property
    def _factor(self) -> CholeskyFactor:
        return CholeskyFactor(self.matrix())

    def matrix(self) -> FloatArray:
        """The matrix, a product for each column."""
        return self._data_matrix() + np.diag(self.penalty)

    def trace(self) -> float:
        return float(np.trace(self.matrix()))

    def _data_matrix(self) -> FloatArray:
        size = len(self.center)
        check_memory(f"a matrix of {size} x {size} weights", 24.0 * size**2, "Take low_rank='lanczos', which forms none")
        C = self._products(np.eye(size))
        return np.asarray(0.5 * (C + C.T))

    def _products(self, block: FloatArray) -> FloatArray:
        return np.column_stack([self.curvature(np.ascontiguousarray(column)) for column in block.T])

    def _roots(self) -> Iterator[FloatArray]:
        """Rows with C for the sum of their outer products: eigenvectors, from the largest on."""
        values, vectors = np.linalg.eigh(self._data_matrix())
        scale = np.sqrt(np.maximum(values, 0.0))
        yield np.ascontiguousarray((vectors * scale).T[::-1])

    def low_rank(self, rank: int, method: str, allow_invalid: bool, start: LowRankModel | None) -> LowRank:
        """A low-rank quadratic above this one."""
        small = len(self.center) <= FACTORED and method == "lanczos"
        trace = float(np.trace(self._data_matrix())) if small else np.inf
        return low_rank_quadratic(
            self, self._products, self.penalty, rank, method, allow_invalid, start, roots=self._roots, trace=trace
        )


class BoundedPoint(PenalizedPoint):
    """A point that has a quadratic above its loss."""

    came_by: FloatArray | None = None  # the step that led here, from a plane

    @abstractmethod
    def curvature_above(self, kind: str) -> tuple[Product, FloatArray]:
        """v -> C v with C above the curvature of the loss everywhere, and about its diagonal; `kind` is one of `BOUNDS`."""

    def model(self, kind: str) -> Any:
        """The quadratic of `kind` above the objective that touches it here."""
        return self.bound_model(kind)

    def bound_model(self, kind: str) -> BoundModel:
        """The same by its products."""
        check_choice("bound", kind, BOUNDS)
        product, diagonal = self.curvature_above(kind)
        return BoundModel(self.parameters, self.value, self.gradient, product, diagonal, self.objective.penalty)

    def low_rank_model(self, kind: str, rank: int, method: str, allow_invalid: bool, start: LowRankModel | None) -> LowRank:
        """A low-rank quadratic above the one of `kind` (see `partita.objectives.bounds.low_rank`)."""
        return self.bound_model(kind).low_rank(rank, method, allow_invalid, start)

    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> Plane:
        """Span of `directions`, and with `momentum` of the step that led here."""
        last = self.came_by if momentum else None
        return Plane(self, [*directions] if last is None else [*directions, last])
