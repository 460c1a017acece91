"""Orders of elimination, and the junction tree they give."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import prod

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import reverse_cuthill_mckee

from ...core.results import IntArray

#: Rules of the choice of the next variable: fewest new neighbours, smallest table, from one end of the graph to the other.
RULES = ("fill", "weight", "band")


@dataclass(frozen=True)
class Clique:
    """Variables of one table of a junction tree: `separator` is shared with the parent, `residual` is summed out here."""

    separator: tuple[int, ...]
    residual: tuple[int, ...]
    parent: int  # number of the parent, -1 at a root; parents come after their children


@dataclass(frozen=True)
class Elimination:
    """A junction tree as cliques, children before parents, and what it costs."""

    cliques: tuple[Clique, ...]
    width: int  # variables of the largest clique, less one
    largest: float  # entries of the largest table
    total: float  # entries of all tables
    messages: float  # entries of all separators, equal ones with one parent once

    @property
    def memory(self) -> float:
        """Bytes for the messages of one set of potentials, up and down: about so many."""
        return 16.0 * self.messages


def joined(plans: Sequence[Elimination], counts: Sequence[int]) -> Elimination:
    """The junction trees of graphs with so many variables as one of their union."""
    if len(plans) == 1:
        return plans[0]
    cliques: list[Clique] = []
    start = 0
    for plan, count in zip(plans, counts, strict=True):
        first = len(cliques)
        for clique in plan.cliques:
            separator, residual = (tuple(v + start for v in part) for part in (clique.separator, clique.residual))
            cliques.append(Clique(separator, residual, clique.parent + first if clique.parent >= 0 else -1))
        start += count
    return Elimination(
        cliques=tuple(cliques),
        width=max(plan.width for plan in plans),
        largest=max(plan.largest for plan in plans),
        total=sum(plan.total for plan in plans),
        messages=sum(plan.messages for plan in plans),
    )


def neighbours(cardinalities: IntArray, scopes: Iterable[Sequence[int]]) -> list[set[int]]:
    """Which variables share a factor. Those with one state take part in nothing."""
    adjacent: list[set[int]] = [set() for _ in cardinalities]
    for scope in scopes:
        free = [v for v in scope if cardinalities[v] > 1]
        for v in free:
            adjacent[v].update(free)
    for v, others in enumerate(adjacent):
        others.discard(v)
    return adjacent


def greedy_order(
    adjacent: list[set[int]], weights: Sequence[float], rule: str, limit: float
) -> tuple[list[int], float, int]:
    """Variables in the order in which a rule eliminates them, the log of the largest table, and how many edges were added.

    Stops early, with the order so far, once a table passes exp(limit). `weights` are logarithms of cardinalities.
    """
    adjacent = [set(others) for others in adjacent]
    n = len(adjacent)
    by_fill = rule == "fill"
    rank = _band(adjacent) if rule == "band" else None

    def cost(v: int) -> tuple[float, float]:
        if rank is not None:
            return rank[v], 0.0
        others = adjacent[v]
        weight = weights[v] + sum(weights[u] for u in others)
        if not by_fill:
            return weight, 0.0
        k = len(others)
        present = sum(len(adjacent[u] & others) for u in others) // 2
        return k * (k - 1) / 2 - present, weight

    current = [cost(v) for v in range(n)]
    heap = [(*current[v], v) for v in range(n)]
    heapq.heapify(heap)
    gone = [False] * n
    order: list[int] = []
    largest, added = 0.0, 0
    while heap:
        *key, v = heapq.heappop(heap)
        if gone[v] or tuple(key) != current[v]:
            continue
        others = adjacent[v]
        weight = weights[v] + sum(weights[u] for u in others)
        largest = max(largest, weight)
        if weight > limit:
            return order, largest, added
        order.append(v)
        gone[v] = True
        changed = set(others)
        for u in others:
            adjacent[u].discard(v)
        for u, w in combinations(others, 2):
            if w not in adjacent[u]:
                if by_fill:
                    changed |= adjacent[u] & adjacent[w]
                adjacent[u].add(w)
                adjacent[w].add(u)
                added += 1
        for u in changed:
            new = cost(u)
            if new != current[u]:
                current[u] = new
                heapq.heappush(heap, (*new, u))
    return order, largest, added


def _band(adjacent: list[set[int]]) -> list[float]:
    """Places of the variables in an order that keeps neighbours close: right for grids, where greed goes wrong."""
    rows = np.repeat(np.arange(len(adjacent)), [len(others) for others in adjacent])
    columns = np.array([u for others in adjacent for u in sorted(others)], dtype=np.int64)
    graph = sp.csr_array((np.ones(len(rows), np.int8), (rows, columns)), shape=(len(adjacent), len(adjacent)))
    rank = np.empty(len(adjacent))
    rank[reverse_cuthill_mckee(graph, symmetric_mode=True)] = np.arange(len(adjacent))
    return list(rank.tolist())


def eliminate(adjacent: list[set[int]], cardinalities: IntArray, limit: float) -> Elimination | float:
    """The best of the orders by the rules as a junction tree; if all pass the limit, the entries of a table they need."""
    weights = np.log(cardinalities.astype(float)).tolist()
    most = float(np.log(limit)) + 1e-9
    found, over = [], np.inf
    for rule in RULES:
        order, largest, added = greedy_order(adjacent, weights, rule, most)
        if len(order) == len(adjacent):
            found.append(_junction_tree(adjacent, order, cardinalities))
            if not added:  # nothing can be better than no new edges
                break
        else:
            over = min(over, largest)
    if not found:
        return float(np.exp(over))
    return min(found, key=lambda tree: tree.total)


def _junction_tree(adjacent: list[set[int]], order: list[int], cardinalities: IntArray) -> Elimination:
    """Cliques of the triangulated graph that are in no other, as a tree."""
    position = [0] * len(order)
    for i, v in enumerate(order):
        position[v] = i
    later: list[set[int]] = [set() for _ in order]  # neighbours of each variable when it is eliminated
    for v, others in enumerate(adjacent):
        later[v] = {u for u in others if position[u] > position[v]}
    for v in order:
        if later[v]:
            heir = min(later[v], key=position.__getitem__)
            later[heir] |= later[v] - {heir}
    owner = [0] * len(order)  # the clique in which a variable is eliminated; here parents come first
    members: list[set[int]] = []
    residuals: list[list[int]] = []
    parents: list[int] = []
    for v in reversed(order):
        heir = min(later[v], key=position.__getitem__) if later[v] else -1
        if heir >= 0 and len(later[v]) == len(
            members[owner[heir]]
        ):  # v joins the clique of its heir, which has all the others
            c = owner[heir]
        else:
            c = len(members)
            members.append(set(later[v]))
            residuals.append([])
            parents.append(owner[heir] if heir >= 0 else -1)
        members[c].add(v)
        residuals[c].append(v)
        owner[v] = c
    rank = np.empty(len(order), np.int64)
    rank[[v for residual in residuals for v in residual]] = np.arange(len(order))
    count, cliques, largest, total, messages = len(members), [], 0.0, 0.0, 0.0
    counts, ranks = cardinalities.tolist(), rank.tolist()
    known = set()
    for c in range(count - 1, -1, -1):
        separator = sorted(members[c].difference(residuals[c]), key=ranks.__getitem__)
        shared = float(prod(counts[v] for v in separator))
        entries = shared * prod(counts[v] for v in residuals[c])
        largest, total = max(largest, entries), total + entries
        messages += 0.0 if (parents[c], *separator) in known else shared
        known.add((parents[c], *separator))
        cliques.append(Clique(tuple(separator), tuple(residuals[c]), count - 1 - parents[c] if parents[c] >= 0 else -1))
    width = max((len(clique) for clique in members), default=1) - 1
    return Elimination(tuple(cliques), width, largest, total, messages)
