"""Standard errors from products with the Hessian (the observed Fisher information) alone, and when not to trust them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.contracts import Product
from ..core.errors import DataWarning
from ..core.results import FloatArray
from ..core.warn import warn

#: Share of the largest eigenvalue below which the information along a direction counts as none.
SINGULAR = 1e-11


def dense_errors(point: Any, squares: FloatArray | None = None, change: Any = None) -> FloatArray:
    """Square roots of the diagonal of H^-1, or of H^-1 K H^-1 with K = `squares`, at a point that offers Hessian products.

    H is the Hessian of the objective, penalty included. With `change`, a matrix, errors are of its product with the
    parameters.

    Raises
    ------
    ValueError
        When H is not positive definite, saying whether the parametrisation or the data are the reason.
    """
    values, vectors = _eigen(point)
    missing = int((values <= SINGULAR * values[-1]).sum())
    if missing:
        uniform = _eigen(point.objective.at(np.zeros(len(point.parameters))))[0]
        free = int((uniform <= SINGULAR * uniform[-1]).sum())
        if missing <= free:
            raise ValueError(
                f"the information matrix is singular: {free} directions in the space of weights change no probability, "
                "whatever the data (the same constant on every label, for example), so that single weights are not "
                "determined; set l2 > 0"
            )
        raise ValueError(
            "the information matrix is singular: the labels are separated along some direction, where the weights run to "
            "infinity and have no standard error; set l2 > 0"
        )
    inverse = (vectors / values) @ vectors.T
    if change is not None:
        matrix = inverse if squares is None else inverse @ squares @ inverse
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", change @ matrix, change.toarray())))
    variances = np.diag(inverse) if squares is None else np.einsum("ij,jk,ki->i", inverse, squares, inverse, optimize=True)
    return np.asarray(np.sqrt(variances))


def warn_of_many_weights(
    n_weights: int,
    n_examples: int,
    what: str,
    l2: float,
    cure: str,
    detail: str = "",
    effective: float | None = None,
) -> None:
    """Warn where a penalised model has at least as many weights as examples: asymptotics say nothing there.

    Parameters
    ----------
    n_weights, n_examples : int
    what : str
        What examples are, in the plural.
    l2 : float
    cure : str
        What the caller can do to have fewer weights, as ``"a higher min_frequency"``.
    detail : str
        More about the size of the data.
    effective : float, optional
        Effective degrees of freedom, the trace of the inverse of the Hessian times its part without the penalty.
    """
    if l2 <= 0.0 or n_weights < n_examples:
        return
    used = "" if effective is None else f", of which the penalty l2={l2:g} leaves about {effective:.0f} effective"
    warn(
        f"standard errors of {n_weights} weights from {n_examples} {what}{detail}{used}: with as many weights as {what} or "
        "more, neither 'sandwich' nor 'information' errors can be trusted (in simulations, .12 to 9.1 times the true "
        f"deviation). Have fewer weights ({cure}) or more {what}, or bootstrap",
        DataWarning,
    )


def dense_hessian(product: Product, size: int) -> FloatArray:
    """A symmetric matrix from products with unit vectors."""
    H = np.column_stack([product(unit) for unit in np.eye(size)])
    return np.asarray(0.5 * (H + H.T))


def _eigen(point: Any) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues, the smallest first, and eigenvectors of the Hessian."""
    values, vectors = np.linalg.eigh(dense_hessian(point.hessian_product(), len(point.parameters)))
    return values, vectors
