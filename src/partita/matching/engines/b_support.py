"""Which edges can be in some b-matching and out of another, and what the others are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import connected_components, maximum_flow

from ...core.results import IntArray


def degree_support(ends: IntArray, b: IntArray, left: int) -> tuple[Any, Any] | None:
    """The edges whose shares differ between solutions in which vertices have b edges, and the shares of the others; None if
    there is no solution.

    Solutions are flows from one side to the other. On graphs without sides they are those of the graph that has every vertex
    twice, where shares may be halves. From one flow come all others by cycles along which it can change: an edge is free if
    its ends are in one strongly connected component of those.
    """
    n, m = len(b), len(ends)
    if not m:
        return None if b.any() else (np.zeros(0, bool), np.zeros(0, bool))
    if left:
        tails, heads, need = ends[:, 0], ends[:, 1], b
        sources, sinks = np.arange(left), np.arange(left, n)
    else:
        tails, heads = np.concatenate([ends[:, 0], ends[:, 1]]), n + np.concatenate([ends[:, 1], ends[:, 0]])
        need, sources, sinks = np.concatenate([b, b]), np.arange(n), np.arange(n, 2 * n)
    size = len(need)
    if need[sources].sum() != need[sinks].sum():
        return None
    rows = np.concatenate([tails, np.full(len(sources), size), sinks])
    columns = np.concatenate([heads, sources, np.full(len(sinks), size + 1)])
    room = np.concatenate([np.ones(len(tails)), need[sources], need[sinks]]).astype(np.int32)
    network = sp.csr_matrix((room, (rows, columns)), shape=(size + 2, size + 2))
    network.indices, network.indptr = network.indices.astype(np.int32), network.indptr.astype(np.int32)
    found: Any = maximum_flow(network, size, size + 1)
    if found.flow_value < need[sources].sum():
        return None
    used = np.asarray(found.flow[tails, heads]).ravel() > 0
    back = sp.csr_array(
        (np.ones(len(tails), np.int8), (np.where(used, heads, tails), np.where(used, tails, heads))), shape=(size, size)
    )
    _, part = connected_components(back, directed=True, connection="strong")
    free = part[tails] == part[heads]
    return (free, used) if left else (free[:m] | free[m:], used[:m])
