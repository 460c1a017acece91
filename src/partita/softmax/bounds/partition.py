"""Algorithm 1: a quadratic above log Z for arbitrary features, as a matrix or in low-rank form."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.results import FloatArray
from ...core.validation import check_choice, check_weights
from ...numerics import curvature as kernels
from ...numerics.linalg import CholeskyFactor
from ...objectives.bounds.low_rank import LowRank
from ..features.labels import LabelFeatures
from ..structure import Categorical
from .low_rank import low_rank_model
from .potential import SEQUENTIAL, potential_curvature
from .quadratic import Quadratic


@dataclass(frozen=True)
class PartitionBound:
    """``log Z(theta) <= log_z + (theta - center)' mean + (theta - center)' curvature (theta - center) / 2``."""

    center: FloatArray
    log_z: float
    mean: FloatArray
    curvature: FloatArray
    is_bound: bool = True
    precondition: None = None

    @property
    def gradient0(self) -> FloatArray:
        return self.mean

    def value(self, parameters: ArrayLike) -> float:
        step = np.asarray(parameters, dtype=np.float64) - self.center
        return float(self.log_z + self.mean @ step + 0.5 * (step @ self.curvature @ step))

    def matvec(self, vector: FloatArray) -> FloatArray:
        return np.asarray(self.curvature @ vector)

    def solve(self, vector: FloatArray) -> FloatArray:
        return CholeskyFactor(self.curvature).solve(vector)

    def trace(self) -> float:
        return float(np.trace(self.curvature))

    def matrix(self) -> FloatArray:
        return self.curvature


def partition_bound(
    features: ArrayLike,
    theta: ArrayLike,
    prior: ArrayLike | None = None,
    *,
    counts: ArrayLike | None = None,
    weights: Any = None,
    ordering: str = "descending",
    rank: int | None = None,
    low_rank: str = "lanczos",
    allow_invalid: bool = False,
) -> PartitionBound | LowRank:
    """Algorithm 1: a quadratic upper bound on ``sum_i w_i log Z_i(theta)`` that touches it at `theta`.

    Parameters
    ----------
    features : array
        f(x, y) of shape (labels, d) for one example, or as in `LabelFeatures`.
    theta : array of shape (d,)
        Where the bound touches.
    prior : array, optional
        h(y), one weight per row of features (or per label, for the first two forms).
    ordering : {"descending", "given", "ascending"}
        The order in which labels are visited. Descending gives the tightest bound.
    rank : int, optional
        Give a `LowRank` bound with so many directions instead of a matrix (Algorithm 4).
    low_rank : {"lanczos", "exact", "corrected", "original"}
        How, see `partita.objectives.bounds.low_rank`; ``"original"`` is not a bound and needs `allow_invalid`.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.bounds import partition_bound
    >>> bound = partition_bound(np.array([[0.0, 0.0], [1.0, 1.0]]), np.zeros(2))
    >>> bool(bound.value(np.ones(2)) >= np.log(1 + np.exp(2.0)))
    True
    """
    F = np.asarray(features, dtype=np.float64)
    labels = LabelFeatures(F[None] if F.ndim == 2 and counts is None else F, counts)
    center = np.ascontiguousarray(theta, dtype=np.float64)
    if center.shape != (labels.size,) or not np.isfinite(center).all():
        raise ValueError(f"theta must be finite with shape ({labels.size},), as many as features; got {center.shape}")
    code = SEQUENTIAL[check_choice("ordering", ordering, tuple(SEQUENTIAL))]
    u = labels.forward(center)
    if prior is not None:
        h = np.asarray(prior, dtype=np.float64)
        h = np.tile(h, labels.n_examples) if counts is None and h.size != u.size else h.ravel()
        if h.shape != u.shape or not np.all(np.isfinite(h)) or h.min() < 0.0:
            raise ValueError("prior must be finite and non-negative with one weight per label")
        with np.errstate(divide="ignore"):
            u = u + np.log(h)
    offsets = np.concatenate(([0], np.cumsum(labels.counts)))
    w = check_weights("weights", weights, labels.n_examples)
    if rank is not None:
        structure = Categorical(labels.counts)
        potential = potential_curvature(structure, u, w, ordering)
        result = structure.infer(u)
        mean = labels.adjoint(np.repeat(w, labels.counts) * result.marginals)
        dense = Quadratic(labels, potential, np.zeros(labels.size), center, float(w @ result.log_z), mean, True)
        return low_rank_model(dense, rank, low_rank, allow_invalid)
    mean, sigma = np.zeros(labels.size), np.zeros((labels.size, labels.size))
    log_z = kernels.algorithm_one(labels.F, u, offsets, w, code, 0, labels.n_examples, mean, sigma)
    return PartitionBound(center, float(log_z), mean, sigma)
