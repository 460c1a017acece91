"""Feature maps around those of edges: scores of staying alone, and vertices that only fill up a side."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray, IntArray
from ..structure.bipartite import BipartiteMatching
from .edges import EdgeMap


class AloneFeatures:
    """Vertices that stay alone have scores, linear in features of their own.

    The score of a matching, ``sum W_e`` over its edges and ``sum a_v`` over the vertices without one, is that of weights
    ``W_ij - a_i - a_j`` and a constant, which no probability depends on: an edge takes the features of its ends away.

    Parameters
    ----------
    edges : EdgeMap
        The weights of edges; its parameters come first.
    alone : array of shape (examples, features, vertices)
        Features of staying alone.
    ends : int array of shape (edges, 2)
    """

    size: int
    n_examples: int

    def __init__(self, edges: EdgeMap, alone: FloatArray, ends: IntArray) -> None:
        self._edges, self._alone, self._ends = edges, alone, ends
        self.n_examples = edges.n_examples
        self.size = edges.size + alone.shape[1]

    def forward(self, theta: FloatArray) -> FloatArray:
        scores = np.einsum("k,bkv->bv", theta[self._edges.size :], self._alone)
        i, j = self._ends.T
        return np.asarray(self._edges.forward(theta[: self._edges.size]) - (scores[:, i] + scores[:, j]))

    def adjoint(self, values: FloatArray) -> FloatArray:
        B, V = len(values), self._alone.shape[2]
        owners = (V * np.arange(B)[:, None] + self._ends.T.ravel()).ravel()
        degrees = np.bincount(owners, np.tile(values, (1, 2)).ravel(), B * V).reshape(B, V)
        return np.concatenate([self._edges.adjoint(values), -np.einsum("bkv,bv->k", self._alone, degrees)])

    def squares(self, values: FloatArray) -> FloatArray:
        i, j = self._ends.T
        mine = [float((values * (rows[:, i] + rows[:, j]) ** 2).sum()) for rows in self._alone.transpose(1, 0, 2)]
        return np.concatenate([self._edges.squares(values), mine])

    def take(self, rows: IntArray) -> AloneFeatures:
        return AloneFeatures(self._edges.take(rows), self._alone[rows], self._ends)

    def example(self, i: int) -> AloneFeatures:
        return self.take(np.array([i]))


class PaddedFeatures:
    """Weights of sides of different sizes as those of `BipartiteMatching.padded`: what fills up a side has zeros.

    Parameters
    ----------
    edges : EdgeMap
    structure : BipartiteMatching
        Of the sides as they are.
    """

    size: int
    n_examples: int

    def __init__(self, edges: EdgeMap, structure: BipartiteMatching) -> None:
        self._edges, self._structure = edges, structure
        self.size, self.n_examples = edges.size, edges.n_examples

    def forward(self, theta: FloatArray) -> FloatArray:
        return self._structure.pad(self._edges.forward(theta))

    def adjoint(self, values: FloatArray) -> FloatArray:
        return self._edges.adjoint(self._structure.crop(values))

    def squares(self, values: FloatArray) -> FloatArray:
        return self._edges.squares(self._structure.crop(values))

    def take(self, rows: IntArray) -> PaddedFeatures:
        return PaddedFeatures(self._edges.take(rows), self._structure)

    def example(self, i: int) -> PaddedFeatures:
        return self.take(np.array([i]))
