"""Matchings of largest weight on any graph, by rustworkx.

Graphs with many edges are too much for it. On the graph that has every vertex twice the problem is an assignment, whose
solution may have halves; its dual numbers say what an edge that is not used must cost. A perfect matching among the edges
that cost least is best of all if what it loses against the assignment is at most the cost of any edge that was left out.
Costs take the place of weights: the solver begins where most of them are zero, and is done several times sooner.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...inference.oracle import integer_scale
from ..kernels import assignment as kernels
from .assignment import assignment_duals, assignments

#: Edges of a vertex that are kept at first, and the number of edges up to which all are.
KEPT, FEW = 8, 1_000
#: Weights are integers for the solver: the largest is so many.
_SCALE = 2.0**44
#: Costs are right to so much of the largest number.
_ROUNDING = 1e-12


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
        usable = np.flatnonzero(row > (-np.inf if structure.perfect else 0.0))
        if len(usable) <= max(FEW, KEPT * structure.n_vertices) or not structure.perfect:
            found = _solve(structure.n_vertices, structure.perfect, structure.ends[usable], row[usable])
        else:
            found = _perfect(structure, row, kept)
        if found is None:
            raise ValueError(f"there is no perfect matching in example {b}: too many edges are missing or forbidden")
        out[b] = found
    return out


def _perfect(structure: Any, weights: FloatArray, kept: int) -> IntArray | None:
    """The best perfect matching among many edges."""
    n, workers = structure.n_vertices, structure.workers
    W, low = _filled(structure, weights)
    u, v = assignment_duals(W, assignments(W[None], workers)[0])
    half = 0.5 * (u + v)
    rows = Workers.ranges(n, 10.0 * n * n)
    while True:
        near = np.empty((n, min(kept, n - 1)), np.int64)
        workers.run(lambda lo, hi: kernels.cheapest(W, half, low, lo, hi, near), rows)  # noqa: B023
        i, j = np.repeat(np.arange(n), near.shape[1]), near.ravel()
        i, j = i[j >= 0], j[j >= 0]
        i, j = np.divmod(np.unique(np.minimum(i, j) * n + np.maximum(i, j)), n)
        partners = _solve(n, True, np.column_stack([i, j]), -_costs(W, half, i, j))
        if partners is not None:
            first = np.flatnonzero(partners > np.arange(n))
            limit = _costs(W, half, first, partners[first]).sum() - _ROUNDING * (1.0 + np.abs(half).max())
            seen = np.zeros((n, n), bool)
            seen[i, j] = seen[j, i] = True
            if not sum(workers.run(lambda lo, hi: kernels.left_out(W, half, low, limit, seen, lo, hi), rows)):  # noqa: B023
                return partners
        if kept >= n - 1:
            return partners
        kept *= 2


def _filled(structure: Any, weights: FloatArray) -> tuple[FloatArray, float]:
    """Weights as a symmetric matrix, and the number, too low for any solution, that stands for edges that are not."""
    allowed = weights[weights > -np.inf]
    low = float(allowed.min() - 10.0 * (np.ptp(allowed) + 1.0) * structure.n_vertices)
    W = np.full((structure.n_vertices, structure.n_vertices), low)
    i, j = structure.ends[:, 0], structure.ends[:, 1]
    W[i, j] = W[j, i] = np.maximum(weights, low)
    return W, low


def _costs(W: FloatArray, half: FloatArray, i: IntArray, j: IntArray) -> FloatArray:
    return np.asarray(np.maximum(half[i] + half[j] - W[i, j], 0.0))


def _solve(n: int, perfect: bool, ends: IntArray, weights: FloatArray) -> IntArray | None:
    """Partners in the best matching; None if it should be perfect and cannot be."""
    try:
        import rustworkx as rx
    except ImportError:
        raise ImportError("matchings on general graphs need rustworkx: pip install 'partita[matching]'") from None
    graph = rx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(n))
    low = float(weights.min(initial=0.0)) if perfect else 0.0
    top = float(np.abs(weights - low).max(initial=0.0))
    integers = np.rint((weights - low) * integer_scale(_SCALE, top)).astype(np.int64)
    graph.add_edges_from(list(zip(*ends.T.tolist(), integers.tolist(), strict=True)))
    pairs = np.array(list(rx.max_weight_matching(graph, max_cardinality=perfect, weight_fn=int)), np.int64).reshape(-1, 2)
    partners = np.full(n, -1, np.int64)
    partners[pairs[:, 0]], partners[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return None if perfect and (partners < 0).any() else partners
