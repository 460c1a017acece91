"""Standard errors of tables where all values are known: each distribution is a softmax of its own, in closed form."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...core.results import FloatArray, IntArray


@dataclass(frozen=True)
class KnownRows:
    """Rows without unknown values.

    Attributes
    ----------
    states : int array of shape (rows, variables)
    weights : array of shape (rows,)
    number : dict
        The column of each variable.
    """

    states: IntArray
    weights: FloatArray
    number: Mapping[Hashable, int]

    def table_errors(
        self, name: Hashable, parents: Sequence[Hashable], table: FloatArray, alpha: float, robust: bool
    ) -> FloatArray:
        """Standard errors of p(name | parents), by the delta method.

        The weights ``W = log p + c`` of a row of the table have the information ``H = N (diag(p) - pp') + alpha``, and the
        covariance ``H^-1``, or if `robust` ``H^-1 K H^-1`` with K the sum of outer products of the scores. Infinite where
        nothing was seen and there is no penalty.
        """
        k = table.shape[-1]
        flat = table.reshape(-1, k)
        columns = [self.states[:, self.number[parent]] for parent in parents]
        row = np.ravel_multi_index(columns, table.shape[:-1]) if parents else np.zeros(len(self.states), np.int64)
        cell = row * k + self.states[:, self.number[name]]
        counts, squares = (np.bincount(cell, w, flat.size).reshape(flat.shape) for w in (self.weights, self.weights**2))
        V = np.einsum("rj,jk->rjk", flat, np.eye(k)) - flat[:, :, None] * flat[:, None]
        H = counts.sum(1)[:, None, None] * V + alpha * np.eye(k)
        inverse = np.linalg.pinv(H, rcond=1e-12, hermitian=True)
        middle = H
        if robust:  # sum of w^2 (e - p)(e - p)'
            away = np.eye(k)[None] - flat[:, None]
            middle = np.einsum("rs,rsj,rsk->rjk", squares, away, away)
        half = V @ inverse
        variances = np.einsum("rij,rjk,rik->ri", half, middle, half)
        if alpha == 0.0:
            variances[counts.sum(1) == 0.0] = np.inf
        return np.asarray(np.sqrt(np.maximum(variances, 0.0)).reshape(table.shape))
