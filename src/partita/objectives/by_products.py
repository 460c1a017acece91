"""What objectives share whose Hessian is known by products with it."""

from __future__ import annotations

import numpy as np


class ByProducts:
    """Costs as `Objective` declares them: a Hessian takes a product for each parameter, and nothing better is known."""

    size: int

    @property
    def dense_cost(self) -> float:
        """Forming the Hessian takes as many products as there are parameters."""
        return float(self.size)

    @property
    def strong_cost(self) -> float:
        """There is no strong preconditioner."""
        return np.inf

    @property
    def blas_threads(self) -> int | None:
        """Matrices are narrow, if there are any: one thread."""
        return 1
