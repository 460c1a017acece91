"""Approximate inverses of the Hessian of a likelihood, for conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from ..core.results import FloatArray
from ..features import DenseLinear, LinearMap
from ..kernels.linalg import CholeskyFactor

if TYPE_CHECKING:
    from .likelihood import LikelihoodPoint

Preconditioner = Callable[[FloatArray], FloatArray]

#: Columns up to which a Gram matrix is factored.
GRAM_LIMIT = 3000
#: Sampled rows per column for the Gram matrix.
ROWS_PER_COLUMN = 10
#: Power of the diagonal for sparse data: between none and full scaling, which overcorrects rare columns.
DIAGONAL_POWER = 0.5


def make_preconditioner(point: LikelihoodPoint) -> Preconditioner:
    """One Gram matrix shared by all labels for dense X, a power of the diagonal otherwise."""
    features = point.objective.features
    if isinstance(features, DenseLinear) and features.n_columns <= GRAM_LIMIT:
        return _shared_gram(point, features)
    if isinstance(features, LinearMap):
        diagonal = features.squared(point.hessian_curvature.diagonal().reshape(point.u.shape))
        scaling = (diagonal + point.objective.penalty) ** -DIAGONAL_POWER
        scaling[~np.isfinite(scaling)] = 1.0
        return lambda v: scaling * v
    return lambda v: v


def _sampled_rows(point: LikelihoodPoint, features: DenseLinear) -> tuple[DenseLinear, FloatArray | slice, float]:
    """Rows of X for the Gram matrix: all if few, else a fixed sample (kept with the objective)."""
    wanted = ROWS_PER_COLUMN * (features.n_columns + 1)
    if features.n_examples <= 2 * wanted:
        return features, slice(None), 1.0
    if "rows" not in point.objective.sampled:
        rows = np.sort(np.random.default_rng(0).choice(features.n_examples, wanted, replace=False))
        point.objective.sampled["rows"] = (features.single().take(rows), rows)
    sample, rows = point.objective.sampled["rows"]
    return sample, rows, features.n_examples / wanted


def _shared_gram(point: LikelihoodPoint, features: DenseLinear) -> Preconditioner:
    """(X' diag(s) X + penalty)^-1 for every label, s = (1 - sum p^2) / (n - 1), or p (1 - p) if binary."""
    objective = point.objective
    sample, rows, factor = _sampled_rows(point, features)
    p = point.marginals[rows]
    if features.n_outputs == 1:
        s = p[:, 0] * (1.0 - p[:, 0])
    else:
        s = np.maximum(1.0 - np.einsum("ij,ij->i", p, p), 0.0) / (features.n_outputs - 1)
    gram = sample.gram((factor * objective.weights[rows] * s).astype(sample.X.dtype))
    coefficients, intercepts = features.unpack(objective.penalty)
    penalty = np.append(coefficients[0], intercepts[:1]) if features.intercept else coefficients[0]
    gram.flat[:: len(gram) + 1] += penalty.astype(gram.dtype)
    cholesky = CholeskyFactor(gram)

    def apply(v: FloatArray) -> FloatArray:
        C, b = features.unpack(v)
        solved = cholesky.solve((np.column_stack([C, b]) if features.intercept else C).T)
        return features.pack(solved[: features.n_columns].T, solved[features.n_columns :].ravel())

    return apply
