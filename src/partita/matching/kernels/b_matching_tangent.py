"""Derivatives of exact marginals of b-matchings along a direction of the weights: products with the covariance of edges.

The sums of `b_matching`, in the same order, each with its derivative beside it: T holds those of L, and so on.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp, log
from .b_matching import last_state


@kernel
def _add(x, dx, y, dy):
    """log(exp(x) + exp(y)) and its derivative."""
    if y > x:
        x, y, dx, dy = y, x, dy, dx
    if y == -np.inf:
        return x, dx
    r = exp(y - x)
    return x + log(1.0 + r), dx + (dy - dx) * r / (1.0 + r)


@kernel
def _ahead(steps, p, weights, along, state, moved, L, T):
    """L[k, c, s] is the sum over the first k edges of the vertex, c of them in the set, that lead to state s."""
    own, cap, S = steps.own[p], steps.caps[p], steps.size
    L[0], T[0] = -np.inf, 0.0
    if own == 0:
        L[0, 0], T[0, 0] = state, moved
    else:
        for s in range(S):
            if (s // own) % (cap + 1) == 0:
                for c in range(cap + 1):
                    L[0, c, s], T[0, c, s] = state[s + c * own], moved[s + c * own]
    for k in range(steps.starts[p + 1] - steps.starts[p]):
        h = steps.starts[p] + k
        e, stride, top = steps.edges[h], steps.strides[h], steps.tops[h]
        L[k + 1], T[k + 1] = L[k], T[k]
        if weights[e] == -np.inf:
            continue
        for c in range(1, cap + 1):
            for s in range(stride, S):
                if L[k, c - 1, s - stride] > -np.inf and (s // stride) % (top + 1) > 0:
                    more, change = L[k, c - 1, s - stride] + weights[e], T[k, c - 1, s - stride] + along[e]
                    L[k + 1, c, s], T[k + 1, c, s] = _add(L[k, c, s], T[k, c, s], more, change)


@kernel
def _forward(steps, weights, along, states, changes, L, T):
    """states[p] has the sums before step p; returns log Z and its derivative."""
    P, size = len(steps.caps), steps.size
    states[0], changes[0] = -np.inf, 0.0
    states[0, 0] = 0.0
    for p in range(P):
        _ahead(steps, p, weights, along, states[p], changes[p], L, T)
        n, cap = steps.starts[p + 1] - steps.starts[p], steps.caps[p]
        for s in range(size):
            total, change = L[n, cap, s], T[n, cap, s]
            if not steps.perfect:
                for c in range(cap):
                    total, change = _add(total, change, L[n, c, s], T[n, c, s])
            states[p + 1, s], changes[p + 1, s] = total, change
    if steps.perfect:
        return states[P, last_state(steps)], changes[P, last_state(steps)]
    total, change = -np.inf, 0.0
    for s in range(size):
        total, change = _add(total, change, states[P, s], changes[P, s])
    return total, change


@kernel
def _edge(steps, p, k, weights, along, total, L, T, B, D):
    """The derivative of the probability of edge k of a step; B, and D beside it, go on to what comes before the edge."""
    cap, S, h = steps.caps[p], steps.size, steps.starts[p] + k
    stride, top = steps.strides[h], steps.tops[h]
    w, dw = weights[steps.edges[h]], along[steps.edges[h]]
    log_z, dlog_z = total
    out = 0.0
    for c in range(cap):
        for s in range(S - stride):
            if B[c + 1, s + stride] > -np.inf and (s // stride) % (top + 1) < top:
                more, change = w + B[c + 1, s + stride], dw + D[c + 1, s + stride]
                if L[k, c, s] > -np.inf:
                    out += exp(min(L[k, c, s] + more - log_z, 0.0)) * (T[k, c, s] + change - dlog_z)
                B[c, s], D[c, s] = _add(B[c, s], D[c, s], more, change)
    return out


@kernel
def _backward(steps, weights, along, states, changes, total, L, T, B, D, out):
    """Derivatives of the probabilities of edges, after `_forward`."""
    P, S = len(steps.caps), steps.size
    after, then = np.zeros(S), np.zeros(S)
    if steps.perfect:
        after[:] = -np.inf
        after[last_state(steps)] = 0.0
    for p in range(P - 1, -1, -1):
        own, cap = steps.own[p], steps.caps[p]
        _ahead(steps, p, weights, along, states[p], changes[p], L, T)
        B[:cap], D[:cap] = -np.inf, 0.0
        for c in range(cap if steps.perfect else 0, cap + 1):
            B[c], D[c] = after, then
        for k in range(steps.starts[p + 1] - steps.starts[p] - 1, -1, -1):
            e = steps.edges[steps.starts[p] + k]
            if weights[e] > -np.inf:
                out[e] += _edge(steps, p, k, weights, along, total, L, T, B, D)
        if own == 0:
            after[:], then[:] = B[0], D[0]
            continue
        after[:], then[:] = -np.inf, 0.0
        for s in range(S):
            if (s // own) % (cap + 1) == 0:
                for c in range(cap + 1):
                    after[s + c * own], then[s + c * own] = B[c, s], D[c, s]


@kernel
def covariances(steps, widest, most, weights, directions, out, lo, hi):
    """Of the rows lo..hi; `widest` and `most` are those of `b_matching.sums`."""
    states = np.empty((len(steps.caps) + 1, steps.size))
    L, B = np.empty((widest + 1, most + 1, steps.size)), np.empty((most + 1, steps.size))
    changes, T, D = np.empty_like(states), np.empty_like(L), np.empty_like(B)
    for b in range(lo, hi):
        total = _forward(steps, weights[b], directions[b], states, changes, L, T)
        out[b] = 0.0
        if total[0] > -np.inf:
            _backward(steps, weights[b], directions[b], states, changes, total, L, T, B, D, out[b])
