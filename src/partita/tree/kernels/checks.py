"""Whether sets of edges, or heads of vertices, are trees: a code for each example."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel

#: What a tree is, and what is wrong with other things.
TREE, NOT_BINARY, INTO_ROOT, COUNT, HEADS, CYCLE, ROOT_EDGES = range(7)


@kernel
def _find(leader, v):
    while leader[v] != v:
        leader[v] = leader[leader[v]]
        v = leader[v]
    return v


@kernel
def _edges(graphs, chosen, b):
    n = graphs.sizes[b] + 1
    start, template = graphs.starts[b], graphs.templates[b]
    leader, used = np.arange(n), np.zeros(n, np.int64)
    count, at_root, cycle = 0, 0, False
    for e in range(graphs.starts[b + 1] - start):
        y = chosen[start + e]
        if y != 0 and y != 1:
            return NOT_BINARY
        if y:
            i, j = graphs.rows[template + e], graphs.columns[template + e]
            if i == 0:
                return INTO_ROOT
            used[i] += 1
            count += 1
            at_root += j == 0
            one, other = _find(leader, i), _find(leader, j)
            cycle = cycle or one == other
            leader[one] = other
    if count != n - 1:
        return COUNT
    if not graphs.undirected and used.max() > 1:
        return HEADS
    if cycle:
        return CYCLE
    return ROOT_EDGES if graphs.single and at_root != 1 else TREE


@kernel
def edge_sets(graphs, chosen, lo, hi, codes):
    """Of zeros and ones for edges."""
    for b in range(lo, hi):
        codes[b] = _edges(graphs, chosen, b)


@kernel
def head_vectors(vertices, heads, single, lo, hi, codes):
    """Of heads of the vertices 1, 2, ... of each example, which are from 0, the root, to their number."""
    for b in range(lo, hi):
        n = vertices[b + 1] - vertices[b] + 1
        own = heads[vertices[b] : vertices[b + 1]]
        leader = np.arange(n)
        at_root, cycle = 0, False
        for v in range(1, n):
            h = own[v - 1]
            at_root += h == 0
            one, other = _find(leader, v), _find(leader, h)
            cycle = cycle or one == other
            leader[one] = other
        codes[b] = CYCLE if cycle else ROOT_EDGES if single and at_root != 1 else TREE
