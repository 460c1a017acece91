"""Graphs as the index arrays that kernels take, and the door for edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ...core.memory import check_memory
from ...core.results import IntArray
from ..kernels.graphs import Graphs


def checked_edges(edges: ArrayLike, n_vertices: int, directed: bool) -> IntArray:
    """Pairs of vertices as they came, those that came before left out.

    Parameters
    ----------
    edges : array of int, shape (edges, 2)
        Of a directed edge, the head first.
    n_vertices : int
    directed : bool
        Else a pair and its reverse are the same edge.
    """
    pairs = np.asarray(edges)
    if pairs.size == 0 and pairs.ndim <= 2:
        pairs = np.zeros((0, 2), np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or pairs.dtype.kind not in "iu":
        raise ValueError(
            f"edges must be integers of shape (edges, 2), pairs of vertices; got {pairs.shape} of {pairs.dtype}"
        )
    outside = ((pairs < 0) | (pairs >= n_vertices)).any(1)
    if outside.any():
        row = int(outside.argmax())
        raise ValueError(f"edges must join vertices from 0 to {n_vertices - 1}; row {row} is {pairs[row].tolist()}")
    loops = pairs[:, 0] == pairs[:, 1]
    if loops.any():
        row = int(loops.argmax())
        raise ValueError(f"edges must not join a vertex to itself; row {row} is {pairs[row].tolist()}: leave it out")
    pairs = pairs.astype(np.int64)
    ordered = pairs if directed else np.sort(pairs, axis=1)
    _, first = np.unique(ordered[:, 0] * n_vertices + ordered[:, 1], return_index=True)
    return np.ascontiguousarray(pairs[np.sort(first)])


def complete_edges(n_vertices: int, directed: bool, root: int) -> IntArray:
    """All pairs of vertices; if directed, all (head, dependent) with another dependent than the root, by dependents."""
    what, cure = f"a complete graph of {n_vertices} vertices", "Give the edges there are"
    check_memory(what, 40 * n_vertices**2, cure)
    if not directed:
        return np.column_stack(np.triu_indices(n_vertices, 1)).astype(np.int64)
    heads, dependents = np.tile(np.arange(n_vertices), n_vertices), np.repeat(np.arange(n_vertices), n_vertices)
    kept = (heads != dependents) & (dependents != root)
    return np.column_stack([heads[kept], dependents[kept]]).astype(np.int64)


def rooted(vertices: IntArray, root: int) -> IntArray:
    """Vertices numbered so that the root is 0 and the others follow in their order."""
    return np.where(vertices == root, 0, vertices + (vertices < root))


def ends(edges: IntArray, directed: bool, root: int) -> tuple[IntArray, IntArray]:
    """Rows and columns of edges, see `Graphs`."""
    columns, rows = rooted(edges[:, 0], root), rooted(edges[:, 1], root)
    if not directed:
        rows, columns = np.where(rows == 0, columns, rows), np.where(rows == 0, 0, columns)
    return np.ascontiguousarray(rows), np.ascontiguousarray(columns)


def on_one_graph(rows: IntArray, columns: IntArray, n_vertices: int, count: int, directed: bool, single: bool) -> Graphs:
    """So many examples on the same graph."""
    steps = np.arange(count + 1, dtype=np.int64)
    sizes, templates = np.full(count, n_vertices - 1, np.int64), np.zeros(count, np.int64)
    return Graphs(sizes, steps * len(rows), steps * (n_vertices - 1), templates, rows, columns, not directed, single)


def complete_digraphs(lengths: IntArray, single: bool) -> Graphs:
    """Complete directed graphs of so many vertices beside the root each."""
    sizes, kind = np.unique(lengths, return_inverse=True)
    made = [ends(complete_edges(int(n) + 1, True, 0), True, 0) for n in sizes]
    first = np.concatenate(([0], np.cumsum(sizes**2)))[:-1]
    rows, columns = (np.concatenate([pair[side] for pair in made]) for side in (0, 1))
    starts, vertices = (np.concatenate(([0], np.cumsum(n))).astype(np.int64) for n in (lengths**2, lengths))
    return Graphs(lengths, starts, vertices, first[kind].astype(np.int64), rows, columns, False, single)
