"""Covariance of maximum-likelihood estimates: inverse Fisher information, or sandwich."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.memory import check_memory
from ...core.results import FloatArray
from ...numerics.linalg import CholeskyFactor
from ..bounds.quadratic import GaugeFactor
from ..features.linear import LinearMap
from .likelihood import SoftmaxPoint
from .separation import INFORMED, separation

#: Parameters above which the covariance matrix is refused.
SIZE_LIMIT = 20_000
#: Smallest eigenvalue of the scaled limit of the information below which columns count as collinear.
SINGULAR = 1e-12
#: Share of that limit below which the information along a direction counts as none, where some weights are penalised: the
#: estimate runs to infinity. (Where none are, that is found out by steps towards it.)
SEPARATED = 1e-7
SEPARATED_CLASSES = (
    "the classes are separated, wholly or along some direction: without a penalty the estimates are infinite there and have "
    "no standard error; set l2 > 0"
)


def covariance(point: SoftmaxPoint, robust: bool = False) -> FloatArray:
    """H^-1, or H^-1 J H^-1 with J the sum of outer products of the examples' scores.

    H is the Hessian of the objective, penalty included. Directions that change no probability (the same constant on every
    label of an unpenalised column) get variance zero: estimates are normalised there.

    Raises
    ------
    ValueError
        When the estimates are not identified, saying why.
    """
    objective = point.objective
    features = objective.features
    if objective.size > SIZE_LIMIT:
        raise ValueError(f"standard errors need a {objective.size} x {objective.size} matrix; the limit is {SIZE_LIMIT}")
    n = features.n_outputs if isinstance(features, LinearMap) else 1
    check_memory(
        f"standard errors of {objective.size} weights",
        8.0 * (5.0 * objective.size**2 + 0.5 * n * (n + 1) * features.n_examples),
        "Bootstrap, or use fewer columns",
    )
    solve: Callable[[FloatArray], FloatArray]
    if isinstance(features, LinearMap) and GaugeFactor.applies(features, objective.penalty):
        factor = GaugeFactor(features, point.hessian_curvature.pairs(), objective.penalty)
        limit = GaugeFactor(features, point.model("bohning").potential.pairs(), objective.penalty)
        share = _check_identified(factor.reduced, limit.reduced)
        solve = factor.solve
    else:
        matrix = point.model("hessian").matrix()
        share = _check_identified(matrix, point.model("bohning").matrix())
        solve = CholeskyFactor(matrix).solve
    penalised = bool(objective.penalty.any())
    if (penalised and share < SEPARATED) or (not penalised and share < INFORMED and separation(point, np.inf) is not None):
        raise ValueError(SEPARATED_CLASSES)
    inverse = np.column_stack([solve(unit) for unit in np.eye(objective.size)])
    inverse = 0.5 * (inverse + inverse.T)
    return np.asarray(inverse @ _score_products(point) @ inverse if robust else inverse)


def _check_identified(information: FloatArray, limit: FloatArray) -> float:
    """The smallest share of the most information that these columns could carry (Böhning's bound) along any direction."""
    scale = np.sqrt(np.maximum(np.diag(limit), 1e-300))
    values, vectors = np.linalg.eigh(limit / np.outer(scale, scale), UPLO="L")
    if values[0] < SINGULAR:
        raise ValueError(
            "the information matrix is singular: columns of X are collinear or constant; drop columns or set l2 > 0"
        )
    lower = np.tril(information) / np.outer(scale, scale)
    symmetric = lower + np.tril(lower, -1).T
    root = vectors / np.sqrt(values)
    return float(np.linalg.eigvalsh(root.T @ symmetric @ root)[0])


def _score_products(point: SoftmaxPoint) -> FloatArray:
    """sum_i g_i g_i' of the unpenalised scores g_i = A_i' r_i (weights enter squared)."""
    features, r = point.objective.features, point.residual
    if not isinstance(features, LinearMap):
        starts = np.concatenate(([0], np.cumsum(features.counts)[:-1]))
        scores = np.add.reduceat(features.F * r[:, None], starts, axis=0)
        return np.asarray(scores.T @ scores)
    n = features.n_outputs
    pairs = np.array([r[:, j] * r[:, k] for j in range(n) for k in range(j + 1)])
    return features.curvature_matrix(pairs)
