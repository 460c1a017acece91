"""Standard errors from products with the Hessian alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.results import FloatArray

#: Share of the largest eigenvalue below which the information along a direction counts as none.
SINGULAR = 1e-11


def information_errors(point: Any) -> FloatArray:
    """Square roots of the diagonal of the inverse Hessian (penalty included) at a point that offers Hessian products.

    Raises
    ------
    ValueError
        When the Hessian is not positive definite.
    """
    product = point.hessian_product()
    H = np.column_stack([product(unit) for unit in np.eye(len(point.parameters))])
    values, vectors = np.linalg.eigh(0.5 * (H + H.T))
    if values[0] <= SINGULAR * values[-1]:
        raise ValueError(
            "the information matrix is singular: some weights are not determined by the data (the same constant on every "
            "label changes nothing); set l2 > 0"
        )
    return np.asarray(np.sqrt((vectors**2) @ (1.0 / values)))
