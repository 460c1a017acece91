"""Linear maps from parameters to the weights of edges of graphs."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...core.contracts.features import FeatureMap
from ...core.results import FloatArray, IntArray
from ..kernels import pairs as kernels

#: Vertices at a time in products over pairs of them.
BLOCK = 128


class EdgeMap(FeatureMap[FloatArray], Protocol):
    """Weights of the edges of some examples on the same graph."""

    n_examples: int

    def forward(self, theta: FloatArray) -> FloatArray:
        """Weights, (examples, edges)."""
        ...

    def squares(self, values: FloatArray) -> FloatArray:
        """The adjoint of the map with the squares of the features."""
        ...

    def take(self, rows: IntArray) -> EdgeMap:
        """The map of some examples."""
        ...

    def example(self, i: int) -> EdgeMap:
        """The map of one example."""
        ...


class EdgeFeatures:
    """Every edge of every example has features of its own.

    Parameters
    ----------
    features : array of shape (parameters, examples, edges)
    """

    size: int
    n_examples: int

    def __init__(self, features: FloatArray) -> None:
        self.size, self.n_examples = features.shape[:2]
        self._shape = features.shape[1:]
        self._F = np.ascontiguousarray(features, dtype=np.float64).reshape(self.size, -1)

    def forward(self, theta: FloatArray) -> FloatArray:
        return np.asarray(theta @ self._F).reshape(self._shape)

    def adjoint(self, values: FloatArray) -> FloatArray:
        return np.asarray(self._F @ values.ravel())

    def squares(self, values: FloatArray) -> FloatArray:
        return np.array([(row * row) @ values.ravel() for row in self._F])

    def take(self, rows: IntArray) -> EdgeFeatures:
        return EdgeFeatures(self._F.reshape(self.size, *self._shape)[:, rows])

    def example(self, i: int) -> EdgeFeatures:
        return self.take(np.array([i]))


class NodePairs:
    """The weight of an edge is ``x_i' T z_j``, with the features of its ends; the parameters are the matrix T.

    No feature is ever written out for an edge. On graphs with one kind of vertices x and z are the same, and weights are
    those of both directions, halved.

    Parameters
    ----------
    rows, columns : arrays of shape (examples, n, p) and (examples, n, q)
        Features of the vertices.
    ends : int array of shape (edges, 2), optional
        Edges of a graph with one kind of vertices, in the order of their first ends. Default: all pairs of a row and a
        column, row by row.
    """

    n_examples: int

    def __init__(self, rows: FloatArray, columns: FloatArray, ends: IntArray | None = None) -> None:
        self._X, self._Z, self._ends = rows, columns, ends
        if ends is not None:
            self._blocks = _blocks(ends, rows.shape[1])
        self.n_examples, self._p, self._q = len(rows), rows.shape[2], columns.shape[2]
        self.size: int = self._p * self._q

    def forward(self, theta: FloatArray) -> FloatArray:
        T = theta.reshape(self._p, self._q)
        if self._ends is None:
            return np.asarray((self._X @ T) @ self._Z.transpose(0, 2, 1)).reshape(self.n_examples, -1)
        out, T = np.empty((self.n_examples, len(self._ends))), 0.5 * (T + T.T)
        for X, row in zip(self._X, out, strict=True):
            for part, edges, one, other in self._blocks:
                kernels.take((X[part] @ T) @ X.T, one, other, row[edges])
        return out

    def adjoint(self, values: FloatArray) -> FloatArray:
        return self._pull(self._X, self._Z, values)

    def squares(self, values: FloatArray) -> FloatArray:
        return self._pull(self._X**2, self._Z**2, values)

    def take(self, rows: IntArray) -> NodePairs:
        return NodePairs(self._X[rows], self._Z[rows], self._ends)

    def example(self, i: int) -> NodePairs:
        return self.take(np.array([i]))

    def _pull(self, X: FloatArray, Z: FloatArray, values: FloatArray) -> FloatArray:
        B, n = X.shape[:2]
        if self._ends is None:
            return np.asarray((X.transpose(0, 2, 1) @ values.reshape(B, n, -1) @ Z).sum(0)).ravel()
        G = np.zeros((self._p, self._p))
        for part, edges, one, other in self._blocks:
            above = np.zeros((part.stop - part.start, n))
            for x, row in zip(X, values, strict=True):
                kernels.put(row[edges], one, other, above)
                G += x[part].T @ (above @ x)
        return np.asarray(0.5 * (G + G.T)).ravel()


def _blocks(ends: IntArray, n: int) -> list[tuple[slice, slice, Any, Any]]:
    """Some vertices at a time, with the edges that have them first: those edges, and their ends counted from the first of
    the vertices. Matrices of all pairs of vertices would not stay in the cache."""
    out = []
    for lo in range(0, n, BLOCK):
        hi = min(lo + BLOCK, n)
        edges = slice(*np.searchsorted(ends[:, 0], [lo, hi]).tolist())
        one, other = (ends[edges] - [lo, 0]).astype(np.uint32).T
        out.append((slice(lo, hi), edges, np.ascontiguousarray(one), np.ascontiguousarray(other)))
    return out
