"""Sets of variables of a factor graph that hang together."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence

import numpy as np

from ...core.errors import TooLargeError
from ...core.results import IntArray
from .factor_graph import FactorGraph

#: Sets that are listed at most.
MOST = 2_000_000


def neighbours(graph: FactorGraph) -> list[list[int]]:
    """For every variable, those that share a factor with it, ascending."""
    out: list[list[int]] = [[] for _ in range(graph.n_variables)]
    for a, b in _edges(graph).tolist():
        out[a].append(b)
        out[b].append(a)
    return [sorted(near) for near in out]


def _edges(graph: FactorGraph) -> IntArray:
    """Pairs of variables that share a factor, each once, the smaller first."""
    pairs = [np.zeros((0, 2), np.int64)]
    for _, scope, _, _ in graph.by_arity:
        pairs += [scope[:, [i, j]] for i, j in itertools.combinations(range(scope.shape[1]), 2)]
    both = np.sort(np.concatenate(pairs), axis=1)
    keys = np.unique(both[:, 0] * graph.n_variables + both[:, 1])
    return np.column_stack([keys // graph.n_variables, keys % graph.n_variables])


def connected_sets(graph: FactorGraph, k: int) -> IntArray:
    """All sets of k variables that hang together, a row each, ascending.

    >>> from partita.structures import FactorGraph
    >>> from partita.graph.structure.connected_sets import connected_sets
    >>> connected_sets(FactorGraph([2, 2, 2], [(0, 1), (1, 2)]), 2).tolist()
    [[0, 1], [1, 2]]
    """
    if k == 1:
        return np.arange(graph.n_variables)[:, None]
    if k == 2:
        return _edges(graph)
    near = [set(row) for row in neighbours(graph)]
    found: list[tuple[int, ...]] = []
    for v in range(graph.n_variables):
        _extend((v,), {u for u in near[v] if u > v}, near[v] | {v}, v, k, near, found)
    rows = sorted(tuple(sorted(row)) for row in found)
    return np.array(rows, dtype=np.int64).reshape(-1, k)


def _extend(
    chosen: tuple[int, ...],
    ready: set[int],
    seen: set[int],
    root: int,
    k: int,
    near: Sequence[set[int]],
    found: list[tuple[int, ...]],
) -> None:
    """Sets with `chosen` in them, whose smallest variable is `root`: each is met once (Wernicke's enumeration)."""
    if len(chosen) == k:
        found.append(chosen)
        if len(found) > MOST:
            raise TooLargeError(f"there are more than {MOST} connected sets of {k} variables; take a lower order")
        return
    ready = set(ready)
    while ready:
        u = ready.pop()
        new = {w for w in near[u] if w > root and w not in seen}
        _extend((*chosen, u), ready | new, seen | near[u], root, k, near, found)


def all_sets(graph: FactorGraph, k: int) -> IntArray:
    """All sets of k variables of an example, a row each."""
    starts = np.searchsorted(graph.examples, np.arange(graph.n_examples + 1))
    count = sum(float(np.prod([(n - i) / (i + 1) for i in range(k)])) for n in np.diff(starts).tolist())
    if count > MOST:
        raise TooLargeError(f"there are {count:.3g} sets of {k} variables; blocks='connected' has fewer")
    rows = [row for lo, hi in itertools.pairwise(starts.tolist()) for row in itertools.combinations(range(lo, hi), k)]
    return np.array(rows, dtype=np.int64).reshape(-1, k)


def components(variables: Iterable[int], near: Sequence[Sequence[int]]) -> list[list[int]]:
    """The variables in groups that hang together within them, each ascending.

    >>> from partita.graph.structure.connected_sets import components
    >>> components([0, 2, 3], [[1], [0, 2], [1, 3], [2]])
    [[0], [2, 3]]
    """
    left, out = set(variables), []
    for v in sorted(left):
        if v not in left:
            continue
        left.discard(v)
        group, stack = [v], [v]
        while stack:
            for u in near[stack.pop()]:
                if u in left:
                    left.discard(u)
                    group.append(u)
                    stack.append(u)
        out.append(sorted(group))
    return out
