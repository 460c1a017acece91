"""Best trees towards a root, by the algorithm of Chu, Liu and Edmonds.

A path of vertices grows, each the best head of the one before. Where it closes a cycle, the cycle becomes one vertex: its
edges count less what they would replace. Where it comes to the root, or to what has come there, all of it is done. On a
matrix of all edges that takes time proportional to their number.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.jit import kernel
from .graphs import load


class Growth(NamedTuple):
    """Vertices, numbered from 0, and behind them the cycles found, which are vertices, too.

    Attributes
    ----------
    score, rank, entry : arrays, a row for each vertex or cycle in use
        The weight of the best edge into it from each vertex, its rank (compared first), and where in the cycle it ends.
    owner : int array
        The vertex or cycle that each vertex is in.
    slot, parent, state : int arrays
        Of each vertex or cycle: its row, the cycle it is in, and whether it is new (0), on the path (1) or done (2).
    head, tail, cost, cost_rank : arrays
        The edge chosen for it, and its weight and rank.
    """

    score: np.ndarray
    rank: np.ndarray
    entry: np.ndarray
    owner: np.ndarray
    slot: np.ndarray
    parent: np.ndarray
    state: np.ndarray
    head: np.ndarray
    tail: np.ndarray
    cost: np.ndarray
    cost_rank: np.ndarray


@kernel
def _growth(S, single):
    """Every vertex by itself; with `single`, edges from the root rank lower than all others."""
    n = len(S)
    rank, entry = np.zeros((n, n), np.int64), np.empty((n, n), np.int64)
    for i in range(n):
        entry[i] = i
        rank[i, 0] = -1 if single else 0
    slot = np.zeros(2 * n, np.int64)
    slot[:n] = np.arange(n)
    parent, state = np.full(2 * n, -1, np.int64), np.zeros(2 * n, np.int64)
    state[0] = 2
    head, tail = np.zeros(2 * n, np.int64), np.zeros(2 * n, np.int64)
    owner = np.arange(n)
    return Growth(S.copy(), rank, entry, owner, slot, parent, state, head, tail, np.zeros(2 * n), np.zeros(2 * n, np.int64))


@kernel
def _choose(g, s):
    """The best edge into s from outside; the vertex or cycle where it begins, -1 if there is none."""
    row, best = g.slot[s], -1
    for u in range(len(g.owner)):
        if g.owner[u] == s or g.score[row, u] == -np.inf:
            continue
        higher = best < 0 or g.rank[row, u] > g.rank[row, best]
        if higher or (g.rank[row, u] == g.rank[row, best] and g.score[row, u] > g.score[row, best]):
            best = u
    if best < 0:
        return -1
    g.head[s], g.tail[s] = best, g.entry[row, best]
    g.cost[s], g.cost_rank[s] = g.score[row, best], g.rank[row, best]
    return g.owner[best]


@kernel
def _contract(g, members, new):
    """Vertices or cycles that follow each other become one."""
    base = g.slot[members[0]]
    g.slot[new] = base
    for c in range(len(members)):
        s = members[c]
        row = g.slot[s]
        g.parent[s] = new
        for u in range(len(g.owner)):
            score, rank = g.score[row, u], g.rank[row, u] - g.cost_rank[s]
            if score > -np.inf:
                score -= g.cost[s]
            old, old_rank = g.score[base, u], g.rank[base, u]
            better = old == -np.inf or rank > old_rank or (rank == old_rank and score > old)
            if c == 0 or (score > -np.inf and better):
                g.score[base, u], g.rank[base, u], g.entry[base, u] = score, rank, g.entry[row, u]
    for u in range(len(g.owner)):
        if g.parent[g.owner[u]] == new:
            g.owner[u] = new


@kernel
def best_heads(S, single, heads):
    """The head of each vertex in the best tree, of log-weights S[vertex, head]; False if there is no tree."""
    n = len(S)
    g = _growth(S, single)
    path, length, count = np.empty(2 * n, np.int64), 0, n
    for start in range(1, n):
        if g.state[g.owner[start]] == 2:
            continue
        path[0], length = g.owner[start], 1
        g.state[path[0]] = 1
        while length:
            found = _choose(g, path[length - 1])
            if found < 0:
                return False
            if g.state[found] == 2:
                for c in range(length):
                    g.state[path[c]] = 2
                length = 0
            elif g.state[found] == 0:
                path[length] = found
                length += 1
                g.state[found] = 1
            else:
                first = length - 1
                while path[first] != found:
                    first -= 1
                _contract(g, path[first:length], count)
                path[first], length = count, first + 1
                g.state[count] = 1
                count += 1
    _expand(g, count, heads)
    at_root = 0
    for v in range(1, n):
        at_root += heads[v] == 0
    return at_root == 1 if single else True


@kernel
def _expand(g, count, heads):
    """Heads of vertices from the edges chosen for cycles: what a cycle's edge ends in drops its own."""
    replaced = np.zeros(count, np.bool_)
    for s in range(count - 1, 0, -1):
        if replaced[s]:
            continue
        v = g.tail[s]
        heads[v] = g.head[s]
        while v != s:
            replaced[v] = True
            v = g.parent[v]


@kernel
def best(graphs, values, lo, hi, heads, found):
    """The best trees of many examples, and whether there are any."""
    for b in range(lo, hi):
        n = graphs.sizes[b] + 1
        S, own = np.empty((n, n)), np.zeros(n, np.int64)
        load(graphs, values, b, -np.inf, S)
        found[b] = best_heads(S, graphs.single, own)
        start = graphs.vertices[b]
        for v in range(1, n):
            heads[start + v - 1] = own[v] if found[b] else -1
