"""Sums over the trees of many examples: ``lo..hi`` of them."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from .elimination import head_probabilities, log_determinant, workspace
from .extended import summed
from .graphs import load, store, tilt, weigh, weigh_extended


@kernel
def log_partitions(graphs, values, lo, hi, log_z):
    """log Z of each; returns how many were too far apart for doubles."""
    hard = 0
    for b in range(lo, hi):
        n = graphs.sizes[b] + 1
        S = np.empty((n, n))
        load(graphs, values, b, -np.inf, S)
        work = workspace(n, graphs.single, False, False)
        log_z[b], rest = weigh(S, graphs.single, work.given.m)
        if log_z[b] > -np.inf:
            high, low = log_determinant(work, 0.0)
            log_z[b] = summed(log_z[b], rest, high, low)
        if np.isnan(log_z[b]):
            hard += 1
            wide = workspace(n, graphs.single, False, True)
            log_z[b], rest, depth = weigh_extended(S, graphs.single, wide.given.m, wide.given.e)
            if log_z[b] > -np.inf:
                high, low = log_determinant(wide, depth)
                log_z[b] = summed(log_z[b], rest, high, low)
    return hard


@kernel
def head_matrix(S, V, single, M, dM):
    """log Z of one example, the probability M[d, h] of each head h of d, its derivative dM along V (if V has entries), and
    whether weights were too far apart for doubles."""
    n, tangent = len(S), len(V) > 0
    work = workspace(n, single, tangent, False)
    log_z, rest = weigh(S, single, work.given.m)
    if log_z > -np.inf:
        if tangent:
            tilt(V, work.given.m, work.given.t)
        high, low = head_probabilities(work, 0.0, M, dM)
        log_z = summed(log_z, rest, high, low)
    if not np.isnan(log_z):
        return log_z, False
    wide = workspace(n, single, True, True)
    log_z, rest, depth = weigh_extended(S, single, wide.given.m, wide.given.e)
    if log_z > -np.inf:
        if tangent:
            tilt(V, wide.given.m, wide.given.t)
        high, low = head_probabilities(wide, depth, M, dM)
        log_z = summed(log_z, rest, high, low)
    return log_z, True


@kernel
def infer(graphs, values, direction, lo, hi, log_z, marginals, products):
    """log Z and probabilities of edges, and if `direction` has entries the derivatives of the latter along it; returns how
    many were too far apart for doubles. Where log Z is -inf, the rest is nothing."""
    hard = 0
    for b in range(lo, hi):
        n = graphs.sizes[b] + 1
        S, M, dM = np.empty((n, n)), np.empty((n, n)), np.empty((n, n))
        load(graphs, values, b, -np.inf, S)
        V = np.empty((n, n) if len(direction) else (0, 0))
        if len(direction):
            load(graphs, direction, b, 0.0, V)
        log_z[b], wide = head_matrix(S, V, graphs.single, M, dM)
        hard += wide
        store(graphs, M, b, marginals)
        if len(direction):
            store(graphs, dM, b, products)
    return hard
