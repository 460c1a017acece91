"""The smallest eigenvalues of a diagonal matrix less products of a few columns, and bounds on them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, hstack
from scipy.sparse.linalg import LinearOperator, eigsh

from ...core.results import FloatArray

#: Sizes up to which eigenvalues are those of a dense matrix.
DENSE = 300
#: Columns up to which eigenvalues are counted; Lanczos' method estimates them beyond.
COUNTED = 2000
#: How closely, relative to itself, the smallest eigenvalue is found.
SLACK = 0.05
INVERSE_STEPS = 8
#: Vectors of negative eigenvalues, at most.
N_VECTORS = 4
#: Entries up to which columns are stored as a dense matrix.
DENSE_ENTRIES = 50_000_000


@dataclass(frozen=True)
class DiagonalLessColumns:
    """The matrix ``Diag(d) - R R' - (q w' + w q') / 2`` as products."""

    d: FloatArray
    R: csr_array
    q: FloatArray
    w: FloatArray

    def __matmul__(self, x: FloatArray) -> FloatArray:
        rank_two = 0.5 * (self.q * (self.w @ x) + self.w * (self.q @ x))
        return np.asarray(self.d * x - self.R @ (self.R.T @ x) - rank_two)

    def dense(self) -> FloatArray:
        R = self.R.toarray()
        rank_two = 0.5 * (np.outer(self.q, self.w) + np.outer(self.w, self.q))
        return np.asarray(np.diag(self.d) - R @ R.T - rank_two)

    def lowest(self, count: int) -> tuple[FloatArray, FloatArray]:
        """The smallest eigenvalues, rising, and their vectors as columns."""
        n = len(self.d)
        if n <= DENSE or count >= n - 1:
            values, vectors = np.linalg.eigh(self.dense())
        else:
            start = np.random.default_rng(0).standard_normal(n)
            operator = LinearOperator((n, n), matvec=self.__matmul__, dtype=np.float64)
            values, vectors = eigsh(operator, k=count, which="SA", v0=start)
        order = np.argsort(values)[:count]
        return values[order], vectors[:, order]

    def smallest(self) -> tuple[float, FloatArray]:
        """A number that is never above the smallest eigenvalue (nor zero) but close, and vectors of low ones as columns."""
        n, p = self.R.shape
        if n <= DENSE:
            return smallest_eigenpairs(self.dense())
        if p > COUNTED:
            values, vectors = self.lowest(1)
            residual = float(np.linalg.norm(self @ vectors[:, 0] - values[0] * vectors[:, 0]))
            return min(0.0, float(values[0]) - residual), vectors
        return self._counted()

    def _counted(self) -> tuple[float, FloatArray]:
        """By inertia: D - C J C' > 0 iff D > 0 and J - C' D^-1 C has as many negative eigenvalues as J.

        Here J = diag(1, ..., 1, -1) and D = Diag(d) + shift; the shift where that begins is bracketed on a
        logarithmic scale.
        """
        scale = np.sqrt(np.linalg.norm(self.q) / np.linalg.norm(self.w)) if self.q.any() else 0.0
        q, w = (self.q / scale, self.w * scale) if scale else (self.q, self.q)
        pair = np.column_stack([0.5 * (q + w), 0.5 * (q - w)])
        C: Any = hstack([self.R, csr_array(pair)]).tocsr()
        C = C.toarray() if C.shape[0] * C.shape[1] <= DENSE_ENTRIES else C
        J = np.diag(np.append(np.ones(C.shape[1] - 1), -1.0))
        size = float(np.abs(self.d).max() + self.R.power(2).sum() + np.sum(pair * pair))

        def capacitance(shift: float) -> FloatArray | None:
            """J - C' D^-1 C where the shifted matrix is positive, else None."""
            D = self.d + shift
            if D.min() <= 0.0:
                return None
            inner = C.T @ (C / D[:, None])
            matrix = J - (inner if isinstance(inner, np.ndarray) else inner.toarray())
            return matrix if np.sum(np.linalg.eigvalsh(matrix) < 0.0) == 1 else None

        low, shift = 1e-16 * size, size
        if (matrix := capacitance(low)) is not None:
            shift = low
        while shift > (1.0 + SLACK) * low:
            middle = float(np.sqrt(low * shift))
            if (found := capacitance(middle)) is None:
                low = middle
            else:
                matrix, shift = found, middle
        return -shift, self._vector(C, capacitance(shift) if matrix is None else matrix, self.d + shift)

    def _vector(self, C: Any, capacitance: Any, D: FloatArray) -> FloatArray:
        """Inverse iteration."""
        x = np.random.default_rng(0).standard_normal(len(D))
        for _ in range(INVERSE_STEPS):
            y = x / D
            y += (C @ np.linalg.solve(capacitance, C.T @ y)) / D
            x = y / np.linalg.norm(y)
        return x[:, None]


def smallest_eigenpairs(matrix: FloatArray) -> tuple[float, FloatArray]:
    """A number nowhere above the smallest eigenvalue of a dense matrix (nor zero), and vectors as of `smallest`."""
    values, vectors = np.linalg.eigh(matrix)
    rounding = 4e-16 * len(values) ** 0.5 * float(np.abs(values).max())
    lowest = min(0.0, float(values[0]) - rounding)
    return lowest, vectors[:, : max(1, min(N_VECTORS, int(np.sum(values < 0.1 * lowest))))]
