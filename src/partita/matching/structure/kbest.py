"""The k best matchings by Murty's algorithm, and the k best b-matchings by Lawler's (`inference.kbest`).

All matchings but the best are split by the first vertex (row, if there are two sides) whose partner is another; the vertices
before it keep theirs. The best of each part comes from the solver for best matchings, and the next best of all is the best
of the parts, which is split in turn.
"""

from __future__ import annotations

import heapq
import itertools
from typing import Any

import numpy as np

from ...core.results import BoolArray, FloatArray, IntArray
from ...inference.kbest import k_best


def murty(structure: Any, weights: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """At most k matchings of one example, best first, and their scores.

    Parameters
    ----------
    structure : BipartiteMatching or Matching
    weights : array of shape (edges,)
        -inf forbids an edge.
    k : int
    """
    count = itertools.count()  # of equals, the first found
    heap: list[tuple[float, int, IntArray, FloatArray, int]] = []

    def push(part: FloatArray, fixed: IntArray, decided: int) -> None:
        found = _best(structure, weights, part, fixed)
        if found is not None:
            score = float(_score(structure, weights, found))
            if score > -np.inf:
                heapq.heappush(heap, (-score, next(count), found, part, decided))

    push(weights, np.zeros(structure.n_edges, bool), 0)
    found: list[IntArray] = []
    scores: list[float] = []
    while heap and len(found) < k:
        value, _, y, part, decided = heapq.heappop(heap)
        found.append(y)
        scores.append(-value)
        if len(found) < k:
            _split(structure, part, y, decided, push)
    width = structure.left or structure.n_vertices
    return np.array(found, np.int64).reshape(-1, width), np.array(scores)


def _split(structure: Any, part: FloatArray, y: IntArray, decided: int, push: Any) -> None:
    """All of a part but its best matching y: the partners of the first `decided` vertices are those of y anyway."""
    chosen = structure.indicators(y)[0] > 0.0
    fixed, rest = np.zeros(structure.n_edges, bool), part.copy()
    for v in range(len(y)):
        at = structure.edges_at(v)
        mine = at[chosen[at]]
        if len(mine) and fixed[mine[0]]:
            continue
        if v >= decided:
            without = rest.copy()
            if len(mine):  # another partner, or none
                without[mine] = -np.inf
                push(without, fixed.copy(), v)
            else:  # some partner
                _each_partner(structure, without, fixed, at, v, push)
        if len(mine):
            fixed[mine] = True
            for end in structure.ends[mine[0]].tolist():
                around = structure.edges_at(end)
                rest[around[~chosen[around]]] = -np.inf
        else:
            rest[at] = -np.inf


def _each_partner(structure: Any, part: FloatArray, fixed: IntArray, at: IntArray, v: int, push: Any) -> None:
    """Vertex v, alone in the best matching, has a partner: a part for each."""
    for e in at[part[at] > -np.inf].tolist():
        rest, more = part.copy(), fixed.copy()
        more[e] = True
        for end in structure.ends[e].tolist():
            around = structure.edges_at(end)
            rest[around[around != e]] = -np.inf
        push(rest, more, v + 1)


def _best(structure: Any, weights: FloatArray, part: FloatArray, fixed: IntArray) -> IntArray | None:
    """The best matching of a part that has the fixed edges; None if there is none."""
    loose = part
    if fixed.any() and structure.may_stay_alone.any():  # their ends, alone, would be as good: they are put back
        loose = np.where(fixed, -np.inf, part) if structure.may_stay_alone.all() else part
    try:
        y = np.array(structure.best(loose[None])[0])
    except ValueError:
        return None
    if loose is not part:
        for i, j in structure.ends[fixed].tolist():
            y[i] = j - structure.left
            if not structure.left:
                y[j] = i
    return y


def _score(structure: Any, weights: FloatArray, y: IntArray) -> float:
    used = structure.indicators(y)[0] > 0.0
    return float(weights[used].sum())


def lawler(best: Any, structure: Any, weights: FloatArray, k: int) -> tuple[IntArray, FloatArray]:
    """At most k b-matchings of one example, best first, as zeros and ones for edges, and their scores.

    Parameters
    ----------
    best : callable
        From edges, numbers of edges of vertices and weights to zeros and ones; a ValueError says that there is none.
    structure : BMatching
    weights : array of shape (edges,)
        -inf forbids an edge.
    k : int
    """
    possible = np.flatnonzero(weights > -np.inf)
    ends, own = structure.ends[possible], weights[possible]

    def solve(allowed: BoolArray) -> tuple[IntArray, FloatArray]:
        may = allowed.reshape(-1, len(own), 2)
        found = [_restricted(best, structure, ends, own, row) for row in may]
        scores = [-np.inf if y is None else float(own[y > 0].sum()) for y in found]
        return np.array([np.zeros(len(own), np.int64) if y is None else y for y in found]), np.array(scores)

    chosen, scores = k_best(np.full(len(own), 2), solve, k)
    found = np.zeros((len(chosen), len(weights)), np.int64)
    found[:, possible] = chosen
    return found, scores


def _restricted(best: Any, structure: Any, ends: IntArray, weights: FloatArray, may: BoolArray) -> IntArray | None:
    """The best b-matching with edges that are in, out or either, by two columns: may be out, may be in; None if none is."""
    sure, loose = ~may[:, 0], may.all(axis=1)
    size = structure.n_vertices
    left = structure.b - np.bincount(ends[sure].ravel(), minlength=size)
    if (left < 0).any() or (structure.perfect and (np.bincount(ends[loose].ravel(), minlength=size) < left).any()):
        return None
    y = sure.astype(np.int64)
    if loose.any() and left.any():
        try:
            y[loose] = best(ends[loose], left, weights[loose])
        except ValueError:  # there is none
            return None
    return y
