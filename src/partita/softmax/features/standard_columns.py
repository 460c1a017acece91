"""Columns of X in comparable units, for solvers that mind their scale, and the way back."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.results import FloatArray

#: Columns per example from which dense data are rotated into their row space.
WIDE = 1.5
#: Rows looked at, and distance of a column from zero, in units of its span, from which it is centred for the solver.
SAMPLED, FAR = 8, 1e4
#: Curvature of the loss of one example, about.
CURVATURE = 0.1
#: Span of a column, relative to its largest entry, up to which it is rounding: weights that tell such entries apart would be
#: so large that scores are rounding too.
ROUNDING = 1e-13
#: Length of what a row adds to the others, relative to the longest row, below which it counts as nothing.
DEPENDENT = 1e-11


class StandardColumns:
    """``rows = (X - mean) / spread``, for data with more columns than rows times an orthonormal Q, and weights for either.

    Weights on X and the corresponding weights on the rows have the same scores, and the same l2 penalty if that of the rows
    is `penalty`.
    Weights on dense columns get about the same curvature each: that of a logistic loss and of the penalty, without which
    columns that hardly vary would be blown up. Sparse and rotated data keep the proportions of their columns. The mean is
    taken off dense data if there is an intercept.

    Parameters
    ----------
    X : array or CSR matrix
    weights : array of shape (n_samples,)
    l2 : float
    intercept : bool
    rotate : bool
        Whether to rotate data with more columns than rows.
    """

    def __init__(self, X: Any, weights: FloatArray, l2: float, intercept: bool, rotate: bool = True) -> None:
        self.l2 = l2
        self.mean: FloatArray = np.zeros(X.shape[1])
        self.Q: FloatArray | None = None
        sparse = sp.issparse(X)
        wide = rotate and not sparse and WIDE * len(X) <= X.shape[1]
        if intercept and not sparse:
            self.mean = np.average(X, axis=0, weights=weights)
            constant = np.ptp(X[weights > 0.0], axis=0) <= ROUNDING * _largest(X)
            X = X - self.mean
            X[:, constant] = 0.0  # not rounding, which would be blown up
        size = _largest(X)
        # In units of the largest entry: squares of very large and very small numbers are out of range.
        spread = size * _root_mean_square(X.multiply(1.0 / size).tocsr() if sparse else X / size, weights)
        self.varies: NDArray[np.bool_] = spread > 0.0
        if wide or sparse:
            unit = spread.max() or 1.0
            spread = np.full(len(spread), unit * np.sqrt(np.mean((spread / unit) ** 2)))
        spread = np.hypot(spread, np.sqrt(l2 / (CURVATURE * weights.sum())))
        self.spread: FloatArray = np.where(spread > 0.0, spread, 1.0)
        self.rows: Any = X * (1.0 / self.spread[0]) if sparse else X / self.spread
        if wide:
            self.rows, self.Q = row_space(self.rows)

    @classmethod
    def known(cls, mean: FloatArray, spread: FloatArray, l2: float) -> StandardColumns:
        """Units that are known already, of data that are not at hand."""
        made = cls.__new__(cls)
        made.l2, made.mean, made.spread, made.Q = l2, mean, spread, None
        made.rows, made.varies = None, np.ones(len(mean), bool)
        return made

    @property
    def mixed(self) -> bool:
        """Whether a column of `rows` is a combination of columns of X."""
        return self.Q is not None

    def of(self, X: Any) -> Any:
        """Other data in the same units."""
        if sp.issparse(X) and self.Q is None and not self.mean.any():
            return (X * sp.diags(1.0 / self.spread)).tocsr()
        rows = ((X.toarray() if sp.issparse(X) else X) - self.mean) / self.spread
        return rows if self.Q is None else rows @ self.Q

    @property
    def penalty(self) -> FloatArray:
        """The l2 of each column of the rows."""
        columns = (np.sqrt(self.l2) / self.spread) ** 2  # the square of the spread may be out of range
        return columns if self.Q is None else np.full(self.Q.shape[1], columns[0])

    def to_rows(self, coefficients: FloatArray, intercepts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights for the rows from weights for X."""
        scaled = coefficients * self.spread
        return scaled if self.Q is None else scaled @ self.Q, intercepts + coefficients @ self.mean

    def to_columns(self, coefficients: FloatArray, intercepts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights for X from weights for the rows."""
        scaled = (coefficients if self.Q is None else coefficients @ self.Q.T) / self.spread
        return scaled, intercepts - scaled @ self.mean


class RowSpace:
    """``X = rows Q'``, for data with more columns than rows: as `StandardColumns`, without a change of units."""

    mixed = True

    def __init__(self, X: FloatArray) -> None:
        self.rows: FloatArray
        self.Q: FloatArray
        self.rows, self.Q = row_space(X)

    def to_rows(self, coefficients: FloatArray, intercepts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights for the rows from weights for X."""
        return coefficients @ self.Q, intercepts

    def to_columns(self, coefficients: FloatArray, intercepts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights for X from weights for the rows."""
        return coefficients @ self.Q.T, intercepts


class Centred:
    """``rows = X - mean``: as `StandardColumns`, without a change of units. A free intercept makes it the same problem."""

    mixed = False

    def __init__(self, X: FloatArray, weights: FloatArray) -> None:
        self.mean: FloatArray = np.average(X, axis=0, weights=weights)
        self.rows: FloatArray = X - self.mean

    def to_rows(self, coefficients: FloatArray, intercepts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights for the rows from weights for X."""
        return coefficients, intercepts + coefficients @ self.mean

    def to_columns(self, coefficients: FloatArray, intercepts: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Weights for X from weights for the rows."""
        return coefficients, intercepts - coefficients @ self.mean


def far_from_zero(X: FloatArray) -> bool:
    """Whether a column that varies is far from zero, beside its variation, in a few rows; most data are settled by two."""
    first = X[0]
    if not (np.abs(first) > FAR * np.abs(first - X[len(X) // 2])).any():
        return False
    some = X[:: max(1, len(X) // SAMPLED)]
    low, high = some.min(axis=0), some.max(axis=0)
    return bool(((high > low) & (np.maximum(-low, high) > FAR * (high - low))).any())


def row_space(X: FloatArray) -> tuple[FloatArray, FloatArray]:
    """``(L, Q)`` with ``X = L Q'`` and orthonormal columns in Q, for X with fewer rows than columns.

    Weights outside the row space change no potential and only add to a penalty that is the same for all columns, so
    fitting on L and multiplying by Q' gives the same optimum with as many columns as there are examples, or fewer where rows
    depend on each other (centred ones do): a direction that only rounding tells from zero would get weights without limit.
    """
    Q, R = np.linalg.qr(X.T)
    pivots = np.abs(np.diag(R))
    if pivots.min() <= DEPENDENT * pivots.max():
        Q, R, order = scipy.linalg.qr(X.T, mode="economic", pivoting=True)
        pivots = np.abs(np.diag(R))
        rank = max(1, np.count_nonzero(pivots > DEPENDENT * pivots.max()))
        Q, R = np.ascontiguousarray(Q[:, :rank]), R[:rank, np.argsort(order)]
    return np.ascontiguousarray(R.T), Q


def _largest(X: Any) -> FloatArray:
    """The largest absolute entry of each column, 1 where that is zero or nearly."""
    size = abs(X).max(axis=0)
    size = size.toarray().ravel() if sp.issparse(size) else size
    return np.asarray(np.where(size >= np.finfo(np.float64).tiny, size, 1.0))


def _root_mean_square(X: Any, weights: FloatArray) -> FloatArray:
    square = X.multiply(X).T @ weights / weights.sum() if sp.issparse(X) else np.average(X * X, axis=0, weights=weights)
    return np.asarray(np.sqrt(square))
