"""Sums of curvature over mini-batches, for objectives whose features are not known as a matrix."""

from __future__ import annotations

import copy

import numpy as np

from ..core.contracts.capabilities import Product
from ..core.results import FloatArray
from ..numerics.linalg import CholeskyFactor

#: Part of the diagonal that is added before inverting.
FLOOR = 1e-10
#: Steps by a diagonal: in units of the longest that is safe on a plain quadratic, and at most. Chosen on chains.
CUSHION, MOST_CUSHION = 2.0, 3.0
#: Products by which the largest ratio of curvature to its diagonal is found, about.
PRODUCTS = 8


class MatrixSum:
    """A running sum of curvature, as a matrix or a diagonal.

    Parameters
    ----------
    size : int
        Number of parameters.
    n_examples : int
        Examples of the whole.
    dense : bool
        Whether it is a matrix.

    Attributes
    ----------
    cushion : float
        How far it lies above the curvature that it sums, about.
    """

    def __init__(self, size: int, n_examples: int, dense: bool) -> None:
        self.dense, self.n_examples = dense, n_examples
        self.sum: FloatArray = np.zeros((size, size) if dense else size)
        self.cushion: float = 1.0
        self._inverse: FloatArray = self.sum

    def copy(self) -> MatrixSum:
        """One that can be added to while this one stays as it is."""
        return copy.copy(self)

    def decay(self, factor: float) -> None:
        """Multiply the sum by a factor."""
        self.sum = factor * self.sum

    def add(self, curvature: FloatArray, factor: float = 1.0, ratio: float = 0.0) -> None:
        """Add ``factor`` times a matrix, or a diagonal of which the curvature is at most `ratio` times."""
        self.sum = self.sum + factor * curvature
        if not self.dense:
            self.cushion = min(MOST_CUSHION, CUSHION / max(ratio, 1e-300))

    def _diagonal(self) -> FloatArray:
        return np.maximum(np.diag(self.sum) if self.dense else self.sum, 0.0)

    def prepare(self, penalty: FloatArray, batch_size: float | None = None, damping: float = 0.0) -> None:
        """Invert the sum plus ``diag(penalty)`` plus a multiple of the damping for batches of a size.

        In units of its own diagonal the curvature has the trace d. That of a batch, scaled to all, has it too on average,
        and a largest eigenvalue of about d over the batch size: never more than the number of examples over it.
        """
        diagonal = self._diagonal()
        total = penalty + FLOOR * np.maximum(diagonal, max(FLOOR * float(diagonal.mean()), 1e-300))
        if batch_size is not None and damping > 0.0:
            total = total + damping * min(len(diagonal), self.n_examples) / batch_size * diagonal
        if not self.dense:
            self._inverse = 1.0 / (diagonal + total)
            return
        matrix = 0.5 * (self.sum + self.sum.T)
        matrix.flat[:: len(matrix) + 1] += total
        scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), 1e-300))
        inverse = CholeskyFactor(scale[:, None] * matrix * scale).solve(np.diag(scale))
        self._inverse = np.ascontiguousarray(scale[:, None] * inverse)

    def solve(self, vector: FloatArray) -> FloatArray:
        """The vector times the inverse that was prepared."""
        return np.asarray(self._inverse @ vector if self.dense else self._inverse * vector)


def diagonal_of(matrix: FloatArray) -> tuple[FloatArray, float]:
    """The diagonal of a curvature, and what it must be multiplied with to lie above that."""
    root = np.sqrt(np.maximum(np.diag(matrix), 0.0))
    scaled = np.abs(matrix) / np.maximum(np.outer(root, root), 1e-300)
    return root * root, float(scaled.sum(1).max(initial=1.0))


def largest_ratio(product: Product, diagonal: FloatArray) -> float:
    """The largest eigenvalue of a curvature in units of a diagonal, about: parts that depend on each other add up."""
    scaling = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0.0)
    v = np.sign(scaling) * np.random.default_rng(0).standard_normal(len(scaling))
    size = 0.0
    for _ in range(PRODUCTS):
        v = v / max(float(np.sqrt((v * v).sum())), 1e-300)
        v = scaling * product(scaling * v)
        size = float(np.sqrt((v * v).sum()))
    return size
