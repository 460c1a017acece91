"""Exact sums over b-matchings: vertex after vertex, over what the others have left to give.

A state is an integer in mixed radix, with a digit for each vertex that is not summed out yet: how many edges it has so far.
Vertices are summed out one at a time; those with a digit of their own begin with what it says. All sums are of logarithms.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp, log


class Steps(NamedTuple):
    """Vertices in the order in which they are summed out.

    Attributes
    ----------
    starts : int64 array
        Step p has the entries ``starts[p]:starts[p + 1]`` of the next three.
    edges, strides, tops : int64 arrays
        Edges of the vertex to others that are still there; the stride of the digit of the other, and its largest value.
    own, caps : int64 arrays
        Stride of the vertex's own digit (0: it has none), and how many edges it may have.
    size : int
        Number of states.
    perfect : bool
        Vertices have as many edges as they may.
    """

    starts: Any
    edges: Any
    strides: Any
    tops: Any
    own: Any
    caps: Any
    size: int
    perfect: bool


@kernel
def _add(x, y):
    """log(exp(x) + exp(y))."""
    if y > x:
        x, y = y, x
    return x if y == -np.inf else x + log(1.0 + exp(y - x))


@kernel
def _ahead(steps, p, weights, state, L):
    """L[k, c, s] is the sum over the first k edges of the vertex, c of them in the set, that lead to state s."""
    own, cap, S = steps.own[p], steps.caps[p], steps.size
    L[0] = -np.inf
    if own == 0:
        L[0, 0] = state
    else:
        for s in range(S):
            if (s // own) % (cap + 1) == 0:
                for c in range(cap + 1):
                    L[0, c, s] = state[s + c * own]
    for k in range(steps.starts[p + 1] - steps.starts[p]):
        h = steps.starts[p] + k
        w, stride, top = weights[steps.edges[h]], steps.strides[h], steps.tops[h]
        L[k + 1] = L[k]
        if w == -np.inf:
            continue
        for c in range(1, cap + 1):
            for s in range(stride, S):
                if L[k, c - 1, s - stride] > -np.inf and (s // stride) % (top + 1) > 0:
                    L[k + 1, c, s] = _add(L[k, c, s], L[k, c - 1, s - stride] + w)


@kernel
def _summed(steps, p, last, state):
    """What is left when the vertex is summed out."""
    cap = steps.caps[p]
    for s in range(steps.size):
        total = last[cap, s]
        if not steps.perfect:
            for c in range(cap):
                total = _add(total, last[c, s])
        state[s] = total


@kernel
def _forward(steps, weights, states, L):
    """states[p] has the sums before step p; returns log Z."""
    P = len(steps.caps)
    states[0] = -np.inf
    states[0, 0] = 0.0
    for p in range(P):
        _ahead(steps, p, weights, states[p], L)
        _summed(steps, p, L[steps.starts[p + 1] - steps.starts[p]], states[p + 1])
    if steps.perfect:
        return states[P, last_state(steps)]
    total = -np.inf
    for s in range(steps.size):
        total = _add(total, states[P, s])
    return total


@kernel
def last_state(steps):
    """The state in the end: all digits full, or none left."""
    return steps.size - 1 if len(steps.own) == 0 or steps.own[0] == 0 else 0


@kernel
def _backward(steps, weights, states, log_z, L, B, marginals):
    """Probabilities of edges, after `_forward`."""
    P, S = len(steps.caps), steps.size
    after = np.zeros(S)
    if steps.perfect:
        after[:] = -np.inf
        after[last_state(steps)] = 0.0
    for p in range(P - 1, -1, -1):
        own, cap = steps.own[p], steps.caps[p]
        _ahead(steps, p, weights, states[p], L)
        B[:cap] = -np.inf
        for c in range(cap if steps.perfect else 0, cap + 1):
            B[c] = after
        for k in range(steps.starts[p + 1] - steps.starts[p] - 1, -1, -1):
            h = steps.starts[p] + k
            e, stride, top = steps.edges[h], steps.strides[h], steps.tops[h]
            w, share = weights[e], 0.0
            if w == -np.inf:
                continue
            for c in range(cap):
                for s in range(S - stride):
                    if B[c + 1, s + stride] > -np.inf and (s // stride) % (top + 1) < top:
                        share += exp(min(L[k, c, s] + w + B[c + 1, s + stride] - log_z, 0.0))
                        B[c, s] = _add(B[c, s], w + B[c + 1, s + stride])
            marginals[e] += share
        after[:] = -np.inf
        if own == 0:
            after[:] = B[0]
        else:
            for s in range(S):
                if (s // own) % (cap + 1) == 0:
                    for c in range(cap + 1):
                        after[s + c * own] = B[c, s]


@kernel
def sums(steps, widest, most, weights, log_z, marginals, lo, hi):
    """log Z of the rows lo..hi of the weights, and probabilities of edges unless `marginals` has no rows.

    `widest` is the largest number of edges of a step, `most` the largest cap.
    """
    states = np.empty((len(steps.caps) + 1, steps.size))
    L, B = np.empty((widest + 1, most + 1, steps.size)), np.empty((most + 1, steps.size))
    for b in range(lo, hi):
        log_z[b] = _forward(steps, weights[b], states, L)
        if len(marginals) and log_z[b] > -np.inf:
            marginals[b] = 0.0
            _backward(steps, weights[b], states, log_z[b], L, B, marginals[b])


@kernel
def _chosen(values, uniform):
    """One of some logarithms, by its share."""
    top = -np.inf
    for value in values:
        top = max(top, value)
    total = 0.0
    for value in values:
        total += exp(value - top)
    mass, found = uniform * total, 0
    for k in range(len(values)):
        if values[k] > -np.inf:
            found = k
            mass -= exp(values[k] - top)
            if mass < 0.0:
                break
    return found


@kernel
def draw(steps, widest, most, weights, uniforms, chosen):
    """Independent b-matchings, a row of `chosen` each, all zeros before; log Z. Numbers from 0 to 1: a row has one for the
    end, then for each step one and one for each of its edges."""
    states = np.empty((len(steps.caps) + 1, steps.size))
    L = np.empty((widest + 1, most + 1, steps.size))
    log_z = _forward(steps, weights, states, L)
    if log_z == -np.inf:
        return log_z
    P, size = len(steps.caps), len(chosen)
    where = np.full(size, last_state(steps))
    if not steps.perfect:
        for d in range(size):
            where[d] = _chosen(states[P], uniforms[d, 0])
    for p in range(P - 1, -1, -1):
        first, n, cap = steps.starts[p], steps.starts[p + 1] - steps.starts[p], steps.caps[p]
        _ahead(steps, p, weights, states[p], L)
        for d in range(size):
            s, c = where[d], cap
            if not steps.perfect:
                c = _chosen(np.ascontiguousarray(L[n, : cap + 1, s]), uniforms[d, 1 + first + p])
            for k in range(n - 1, -1, -1):
                e, stride, top = steps.edges[first + k], steps.strides[first + k], steps.tops[first + k]
                if c == 0 or (s // stride) % (top + 1) == 0 or weights[e] == -np.inf:
                    continue
                share = exp(L[k, c - 1, s - stride] + weights[e] - L[k + 1, c, s])
                if uniforms[d, 2 + first + p + k] < share:
                    chosen[d, e] = 1.0
                    c -= 1
                    s -= stride
            where[d] = s + c * steps.own[p]
    return log_z
