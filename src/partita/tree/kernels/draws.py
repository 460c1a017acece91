"""Trees drawn at random, exactly: by Wilson's loop-erased walks, or where those take too long by sums.

Randomness is counted, not streamed: the number of the draw and of the step number the draws, so that no order of work
changes them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.jit import kernel
from .elimination import Numbers, begin, eliminate, heads_extended, substitute, workspace
from .extended import add
from .graphs import load, weigh, weigh_extended
from .sums import head_matrix


@kernel
def uniform(seed, counter):
    """A number in [0, 1) from a seed and a counter (two rounds of splitmix64's mixing)."""
    z = np.uint64(seed) + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    z = z ^ (z >> np.uint64(32))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@kernel
def _pick(sums, share):
    """The first entry whose cumulative sum is above a share of the last; -1 if there is none."""
    r = share * sums[-1]
    lo, hi = 0, len(sums)
    while lo < hi:
        mid = (lo + hi) // 2
        if sums[mid] > r:
            hi = mid
        else:
            lo = mid + 1
    return lo if lo < len(sums) else -1


@kernel
def walk(sums, target, seed, counter, limit, heads):
    """Wilson's algorithm: walks along heads, drawn by cumulative weights, until they come to the tree that grows from
    `target`. False if all together would take more than `limit` steps.

    To give up is no bias: how many steps there are is independent of the tree that comes out (Propp and Wilson, 1998).
    """
    n = len(sums)
    reached = np.zeros(n, np.bool_)
    reached[target] = True
    steps = 0
    for v in range(1, n):
        u = v
        while not reached[u]:
            h = _pick(sums[u], uniform(seed, counter + np.uint64(steps)))
            steps += 1
            if h < 0 or steps > limit:
                return False
            heads[u] = h
            u = h
        u = v
        while not reached[u]:
            reached[u] = True
            u = heads[u]
    return True


@kernel
def _escapes(given, reached, passed, x):
    """x(h) of every vertex h: the probability that a walk from h comes to one that is reached before one that is passed."""
    others = np.flatnonzero(~(reached | passed))
    work = workspace(len(others) + 2, False, True, True)
    W, X = work.given.m, work.given.e
    for i in range(len(others)):
        for j in range(len(reached)):
            if reached[j] or passed[j]:
                c = 0 if reached[j] else 1
                m, e = given.m[others[i], j], given.e[others[i], j]
                W[i + 2, c], _, X[i + 2, c] = add(W[i + 2, c], 0.0, X[i + 2, c], m, 0.0, e)
        for j in range(len(others)):
            W[i + 2, j + 2], X[i + 2, j + 2] = given.m[others[i], others[j]], given.e[others[i], others[j]]
    begin(work)
    for c in range(len(others)):
        k = len(others) + 1 - c
        work.order[0, c], work.order[1, c], work.order[2, c] = k, 1, k
    eliminate(work, 0, len(others))
    substitute(work, 1, len(others))
    for j in range(len(reached)):
        x.m[j], x.e[j] = 1.0 if reached[j] else 0.0, 0.0
    for i in range(len(others)):
        x.m[others[i]], x.e[others[i]] = work.x.m[i + 2], work.x.e[i + 2]


@kernel
def walk_by_sums(given, target, seed, counter, heads):
    """The same walks without their loops; False if there is no tree.

    They go from u to h with probability proportional to ``w(u, h) x(h)``, where x is the probability to come to the tree
    before the path that led to u. Each step takes an elimination.
    """
    n = len(given.m)
    reached, passed = np.zeros(n, np.bool_), np.zeros(n, np.bool_)
    reached[target] = True
    reached[0] = True  # never a vertex to begin from
    x, share, slopes = Numbers(np.zeros(n), np.zeros(n), np.zeros(n)), np.zeros(n), np.zeros(n)
    steps = 0
    for v in range(1, n):
        u = v
        while not reached[u]:
            passed[u] = True
            _escapes(given, reached, passed, x)
            if not heads_extended(given, x, u, share, slopes):
                return False
            h = _pick(np.cumsum(share), uniform(seed, counter + np.uint64(steps)))
            steps += 1
            heads[u] = h
            u = h
        reached |= passed
        passed[:] = False
    return True


class Tables(NamedTuple):
    """What draws from one example take.

    Attributes
    ----------
    sums : array
        Cumulative weights of the heads of each vertex. Without entries, walks are not even tried.
    wide : Numbers
        The weights themselves.
    roots : array
        With one edge at the root only, cumulative probabilities of the vertices to have it; else no entries.
    """

    sums: np.ndarray
    wide: Numbers
    roots: np.ndarray


@kernel
def prepare(graphs, values, b):
    """The tables of example b."""
    n = graphs.sizes[b] + 1
    S, W, single = np.empty((n, n)), np.zeros((n, n)), graphs.single
    load(graphs, values, b, -np.inf, S)
    wide = Numbers(np.zeros((n, n)), np.zeros((n, n)), np.zeros((n, n)))
    weigh_extended(S, False, wide.m, wide.e)
    usable = np.isfinite(weigh(S, single, W)[0])
    roots = np.empty(0)
    if single:
        M, dM = np.empty((n, n)), np.empty((n, n))
        head_matrix(S, np.empty((0, 0)), True, M, dM)
        roots = np.cumsum(M[:, 0])
        W[:, 0] = 0.0
        wide.m[:, 0] = 0.0
        wide.e[:, 0] = 0.0
    for j in range(1, n):
        W[:, j] += W[:, j - 1]
    return Tables(W if usable else np.empty((0, 0)), wide, roots)


@kernel
def draw(tables, seed, counter, limit, heads):
    """One tree; False if there is none. It uses at most ``limit + n + 2`` numbers of the counter."""
    target = 0
    if len(tables.roots):
        target = _pick(tables.roots, uniform(seed, counter))
        if target < 0:
            return False
        heads[target] = 0
    if len(tables.sums) and walk(tables.sums, target, seed, counter + np.uint64(1), limit, heads):
        return True
    return walk_by_sums(tables.wide, target, seed, counter + np.uint64(limit + 2), heads)


@kernel
def sample(graphs, values, seed, limit, lo, hi, heads):
    """Draws lo..hi, counted example by example, `heads` having a row for each draw of all; returns how many failed."""
    size, failed, now = len(heads), 0, -1
    stride = np.uint64(limit + graphs.sizes.max() + 4)
    tables = prepare(graphs, values, lo // size)
    for q in range(lo, hi):
        b = q // size
        if b != now:
            tables, now = prepare(graphs, values, b), b
        start = graphs.vertices[b]
        own = np.zeros(graphs.sizes[b] + 1, np.int64)
        failed += not draw(tables, seed, np.uint64(q) * stride, limit, own)
        heads[q - b * size, start : start + len(own) - 1] = own[1:]
    return failed
