"""Approximate inverses of the Hessian of a likelihood, for conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ...core.results import FloatArray
from ...numerics.linalg import CholeskyFactor
from ..bounds.potential import PotentialCurvature
from ..bounds.quadratic import GaugeFactor
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import DenseLinear, SparseLinear
from .base import SoftmaxObjective

Preconditioner = Callable[[FloatArray], FloatArray]

#: Columns up to which a Gram matrix is factored, for dense and for sparse data.
GRAM_LIMIT = 3000
SPARSE_GRAM_LIMIT = 1000
#: Parameters up to which the whole Hessian of a sample may be factored.
STRONG_LIMIT = 12_000
#: Columns per example from which a Gram matrix is inverted through its rows.
WIDE = 1.5
#: Sampled rows per column for Gram matrices.
ROWS_PER_COLUMN = 10


class CurvedPoint(Protocol):
    """What is asked of a point: its scores u, marginals, and the curvature of the loss in the scores."""

    @property
    def objective(self) -> SoftmaxObjective[Any]: ...
    @property
    def u(self) -> FloatArray: ...
    @property
    def marginals(self) -> FloatArray: ...
    @property
    def hessian_curvature(self) -> PotentialCurvature: ...


def make_preconditioner(point: CurvedPoint) -> Preconditioner:
    """One Gram matrix shared by all labels for dense X and for few columns, a power of the diagonal otherwise."""
    features = point.objective.features
    if isinstance(features, DenseLinear) and WIDE * features.n_examples <= features.n_columns and point.objective.has_gap:
        return _wide_gram(point, features)
    if isinstance(features, DenseLinear) and features.n_columns <= GRAM_LIMIT:
        return _shared_gram(point, features)
    if isinstance(features, SparseLinear) and features.n_columns <= SPARSE_GRAM_LIMIT:
        return _shared_gram(point, features)
    if isinstance(features, LinearMap):
        # The square root of the diagonal: full scaling overcorrects rare columns.
        diagonal = features.squared(point.hessian_curvature.diagonal().reshape(point.u.shape))
        scaling = 1.0 / np.sqrt(np.maximum(diagonal + point.objective.penalty, 1e-12))
        return lambda v: scaling * v
    return lambda v: v


def strong_cost(features: LinearMap | LabelFeatures, penalty: FloatArray) -> float:
    """Cost of `strong_preconditioner` in Hessian products, from operation counts; inf where there is none."""
    if not isinstance(features, DenseLinear) or not GaugeFactor.applies(features, penalty):
        return np.inf
    labels, p = max(1, features.n_outputs - 1), features.n_columns + features.intercept
    if labels * p > STRONG_LIMIT:
        return np.inf
    rows = _sample_size(features)
    blocks = 0.5 * labels * (labels + 1)
    scaling = 80.0  # operations per entry that weighting the rows for one block costs
    gram = 0.5 * blocks * rows * p * (p + scaling)
    return float((gram + (labels * p) ** 3 / 6.0) / (2.0 * features.product_cost()[0]))


def strong_preconditioner(point: CurvedPoint) -> Preconditioner:
    """The factored Hessian of a sample of the examples, coupling between labels included.

    One Gram matrix for all labels misses directions that move confusable labels together. Where those take conjugate
    gradients hundreds of products, the factor pays; it is good for many points around this one.
    """
    features = point.objective.features
    assert isinstance(features, DenseLinear)
    sample, rows, factor = _sampled_rows(point, features)
    curvature = point.hessian_curvature.take(rows, factor)
    return GaugeFactor(sample, curvature.pairs().astype(sample.dtype), point.objective.penalty).solve


def _sample_size(features: LinearMap) -> int:
    wanted = ROWS_PER_COLUMN * (features.n_columns + 1)
    return wanted if features.n_examples > 2 * wanted else features.n_examples


def _sampled_rows(point: CurvedPoint, features: DenseLinear | SparseLinear) -> tuple[DenseLinear | SparseLinear, Any, float]:
    """Rows of X for Gram matrices: all if few, else a fixed sample (kept with the objective)."""
    wanted = _sample_size(features)
    if wanted == features.n_examples:
        return features, slice(None), 1.0
    if "rows" not in point.objective.sampled:
        rows = np.sort(np.random.default_rng(0).choice(features.n_examples, wanted, replace=False))
        full = features.single() if isinstance(features, DenseLinear) else features
        point.objective.sampled["rows"] = (full.take(rows), rows)
    sample, rows = point.objective.sampled["rows"]
    return sample, rows, features.n_examples / wanted


def _label_curvature(point: CurvedPoint, rows: Any) -> FloatArray:
    """Per example ``w (1 - sum p^2) / (n - 1)``, the mean curvature of the labels; ``w p (1 - p)`` if binary."""
    p = point.marginals[rows]
    if p.shape[1] == 1:
        s = p[:, 0] * (1.0 - p[:, 0])
    else:
        s = np.maximum(1.0 - np.einsum("ij,ij->i", p, p), 0.0) / (p.shape[1] - 1)
    return np.asarray(point.objective.weights[rows] * s)


def _wide_gram(point: CurvedPoint, features: DenseLinear) -> Preconditioner:
    """The same inverse as `_shared_gram` by Woodbury's formula, with a matrix as large as there are examples."""
    columns = features.columns()
    X = np.column_stack([features.X, np.ones(len(features.X))]) if features.intercept else features.X
    root = np.sqrt(_label_curvature(point, slice(None)))[:, None] * X
    penalty = point.objective.penalty[columns[0]]
    scaled_root = root / penalty
    core = CholeskyFactor(np.eye(len(root)) + scaled_root @ root.T)

    def apply(v: FloatArray) -> FloatArray:
        out = np.empty_like(v)
        scaled = v[columns] / penalty
        out[columns] = scaled - core.solve(root @ scaled.T).T @ scaled_root
        return out

    return apply


def _shared_gram(point: CurvedPoint, features: DenseLinear | SparseLinear) -> Preconditioner:
    """(X' diag(s) X + penalty)^-1 for every label, s the mean curvature of the labels."""
    objective = point.objective
    sample, rows, factor = _sampled_rows(point, features)
    gram = sample.gram((factor * _label_curvature(point, rows)).astype(sample.dtype))
    columns = features.columns()
    gram.flat[:: len(gram) + 1] += objective.penalty[columns[0]].astype(gram.dtype)
    cholesky = CholeskyFactor(gram)

    def apply(v: FloatArray) -> FloatArray:
        out = np.empty_like(v)
        out[columns] = cholesky.solve(v[columns].T).T
        return out

    return apply
