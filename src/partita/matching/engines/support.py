"""Which edges of a graph can be in a perfect matching at all, and which must be."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, maximum_bipartite_matching

from ...core.arrays.sparse import with_narrow_indices
from ...core.results import IntArray

BoolArray = np.ndarray[Any, np.dtype[np.bool_]]


def fractional_support(ends: IntArray, n_vertices: int, left: int) -> BoolArray | None:
    """The edges that have a positive share in some solution in which all degrees are one; None if there is no solution.

    On graphs with two sides these are the edges of perfect matchings. On others shares may be halves: the edges are those
    of perfect matchings of the graph that has every vertex twice.
    """
    if left:
        rows, columns, size = ends[:, 0], ends[:, 1] - left, left
        if size != n_vertices - left:
            return None
    else:
        rows, columns, size = np.concatenate([ends[:, 0], ends[:, 1]]), np.concatenate([ends[:, 1], ends[:, 0]]), n_vertices
    graph = _pattern(rows, columns, size)
    partner = maximum_bipartite_matching(graph, perm_type="column").astype(np.int64)
    if (partner < 0).any():
        return None
    # An edge is in some perfect matching if it is in this one, or on a cycle that alternates with it.
    owner = np.empty(size, np.int64)
    owner[partner] = np.arange(size)
    steps = _pattern(rows, owner[columns], size)
    _, part = connected_components(steps, directed=True, connection="strong")
    inside = part[rows] == part[owner[columns]]
    return np.asarray(inside if left else inside[: len(ends)] | inside[len(ends) :])


def _pattern(rows: IntArray, columns: IntArray, size: int) -> Any:
    """Ones at these places of a square matrix."""
    return with_narrow_indices(sp.csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(size, size)))


def forced_edges(ends: IntArray, n_vertices: int) -> BoolArray:
    """The edges that are the only one at a vertex, given that all are in some solution."""
    degrees = np.bincount(ends.ravel(), minlength=n_vertices)
    return np.asarray((degrees[ends] == 1).any(1))
