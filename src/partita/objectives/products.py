"""A quadratic that is known by its products with vectors only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ..core.results import FloatArray
from ..numerics.linalg import conjugate_gradient

#: Relative residual of solves by conjugate gradients.
SOLVE_TOLERANCE = 1e-4


@dataclass
class ProductModel:
    """``value0 + g'(x - center) + (x - center)' C (x - center) / 2``; `precondition` is close to the inverse of C."""

    center: FloatArray
    value0: float
    gradient0: FloatArray
    matvec: Callable[[FloatArray], FloatArray]
    precondition: Callable[[FloatArray], FloatArray]
    is_bound: bool = False

    def value(self, parameters: FloatArray) -> float:
        """The quadratic at any parameters."""
        step = parameters - self.center
        return float(self.value0 + self.gradient0 @ step + 0.5 * (step @ self.matvec(step)))

    def solve(self, vector: FloatArray) -> FloatArray:
        """C^-1 v by conjugate gradients."""
        return conjugate_gradient(self.matvec, vector, self.precondition, SOLVE_TOLERANCE, max_iter=1000)[0]

    def matrix(self) -> FloatArray:
        """C, a product for each column."""
        return np.column_stack([self.matvec(unit) for unit in np.eye(len(self.center))])

    def trace(self) -> float:
        """tr C."""
        return float(np.trace(self.matrix()))
