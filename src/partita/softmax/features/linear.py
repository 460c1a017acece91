"""Maps that give every label its own weights on the columns of X: ``s[i, k] = x_i . coef_k + intercept_k``.

Parameters are one flat vector, coefficients first, intercepts last. Its layout is the map's own business (label-major for
dense X, column-major for sparse X, where it makes the products several times faster): use `pack` and `unpack`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.results import FloatArray
from ...numerics import dense

#: Arrays of the size of the scores, and of the weights, that any fit needs at once.
COPIES_OF_SCORES, COPIES_OF_WEIGHTS = 4, 6


class LinearMap:
    """What the two layouts share.

    Attributes
    ----------
    n_examples, n_columns, n_outputs : int
        Shape of X, and number of potentials per example (one for binary problems).
    intercept : bool
        Whether each output has an intercept.
    size : int
        Number of parameters.
    """

    n_examples: int
    n_columns: int

    def __init__(self, shape: tuple[int, int], n_outputs: int, intercept: bool, workers: Workers) -> None:
        self.n_examples, self.n_columns = int(shape[0]), int(shape[1])
        self.n_outputs = n_outputs
        self.intercept = intercept
        self.workers = workers
        self.size: int = n_outputs * (self.n_columns + intercept)
        self.n_coefficients: int = n_outputs * self.n_columns
        check_memory(
            f"a model of {n_outputs} outputs for {self.n_examples} examples of {self.n_columns} columns",
            8.0 * (COPIES_OF_SCORES * self.n_examples * n_outputs + COPIES_OF_WEIGHTS * self.size),
            "Use fewer columns (select or hash them) or fewer classes",
        )
        self.dtype: Any = np.float64

    def _intercepts(self, theta: Any) -> FloatArray:
        return theta[self.n_coefficients :] if self.intercept else np.zeros(self.n_outputs, theta.dtype)

    def unpack(self, theta: Any) -> tuple[FloatArray, FloatArray]:
        """Coefficients (outputs, columns) and intercepts (outputs,)."""
        raise NotImplementedError

    def pack(self, coefficients: Any, intercepts: Any) -> FloatArray:
        """The flat vector of `unpack`."""
        raise NotImplementedError

    def forward(self, theta: FloatArray) -> FloatArray:
        """Potentials (examples, outputs)."""
        raise NotImplementedError

    def adjoint(self, r: FloatArray) -> FloatArray:
        """The flat vector of sum_i r[i, k] x_i and sum_i r[i, k]."""
        raise NotImplementedError

    def curvature_block(self, product: Callable[[FloatArray], FloatArray], block: FloatArray) -> FloatArray:
        """A' S A times the columns of a matrix, several in one pass over X; `product` is S v."""
        raise NotImplementedError

    def gram(self, w: FloatArray) -> FloatArray:
        """sum_i w_i x_i x_i', with a last row and column for the intercept if there is one."""
        raise NotImplementedError

    def remove_mean(self, flat: FloatArray) -> None:
        """Subtract each column's mean over the outputs, in place, if there are several.

        Residuals and curvatures have none along "the same weight in every label". What rounding leaves there would be
        divided by the penalty in a solve: noise of 1e-16 against a penalty of 1e-12.
        """
        raise NotImplementedError

    def product_cost(self) -> tuple[float, float]:
        """Operations of one curvature product, and of one Gram matrix."""
        raise NotImplementedError

    def squared(self, r: FloatArray) -> FloatArray:
        """The flat vector of sum_i r[i, k] x_i^2 (and sum_i r[i, k] for intercepts)."""
        raise NotImplementedError

    def outer(self, examples: Any, roots: FloatArray) -> FloatArray:
        """Row m is the flat vector of ``roots[m, k] x`` for example ``examples[m]`` (and ``roots[m, k]`` for intercepts)."""
        out = np.empty((len(examples), self.size))
        columns = self.columns()
        X = self.dense_rows(examples)
        for k in range(self.n_outputs):
            out[:, columns[k, : self.n_columns]] = roots[:, k, None] * X
            if self.intercept:
                out[:, columns[k, -1]] = roots[:, k]
        return out

    def dense_rows(self, rows: Any) -> FloatArray:
        """Some rows of X as a dense array."""
        raise NotImplementedError

    def magnitudes(self) -> tuple[FloatArray, FloatArray]:
        """For every parameter, the sum of squares of its column and how many of its entries are not zero."""
        squares, counts = self._column_magnitudes()
        ones = np.full(self.n_outputs, float(self.n_examples))
        return tuple(self.pack(np.tile(column, (self.n_outputs, 1)), ones) for column in (squares, counts))  # type: ignore[return-value]

    def _column_magnitudes(self) -> tuple[FloatArray, FloatArray]:
        raise NotImplementedError

    def digest(self) -> int:
        """A number that tells whether the entries of X, which may be the caller's, have changed since."""
        raise NotImplementedError

    def label_blocks(self, pairs: FloatArray, labels: int) -> FloatArray:
        """A' S A for the first `labels` labels, label by label: at least its lower triangle is written.

        Row ``j (j + 1) / 2 + k`` of `pairs` holds S_i[j, k] of every example.
        """
        p = self.n_columns + self.intercept
        out = np.empty((labels * p, labels * p), self.dtype)
        for j in range(labels):
            for k in range(j + 1):
                out[j * p : (j + 1) * p, k * p : (k + 1) * p] = self.gram(pairs[j * (j + 1) // 2 + k])
        return out

    def curvature_matrix(self, pairs: FloatArray) -> FloatArray:
        """A' S A in the order of the flat vector."""
        blocks = self.label_blocks(pairs, self.n_outputs)
        dense.mirror(blocks)
        out = np.empty_like(blocks)
        flat = self.columns().ravel()
        out[np.ix_(flat, flat)] = blocks
        return out

    def places(self, flat: Any) -> tuple[Any, Any]:
        """Label and column of positions in the flat vector; the column of an intercept is `n_columns`."""
        raise NotImplementedError

    def hold_columns(self, columns: Any) -> tuple[tuple[Any, ...], Any]:
        """At least these columns, as `kernels.columns` reads them, and the place of each column of X among those held.

        Number `n_columns` is the column of ones.
        """
        raise NotImplementedError

    def columns(self) -> Any:
        """Positions in the flat vector, (outputs, columns + intercept)."""
        coefficients, intercepts = self.unpack(np.arange(self.size))
        return np.hstack([coefficients, intercepts[:, None]]) if self.intercept else coefficients
