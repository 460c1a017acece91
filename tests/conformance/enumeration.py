"""Every output there is, listed without the library: what answers are compared with, in all tests."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any

import numpy as np


def choices(sizes: Iterable[int]) -> Any:
    """Every choice of one number below each size, a row each; the last changes fastest."""
    ranges = [range(int(size)) for size in sizes]
    rows = list(itertools.product(*ranges))
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(ranges))


def permutations(n: int) -> Any:
    return np.array(list(itertools.permutations(range(n))), dtype=np.int64)


def matchings(n: int, edges: Any, perfect: bool) -> Any:
    """All matchings of a graph of n vertices as partners, -1 for none."""
    allowed = {tuple(sorted(edge)) for edge in np.asarray(edges).tolist()}

    def pairs(left: list[int]) -> Any:
        if not left:
            yield []
            return
        i, rest = left[0], left[1:]
        if not perfect:
            yield from pairs(rest)
        for j in rest:
            if (i, j) in allowed:
                for more in pairs([v for v in rest if v != j]):
                    yield [(i, j), *more]

    found = []
    for matching in pairs(list(range(n))):
        partners = np.full(n, -1)
        for i, j in matching:
            partners[i], partners[j] = j, i
        found.append(partners)
    return np.array(found, dtype=np.int64).reshape(-1, n)


def edge_sets(edges: Any, b: Any, perfect: bool) -> Any:
    """All sets of edges in which vertices have b edges, or at most b, as zeros and ones."""
    ends = np.asarray(edges)
    sets = choices([2] * len(ends))
    degrees = np.array([np.bincount(ends.ravel(), np.repeat(row, 2), len(b)) for row in sets])
    return sets[(degrees == b if perfect else degrees <= b).all(1)]


def configurations(graph: Any, potentials: Any) -> tuple[Any, Any]:
    """Every configuration of a factor graph, and its score."""
    states = choices(graph.cardinalities)
    scores = np.zeros(len(states))
    for scope, table in zip(graph.factors, graph.tables(potentials), strict=True):
        scores = scores + table[tuple(states[:, v] for v in scope)]
    return states, scores


def labellings(n_labels: int, length: int) -> Any:
    """Every labelling of a sequence."""
    return choices([n_labels] * length)


def log_sum(scores: Any) -> float:
    """log of the sum of exponentials, in extended precision."""
    return distribution(scores)[0]


def distribution(scores: Any) -> tuple[float, Any]:
    """log Z and probabilities, in extended precision."""
    top = np.max(scores)
    weights = np.exp((scores - top).astype(np.longdouble))
    return float(top + np.log(weights.sum())), weights / weights.sum()


def spanning_trees(n, edges, root=None, single_root=False):
    """Zeros and ones for the edges of every tree on n vertices; with a root, edges are (head, dependent)."""
    out = []
    for y in choices([2] * len(edges)):
        used = [tuple(edge) for edge, there in zip(np.asarray(edges).tolist(), y, strict=True) if there]
        reached = {0 if root is None else root}
        while True:
            more = {j for i, j in used if i in reached} | ({i for i, j in used if j in reached} if root is None else set())
            if more <= reached:
                break
            reached |= more
        alone = not single_root or sum(i == root for i, _ in used) == 1
        if len(used) == n - 1 and len(reached) == n and alone:
            out.append(y)
    return np.array(out)
