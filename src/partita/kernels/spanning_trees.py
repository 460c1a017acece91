"""Random spanning trees of graphs, and random sets of tables without cycles."""

from __future__ import annotations

import numpy as np

from ._jit import kernel


@kernel
def _next(state):
    """A step of splitmix64: the new state, and 64 random bits."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    z = state
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state, z ^ (z >> np.uint64(31))


@kernel
def wilson(starts, members, pairs, seed, counts):
    """Add one to the counts of the pairs of a uniform spanning tree (of each component), by loop-erased random walks.

    Member 2 e is the first and 2 e + 1 the second end of pair e; each variable has members[starts[i]:starts[i + 1]].
    """
    n = len(starts) - 1
    state = np.uint64(seed)
    done = np.zeros(n, np.bool_)
    exit_ = np.full(n, -1, np.int64)
    # a root for each component, by walking over it
    stack = np.empty(n, np.int64)
    seen = np.zeros(n, np.bool_)
    for root in range(n):
        if seen[root]:
            continue
        done[root] = True
        seen[root] = True
        stack[0] = root
        top = 1
        while top > 0:
            top -= 1
            i = stack[top]
            for k in range(starts[i], starts[i + 1]):
                j = pairs[members[k] ^ 1]
                if not seen[j]:
                    seen[j] = True
                    stack[top] = j
                    top += 1
    for first in range(n):
        i = first
        while not done[i]:
            state, bits = _next(state)
            e = members[starts[i] + np.int64(bits % np.uint64(starts[i + 1] - starts[i]))]
            exit_[i] = e
            i = pairs[e ^ 1]
        i = first
        while not done[i]:
            done[i] = True
            counts[exit_[i] // 2] += 1
            i = pairs[exit_[i] ^ 1]


@kernel
def _find(parent, i):
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def acyclic_set(fac_ptr, edge_var, order, parent, counts):
    """Take tables in order unless two of their variables are joined already; add one to the counts of those taken."""
    for i in range(len(parent)):
        parent[i] = i
    for f in order:
        a, b = fac_ptr[f], fac_ptr[f + 1]
        free = True
        for e in range(a, b):
            for g in range(a, e):
                if _find(parent, edge_var[e]) == _find(parent, edge_var[g]):
                    free = False
                    break
            if not free:
                break
        if free:
            root = _find(parent, edge_var[a])
            for e in range(a + 1, b):
                parent[_find(parent, edge_var[e])] = root
            counts[f] += 1
