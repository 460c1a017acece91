"""Graphs as `kernels.messages.bethe` reads them."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import IntArray


def half_edges(ends: IntArray, n_vertices: int, left: int) -> tuple[Any, ...]:
    """The arrays of `kernels.messages.bethe` of a graph given by the ends of its edges, and neighbours of half-edges.

    Those of a graph with one kind of vertices have every vertex twice, and every edge in both directions, one after the
    other: free energies are then twice as large, and solutions the same.
    """
    if not left:
        step = np.array([0, n_vertices])
        ends = np.concatenate([ends + step, ends[:, ::-1] + step])
        n_vertices, left = 2 * n_vertices, n_vertices
    m = len(ends)
    owner = np.concatenate([ends[:, 0], ends[:, 1]])
    order = np.argsort(owner, kind="stable")
    place = np.empty(2 * m, np.int64)
    place[order] = np.arange(2 * m)
    starts = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=n_vertices)))).astype(np.int64)
    edges = order % max(m, 1)
    others = place[(order + m) % (2 * m)] if m else place
    neighbours = np.concatenate([ends[:, 1], ends[:, 0]])[order]
    return (starts, edges, others, np.ascontiguousarray(ends), left), neighbours
