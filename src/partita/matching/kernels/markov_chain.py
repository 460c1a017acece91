"""Markov chains over matchings: partners of two edges are exchanged."""

from __future__ import annotations

import math

import numpy as np

from ...numerics.jit import kernel


@kernel
def permutation_chain(W, columns, rows, uniforms):
    """Metropolis steps: the columns of two rows change places."""
    for t in range(len(rows)):
        i, j = rows[t]
        a, b = columns[i], columns[j]
        change = W[i, b] + W[j, a] - W[i, a] - W[j, b]
        if change >= 0.0 or uniforms[t] < math.exp(change):
            columns[i], columns[j] = b, a


@kernel
def perfect_chain(W, partners, vertices, uniforms):
    """Metropolis steps: two edges of a perfect matching are replaced by others on the same four vertices."""
    for t in range(len(vertices)):
        i, j = vertices[t]
        a, b = partners[i], partners[j]
        if a == j:
            continue
        change = W[i, j] + W[a, b] - W[i, a] - W[j, b]
        if change >= 0.0 or uniforms[t] < math.exp(change):
            partners[i], partners[j], partners[a], partners[b] = j, i, b, a


@kernel
def free_chain(W, partners, vertices, uniforms):
    """Metropolis steps of matchings that need not be perfect: an edge is added, taken away, or moved at one end."""
    for t in range(len(vertices)):
        i, j = vertices[t]
        a, b = partners[i], partners[j]
        if a == j:  # take it away
            if uniforms[t] < math.exp(min(-W[i, j], 0.0)):
                partners[i], partners[j] = -1, -1
        elif a < 0 and b < 0:
            if uniforms[t] < math.exp(min(W[i, j], 0.0)):
                partners[i], partners[j] = j, i
        elif a < 0 or b < 0:  # the edge of one of them moves to the other
            old = W[j, b] if a < 0 else W[i, a]
            if uniforms[t] < math.exp(min(W[i, j] - old, 0.0)):
                partners[b if a < 0 else a] = -1
                partners[i], partners[j] = j, i


@kernel
def edge_weights(ends, weights, W):
    """A symmetric matrix of the weights of edges, -inf where there is none."""
    W[:] = -np.inf
    for e in range(len(ends)):
        W[ends[e, 0], ends[e, 1]] = weights[e]
        W[ends[e, 1], ends[e, 0]] = weights[e]
