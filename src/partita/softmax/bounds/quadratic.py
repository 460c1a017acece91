"""Quadratics in parameter space: ``A' S A`` from a curvature S of the potentials ``s = A theta``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...numerics.linalg import CholeskyFactor, conjugate_gradient
from ...objectives.products import SOLVE_TOLERANCE
from ..features.labels import LabelFeatures
from ..features.linear import LinearMap
from ..features.linear_layouts import DenseLinear
from .potential import PotentialCurvature, RankOneCurvature, ScalarCurvature


def curvature_matrix(features: LinearMap | LabelFeatures, potential: PotentialCurvature) -> FloatArray:
    """A' S A as a matrix."""
    if isinstance(features, LabelFeatures):
        return np.asarray(features.F.T @ _curved_rows(features, potential))
    return features.curvature_matrix(potential.pairs())


def _curved_rows(features: LabelFeatures, potential: PotentialCurvature) -> FloatArray:
    """S F: every column of the features times the curvature."""
    return np.column_stack([potential.product(np.ascontiguousarray(column)) for column in features.F.T])


@dataclass
class Quadratic:
    """``value0 + g'(x - center) + (x - center)' C (x - center) / 2`` with ``C = A' S A + diag(penalty)``.

    The common face of every bound and of the Hessian. `is_bound` says whether it lies above the objective everywhere.
    """

    features: LinearMap | LabelFeatures
    potential: PotentialCurvature
    penalty: FloatArray
    center: FloatArray
    value0: float
    gradient0: FloatArray
    is_bound: bool
    precondition: Callable[[FloatArray], FloatArray] | None = None  # given: solve by conjugate gradients
    _matrix: FloatArray | None = field(default=None, repr=False)
    _factor: CholeskyFactor | GaugeFactor | None = field(default=None, repr=False)

    def value(self, parameters: FloatArray) -> float:
        """The quadratic at any parameters."""
        step = parameters - self.center
        return float(self.value0 + self.gradient0 @ step + 0.5 * (step @ self.matvec(step)))

    def matvec(self, vector: FloatArray) -> FloatArray:
        """C v, by products with the data; no matrix is formed."""
        if isinstance(self.features, DenseLinear) and isinstance(self.potential, RankOneCurvature | ScalarCurvature):
            product = self.features.curvature_product(self.potential.D, self.potential.top, vector)
        else:
            product = self.features.adjoint(self.potential.product(self.features.forward(vector)))
        self.features.remove_mean(product)
        return product + self.penalty * vector

    def matrix(self) -> FloatArray:
        """C as a matrix (kept)."""
        if self._matrix is None:
            self._matrix = curvature_matrix(self.features, self.potential)
            self._matrix.flat[:: len(self._matrix) + 1] += self.penalty
        return self._matrix

    def trace(self) -> float:
        """tr C, without the matrix."""
        if isinstance(self.features, LabelFeatures):
            rows = _curved_rows(self.features, self.potential)
            return float(np.vdot(self.features.F, rows) + self.penalty.sum())
        diagonal = self.potential.diagonal().reshape(self.features.n_examples, -1)
        return float(self.features.squared(diagonal).sum() + self.penalty.sum())

    def factor(self) -> CholeskyFactor | GaugeFactor:
        """A factor of C (kept)."""
        if self._factor is None:
            if isinstance(self.features, LinearMap) and GaugeFactor.applies(self.features, self.penalty):
                self._factor = GaugeFactor(self.features, self.potential.pairs(), self.penalty)
            else:
                self._factor = CholeskyFactor(self.matrix())
        return self._factor

    def solve(self, vector: FloatArray) -> FloatArray:
        """C^-1 v: by the factor, or by conjugate gradients to `SOLVE_TOLERANCE` if a preconditioner was given.

        An inexact solve still lowers the quadratic, so a majorization step with it still lowers the objective.
        """
        if self.precondition is None:
            return self.factor().solve(vector)
        return conjugate_gradient(self.matvec, vector, self.precondition, SOLVE_TOLERANCE, max_iter=1000)[0]


class GaugeFactor:
    """A factor of ``A' S A + diag(penalty)`` for maps with a weight vector per label, with one label less.

    Adding a constant to a column's weight in every label changes no probability: S has the constants in its kernel. So
    the system splits into differences to the last label (one label less, and definite without a penalty too) and the mean
    over labels, where only the penalty acts (a free mean is left alone).

    Parameters
    ----------
    features : LinearMap
        Its examples, dtype and layout; may be a sample of those that `columns` and solves refer to.
    pairs : array
        Entries of S, see `PotentialCurvature.pairs`.
    penalty : array of shape (size,)
        The same for every label of a column.
    """

    def __init__(self, features: LinearMap, pairs: FloatArray, penalty: FloatArray) -> None:
        self.columns: Any = features.columns()
        n, p = self.columns.shape
        self.penalty: FloatArray = penalty[self.columns[0]]
        labels = max(1, n - 1)
        self.reduced: FloatArray = features.label_blocks(pairs, labels)
        share = np.eye(labels) - (1.0 / n if n > 1 else 0.0)
        for j in range(labels):
            for k in range(j + 1):
                block = self.reduced[j * p : (j + 1) * p, k * p : (k + 1) * p]
                block[np.arange(p), np.arange(p)] += (share[j, k] * self.penalty).astype(block.dtype)
        self.cholesky: CholeskyFactor = CholeskyFactor(self.reduced)

    @staticmethod
    def applies(features: LinearMap, penalty: FloatArray) -> bool:
        """Whether every column has one penalty for all labels."""
        return features.n_outputs == 1 or not np.ptp(penalty[features.columns()], axis=0).any()

    def solve(self, vector: FloatArray) -> FloatArray:
        V = vector[self.columns]
        out = np.empty_like(vector)
        n, p = V.shape
        if n == 1:
            out[self.columns] = self.cholesky.solve(V[0])
            return out
        mean = V.mean(0)
        differences = self.cholesky.solve((V[:-1] - mean).ravel()).reshape(n - 1, p)
        constant = np.divide(mean, self.penalty, out=np.zeros(p), where=self.penalty > 0.0)
        constant -= differences.sum(0) / n
        out[self.columns[:-1]] = differences + constant
        out[self.columns[-1]] = constant
        return out
