"""Edges as users give them: each once, none from a node to itself."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ...core.errors import DataWarning
from ...core.memory import check_memory
from ...core.results import IntArray
from ...core.warn import warn
from ...estimators.named_columns import is_numbering

#: Bytes that a variable of a network takes, about, before any data are seen.
VARIABLE = 300.0


def read_edges(graph: Any) -> tuple[list[Hashable], list[tuple[Hashable, Hashable]]]:
    """Variables and pairs of them, from a networkx graph, a list of pairs or an array with two columns.

    An edge that comes in both directions, or twice, is one edge, as first given. Integers are numbers of columns: nodes 0 to
    n - 1 are in that order, whatever order a networkx graph has them in, and the integers of a list start at 0. Other nodes
    are names, in the order in which they occur.
    """
    if hasattr(graph, "nodes") and hasattr(graph, "edges"):
        nodes = [_plain(node) for node in graph.nodes]
        if not nodes:
            raise ValueError("graph has no nodes: a network needs at least one variable")
        if is_numbering(nodes, len(nodes)):
            nodes = list(range(len(nodes)))
        return nodes, _once((_plain(a), _plain(b)) for a, b, *_ in graph.edges)
    try:
        given = graph.tolist() if isinstance(graph, np.ndarray) else list(graph)
        pairs = [tuple(_plain(node) for node in pair) for pair in given]
    except TypeError:
        given, pairs = [], [()]
    if not pairs or any(len(pair) != 2 for pair in pairs) or any(isinstance(pair, str) for pair in given):
        raise ValueError(
            "graph must be a networkx graph, or a list of pairs of variables, at least one; for variables without edges "
            "give MarkovNetwork([(0,), (1,), ...])"
        )
    nodes = list(dict.fromkeys(node for pair in pairs for node in pair))
    if all(isinstance(node, int) for node in nodes):
        return list(range(_count(nodes))), _once(pairs)
    if not all(isinstance(node, str) for node in nodes):
        raise ValueError("graph must be a networkx graph, or a list of pairs of variable numbers (or of names of columns)")
    return nodes, _once(pairs)


def each_once(factors: list[tuple[Any, ...]], tie: Any) -> tuple[list[tuple[Any, ...]], Any]:
    """Factors without those that have the variables, and the label in `tie`, of an earlier one."""
    labels = [None] * len(factors) if tie is None or isinstance(tie, bool) else list(tie)
    if len(labels) != len(factors):
        return factors, tie  # refused later, by name
    first: dict[Any, int] = {}
    for k, (scope, label) in enumerate(zip(factors, labels, strict=True)):
        first.setdefault((frozenset(scope), len(scope), label), k)
    if len(first) == len(factors):
        return factors, tie
    kept = list(first.values())
    again = next(k for k in range(len(factors)) if k not in first.values())
    warn(
        f"{len(factors) - len(kept)} of {len(factors)} factors have the variables of an earlier one, such as factor "
        f"{again}, {factors[again]}: each is taken once, in the order of variables that came first",
        DataWarning,
    )
    return [factors[k] for k in kept], tie if tie is None or isinstance(tie, bool) else [labels[k] for k in kept]


def merge_edges(
    name: Any, parts: Sequence[tuple[int, IntArray, Any]], symmetric: bool, directed: bool | None
) -> tuple[list[IntArray | slice], bool]:
    """Rows of edges that stay when each is taken once, graph by graph, and whether both directions of some are kept.

    An edge that comes again must have the same features. One that comes in both directions is one edge if the direction does
    not matter (`symmetric`), and if all edges do, which is how matrices are written that are symmetric. If only some do,
    they are directed.

    Parameters
    ----------
    name : hashable
        Of the edges, for messages.
    parts : sequence of tuples
        For every graph its number, pairs of nodes, and a matrix with a row of features for each, or None.
    symmetric : bool
    directed : bool or None
        Whether both directions were kept in training; None in training.
    """
    found = [_Doubles(name, *part) for part in parts]
    if not any(one.twice for one in found):
        return [slice(None)] * len(found), bool(directed)
    differ = next((one for one in found if one.differs is not None), None)
    if directed is None:
        directed = not symmetric and (differ is not None or any(one.single for one in found))
        directed = directed and any(len(one.either) < len(one.rows) for one in found)
    if not directed and differ is not None:
        a, b = differ.differs or (0, 0)
        raise ValueError(
            f"X: {name!r} of graph {differ.number} has one edge in both directions with different features (rows {a} and "
            f"{b}), but this model takes each edge once, whatever its direction: give it once, or fit such edges with "
            "symmetric=False"
        )
    kept: list[IntArray | slice] = [one.rows if directed else one.either for one in found]
    return kept, directed


class _Doubles:
    """Edges of one graph: rows without those that come again, and without those in the other direction too."""

    def __init__(self, name: Any, number: int, S: IntArray, F: Any) -> None:
        self.number = number
        self.rows = self.either = np.arange(len(S))
        self.differs: tuple[int, int] | None = None
        low, high = S.min(1), S.max(1)
        key = low * (high.max(initial=0) + 1) + high
        _, first, of = np.unique(key, return_index=True, return_inverse=True)
        self.twice = len(first) < len(S)
        self.single = len(first) > 0
        if not self.twice:
            return
        forward = S[:, 0] < S[:, 1]
        _, place, same = np.unique(2 * key + forward, return_index=True, return_inverse=True)
        apart = _different(F, place[same.ravel()])
        if apart is not None:
            raise ValueError(
                f"X: {name!r} of graph {number} has one edge twice with different features (rows {apart[0]} and {apart[1]})"
                ": give it once, or give edges of another kind another name"
            )
        self.rows, self.either = np.sort(place), np.sort(first)
        self.single = bool((np.bincount(of.ravel()[place]) == 1).any())
        self.differs = _different(F, first[of.ravel()])


def _different(F: Any, others: IntArray) -> tuple[int, int] | None:
    """The first row of features that differs from another row that it should be equal to, after that one."""
    if F is None:
        return None
    rows = np.flatnonzero(others != np.arange(len(others)))
    apart = abs(F[rows] - F[others[rows]]).sum(1) > 0.0
    bad = np.flatnonzero(np.asarray(apart).ravel())
    return (int(others[rows[bad[0]]]), int(rows[bad[0]])) if len(bad) else None


def _plain(node: Any) -> Any:
    return int(node) if isinstance(node, numbers.Integral) else node


def _count(nodes: list[Any]) -> int:
    low, high = min(nodes), max(nodes)
    if low < 0:
        raise ValueError(f"graph must have variable numbers from 0 up, got {low}")
    check_memory(
        f"graph has a variable {high}, so that there are {high + 1}: each is a column of X, and a network of so many",
        VARIABLE * (high + 1),
        "Number the variables 0, 1, ... without gaps, or name them and give a data frame",
    )
    return int(high) + 1


def _once(pairs: Iterable[tuple[Any, ...]]) -> list[tuple[Hashable, Hashable]]:
    found: dict[frozenset[Any], tuple[Any, Any]] = {}
    for a, b in pairs:
        if a == b:
            raise ValueError(
                f"graph has an edge from {a!r} to itself: leave it out (each variable has weights of its own anyway)"
            )
        found.setdefault(frozenset((a, b)), (a, b))
    return list(found.values())
