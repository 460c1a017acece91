"""Matchings of largest weight on any graph, by rustworkx.

Complete graphs have too many edges for it. On the graph that has every vertex twice the problem is an assignment, whose
solution may have halves; its dual numbers say what an edge that is not used must cost. A perfect matching among the edges
that cost least is best of all if what it loses against the assignment is less than the cost of any edge that was left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from .assignment import assignment_duals, assignments

#: Edges of a vertex that are kept at first, and the number of edges up to which all are.
KEPT, FEW = 8, 20_000
#: Weights are integers for the solver: the largest is so many.
_SCALE = 2.0**44


def general_matchings(structure: Any, weights: FloatArray, kept: int = KEPT) -> IntArray:
    """The partners of all vertices in the best matching of each example, -1 for none.

    Parameters
    ----------
    structure : Matching
    weights : array of shape (examples, edges)
        -inf forbids an edge.
    kept : int
        Edges of each vertex to begin with, where there are too many; doubled until the answer is proved to be the best.
    """
    out = np.empty((len(weights), structure.n_vertices), np.int64)
    for b, row in enumerate(weights):
        out[b] = _best(structure, row, kept, b)
    return out


def _best(structure: Any, weights: FloatArray, kept: int, example: int) -> IntArray:
    usable = np.flatnonzero(weights > -np.inf)
    if not structure.perfect:
        usable = usable[weights[usable] > 0.0]
    if len(usable) <= FEW or not structure.perfect:
        return _solve(structure, weights, usable, example)
    cost = _reduced_costs(structure, weights)
    while True:
        near = _cheapest(structure, cost, usable, kept)
        try:
            partners = _solve(structure, weights, near, example)
        except ValueError:
            if len(near) == len(usable):
                raise
            kept *= 2
            continue
        i = np.flatnonzero(partners > np.arange(len(partners)))
        lost = float(structure.matrices(cost[None])[0][i, partners[i]].sum())
        needed = usable[cost[usable] <= lost]
        if np.isin(needed, near, assume_unique=True).all():
            return partners
        kept *= 2


def _reduced_costs(structure: Any, weights: FloatArray) -> FloatArray:
    """What each edge costs against the assignment on the graph that has every vertex twice; none is negative."""
    W = structure.matrices(weights[None])
    np.fill_diagonal(W[0], -np.inf)
    finite = W[0][np.isfinite(W[0])]
    W[0][~np.isfinite(W[0])] = finite.min() - 10.0 * (np.ptp(finite) + 1.0) * len(W[0])
    columns = assignments(W, structure.workers)
    u, v = assignment_duals(W[0], columns[0])
    half = 0.5 * (u + v)
    i, j = structure.ends[:, 0], structure.ends[:, 1]
    return np.asarray(np.maximum(half[i] + half[j] - weights, 0.0))


def _cheapest(structure: Any, cost: FloatArray, usable: IntArray, kept: int) -> IntArray:
    """The edges that are among the cheapest of one of their vertices."""
    C = structure.matrices(cost[None])[0]
    np.fill_diagonal(C, np.inf)
    kept = min(kept, len(C) - 1)
    near = np.argpartition(C, kept - 1, axis=1)[:, :kept]
    mask = np.zeros_like(C, dtype=bool)
    np.put_along_axis(mask, near, True, axis=1)
    mask |= mask.T
    i, j = structure.ends[usable, 0], structure.ends[usable, 1]
    return np.asarray(usable[mask[i, j]])


def _solve(structure: Any, weights: FloatArray, usable: IntArray, example: int) -> IntArray:
    try:
        import rustworkx as rx
    except ImportError:
        raise ImportError("matchings on general graphs need rustworkx: pip install 'partita[matching]'") from None
    n = structure.n_vertices
    graph = rx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(n))
    values = weights[usable]
    low = float(values.min(initial=0.0)) if structure.perfect else 0.0
    top = float(np.abs(values - low).max(initial=0.0))
    integers = np.rint((values - low) * (_SCALE / top if top else 1.0)).astype(np.int64).tolist()
    ends = structure.ends[usable].tolist()
    graph.add_edges_from([(i, j, w) for (i, j), w in zip(ends, integers, strict=True)])
    pairs = rx.max_weight_matching(graph, max_cardinality=structure.perfect, weight_fn=int)
    partners = np.full(n, -1, np.int64)
    for i, j in pairs:
        partners[i], partners[j] = j, i
    if structure.perfect and (partners < 0).any():
        raise ValueError(f"there is no perfect matching in example {example}: too many edges are missing or forbidden")
    return partners
