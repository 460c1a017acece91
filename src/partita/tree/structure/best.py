"""Best spanning trees of undirected graphs, by SciPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import minimum_spanning_tree

from ...core.arrays.sparse import with_narrow_indices
from ...core.results import FloatArray, IntArray

#: Edges that one call of SciPy is given, if examples are not larger.
BLOCK = 1 << 20


def best_edges(edges: IntArray, n_vertices: int, weights: FloatArray) -> NDArray[np.int8]:
    """Ones for the edges of the best tree of each row of weights, or of the best forest where there is no tree.

    Which tree is best depends on the order of the weights alone: SciPy is given their ranks. So no weight is zero, which
    SciPy takes for no edge, and none is rounded. Of equals the earlier edge is taken. -inf forbids an edge.
    """
    chosen = np.zeros(weights.shape, np.int8)
    step = max(1, BLOCK // max(1, len(edges), n_vertices))
    for lo in range(0, len(weights), step):
        _best(edges, n_vertices, weights[lo : lo + step], chosen[lo : lo + step])
    return chosen


def _best(edges: IntArray, n_vertices: int, weights: FloatArray, chosen: Any) -> None:
    """All rows as one graph of several parts."""
    flat = weights.ravel()
    allowed = np.flatnonzero(flat > -np.inf)
    order = allowed[np.argsort(-flat[allowed], kind="stable")]
    row, edge = np.divmod(order, max(1, len(edges)))
    i, j = edges[edge].T + n_vertices * row
    size = n_vertices * len(weights)
    graph = sp.csr_matrix((np.arange(1.0, len(order) + 1.0), (i, j)), shape=(size, size))
    ranks = minimum_spanning_tree(with_narrow_indices(graph)).data.astype(np.int64)
    chosen.reshape(-1)[order[ranks - 1]] = 1
