"""Weights of (attribute, label) pairs, laid out for scoring positions that were not trained on."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...numerics import sparse


class StateWeights:
    """A table with a row of weights for every attribute that has any.

    Parameters
    ----------
    attribute, label : arrays of int
        The pairs that have a weight.
    weight : array
        Their weights.
    n_attributes, n_labels : int
    """

    n_attributes: int
    n_labels: int

    def __init__(self, attribute: IntArray, label: IntArray, weight: FloatArray, n_attributes: int, n_labels: int) -> None:
        self.n_attributes, self.n_labels = n_attributes, n_labels
        used = np.zeros(n_attributes, bool)
        used[attribute] = True
        rows = int(used.sum())
        self._slot = None
        if 2 * rows < n_attributes:  # hashed, or mostly zero: all others share one last row of zeros
            self._slot = np.where(used, np.cumsum(used) - 1, rows).astype(np.uint32)
            self.table: FloatArray = np.zeros((rows + 1, n_labels))
            self.table[self._slot[attribute], label] = weight
        else:
            self.table = np.zeros((n_attributes, n_labels))
            self.table[attribute, label] = weight

    def row(self, attribute: int) -> FloatArray:
        """The weights of an attribute for every label."""
        return np.asarray(self.table[attribute if self._slot is None else self._slot[attribute]])

    def scores(self, X: Any, workers: Workers) -> FloatArray:
        """Sums of weights, (positions, labels), for a CSR matrix of shape (positions, attributes)."""
        U = np.empty((X.shape[0], self.n_labels))
        indices = X.indices.astype(np.uint32, copy=False) if self._slot is None else self._slot[X.indices]
        rows = (X.data, indices, X.indptr.astype(np.uint64))
        bias = np.zeros(self.n_labels)
        tasks = [(*rows, self.table, bias, lo, hi, U) for lo, hi in workers.ranges(len(U), 2.0 * X.nnz * self.n_labels)]
        workers.run(sparse.rows_times_matrix, tasks)
        return U
