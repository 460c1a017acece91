"""Nested dissection of a drawn graph: in which order its vertices are eliminated, and the dense fronts that takes.

Blocks of rows and columns of a Kac-Ward matrix are the half-edges that leave a vertex. Entries join blocks of neighbours, so
that a set of vertices that cuts the graph cuts the matrix.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import dijkstra

from ...core.arrays.sparse import with_narrow_indices
from ...core.results import FloatArray, IntArray

#: Vertices that are eliminated together, without a further cut.
LEAF = 12


@dataclass
class Front:
    """A dense matrix in which some blocks are eliminated.

    Attributes
    ----------
    members : int array
        Its rows: first those that are eliminated here, then those that are so later.
    pivots : int
        How many are eliminated here.
    entries, rows, columns : int arrays
        The entries of the sparse matrix that are first seen here, and their places.
    above : int
        The front that takes what is left, -1 if nothing is.
    places : int array
        Where the later rows are in that front.
    children : list of int
    """

    members: IntArray
    pivots: int
    entries: IntArray
    rows: IntArray
    columns: IntArray
    above: int = -1
    places: IntArray = field(default_factory=lambda: np.zeros(0, np.int64))
    children: list[int] = field(default_factory=list)


def fronts(adjacency: Any, places: FloatArray, blocks: IntArray, rows: IntArray, columns: IntArray) -> list[Front]:
    """The fronts of a sparse matrix with entries at rows and columns, children before parents.

    Parameters
    ----------
    adjacency : sparse matrix
        Neighbours of vertices.
    places : array of shape (vertices, 2)
    blocks : int array
        The rows of vertex v are ``blocks[v]:blocks[v + 1]``.
    """
    adjacency = with_narrow_indices(sp.csr_array(adjacency))
    parts = _dissect(adjacency, places)
    step = np.empty(len(places), np.int64)
    for k, part in enumerate(parts):
        step[part] = k
    vertex = np.repeat(np.arange(len(places)), np.diff(blocks))
    first = np.minimum(step[vertex[rows]], step[vertex[columns]])
    order = np.argsort(first, kind="stable")
    ends = np.searchsorted(first[order], np.arange(len(parts) + 1))
    local = np.empty(int(blocks[-1]), np.int64)
    later: list[list[IntArray]] = [[] for _ in parts]
    found: list[Front] = []
    for k, part in enumerate(parts):
        near = np.unique(np.concatenate([*later[k], *(_row(adjacency, v) for v in part.tolist())]))
        near = near[step[near] > k]
        near = near[np.argsort(step[near], kind="stable")]
        members = _expand(blocks, np.concatenate([part, near]))
        local[members] = np.arange(len(members))
        mine = order[ends[k] : ends[k + 1]]
        front = Front(members, int((blocks[part + 1] - blocks[part]).sum()), mine, local[rows[mine]], local[columns[mine]])
        if len(near):
            front.above = int(step[near[0]])
            later[front.above].append(near)
        found.append(front)
    for k, front in enumerate(found):
        if front.above >= 0:
            above = found[front.above]
            above.children.append(k)
            local[above.members] = np.arange(len(above.members))
            front.places = local[front.members[front.pivots :]]
    return found


def _row(adjacency: Any, v: int) -> IntArray:
    return np.asarray(adjacency.indices[adjacency.indptr[v] : adjacency.indptr[v + 1]], dtype=np.int64)


def _expand(blocks: IntArray, vertices: IntArray) -> IntArray:
    """The rows of some vertices."""
    counts = blocks[vertices + 1] - blocks[vertices]
    within = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.asarray(np.repeat(blocks[vertices], counts) + within)


def _dissect(adjacency: Any, places: FloatArray) -> list[IntArray]:
    """Vertices in parts, those that are cut off before those that cut."""
    found: list[IntArray] = []
    stack = [np.arange(len(places))]
    while stack:
        vertices = stack.pop()
        if len(vertices) <= LEAF:
            found.append(vertices)
            continue
        near = adjacency[vertices][:, vertices]
        low, cut, high = _best_cut(near, places[vertices])
        if cut.any():
            found.append(vertices[cut])
        stack += [vertices[side] for side in (low, high) if side.any()]
    return found[::-1]


def _best_cut(near: Any, places: FloatArray) -> tuple[Any, Any, Any]:
    """Both sides and the vertices between them: of cuts across, down and by distance, that with the least for its sides."""
    best: Any = None
    for key in (places[:, 0], places[:, 1], _distances(near)):
        middle = np.partition(key, len(key) // 2)[len(key) // 2]
        below = key <= middle if (key > middle).any() else key < middle
        if not below.any():
            continue
        cut = below & (near @ (~below).astype(np.float64) > 0.0)
        low = below & ~cut
        cost = cut.sum() / (min(low.sum(), (~below).sum()) + 1.0)
        if best is None or cost < best[0]:
            best = cost, low, cut, ~below
    if best is None:  # all in one place and next to each other
        half = np.arange(len(places)) < len(places) // 2
        best = 0.0, np.zeros_like(half), half, ~half
    _, low, cut, high = best
    return low, cut, high


def _distances(near: Any) -> FloatArray:
    """Steps from a vertex at the rim of the graph; other components are one farther than the farthest."""
    far = 0
    for _ in range(2):
        steps = dijkstra(near, directed=False, unweighted=True, indices=far)
        reached = np.isfinite(steps)
        far = int(np.where(reached, steps, -1.0).argmax())
    return np.asarray(np.where(reached, steps, steps[reached].max() + 1.0))
