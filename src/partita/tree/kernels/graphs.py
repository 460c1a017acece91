"""What every kernel is given: graphs as index arrays, and log-weights of edges as square matrices."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp
from .extended import exponential, two_sum


class Graphs(NamedTuple):
    """The graphs of many examples. Within an example the root is 0 and the other vertices are 1, 2, ...

    Attributes
    ----------
    sizes : int array
        Vertices of each example beside the root.
    starts, vertices : int arrays
        Where the edges, and the vertices beside the root, of each example begin, and where the last end.
    templates : int array
        Where the edges of an example begin among `rows` and `columns`: examples on one graph share them.
    rows, columns : int arrays
        The two ends of each edge. Of a directed edge the row is the dependent and the column its head. Of an undirected one
        the row is not the root. Row 0 is an edge into the root, which is in no tree.
    undirected, single : bool
        Whether edges go both ways, and whether trees have one edge at the root only.
    """

    sizes: np.ndarray
    starts: np.ndarray
    vertices: np.ndarray
    templates: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    undirected: bool
    single: bool


@kernel
def load(graphs, values, b, fill, S):
    """Numbers of the edges of example b as a matrix: the row is a vertex, the column its head."""
    S[:] = fill
    start, template = graphs.starts[b], graphs.templates[b]
    for e in range(graphs.starts[b + 1] - start):
        i, j = graphs.rows[template + e], graphs.columns[template + e]
        S[i, j] = values[start + e]
        if graphs.undirected and j > 0:
            S[j, i] = values[start + e]


@kernel
def store(graphs, M, b, values):
    """The way back: for undirected edges, the sum of both directions."""
    start, template = graphs.starts[b], graphs.templates[b]
    for e in range(graphs.starts[b + 1] - start):
        i, j = graphs.rows[template + e], graphs.columns[template + e]
        value = M[i, j]
        if graphs.undirected and j > 0:
            value += M[j, i]
        values[start + e] = value


@kernel
def _largest(row, first):
    top = -np.inf
    for j in range(first, len(row)):
        top = max(top, row[j])
    return top


@kernel
def _exponentials(row, top, first, out):
    """out = exp(row - top), right to the last digit however large both are; returns the sum."""
    total = 0.0
    for j in range(first, len(row)):
        out[j] = 0.0
        if row[j] > -np.inf:
            s, error = two_sum(row[j], -top)
            out[j] = exp(s) * (1.0 + error)
            total += out[j]
    return total


@kernel
def weigh(S, single, W):
    """Weights of which every row sums to one; returns the log of what trees were divided by, as a sum of two numbers.

    With `single` the heads beside the root sum to one, and the largest weight of the root is one before that division; a
    vertex with no such head gives NaN: these sums cannot tell. -inf says that there is no tree.
    """
    n = len(S)
    scale, lost = 0.0, 0.0
    reach = -np.inf  # how far the root's log-weights are above the largest of their rows
    W[0] = 0.0
    for i in range(1, n):
        top = _largest(S[i], 1 if single else 0)
        if top == -np.inf:
            return np.nan if single and S[i, 0] > -np.inf else -np.inf, 0.0
        total = _exponentials(S[i], top, 1 if single else 0, W[i])
        for j in range(n):
            W[i, j] /= total
        if single:
            W[i, 0] = total
            reach = max(reach, S[i, 0] - top)
        scale, error = two_sum(scale, top)
        lost += error + math.log(total)
    if not single:
        return scale, lost
    if reach == -np.inf:
        return -np.inf, 0.0
    for i in range(1, n):
        total = W[i, 0]
        W[i, 0] = 0.0
        if S[i, 0] > -np.inf:
            s, error = two_sum(S[i, 0], -_largest(S[i], 1))
            r, more = two_sum(s, -reach)
            W[i, 0] = exp(r) * (1.0 + (error + more)) / total
    scale, error = two_sum(scale, reach)
    return scale, lost + error


@kernel
def weigh_extended(S, single, W, X):
    """Weights as mantissas and exponents, each row divided by its largest: the log of what trees were divided by, as a sum
    of two numbers, and the exponent by which weights of the root are lower.

    With `single` that is more than any two trees can differ by: only those with as few edges at the root as can be count.
    """
    n = len(S)
    scale, lost, deepest = 0.0, 0.0, 0.0
    W[:] = 0.0
    X[:] = 0.0
    for i in range(1, n):
        top = _largest(S[i], 0)
        if top == -np.inf:
            return -np.inf, 0.0, 0.0
        for j in range(n):
            if S[i, j] > -np.inf:
                s, error = two_sum(S[i, j], -top)
                W[i, j], _, X[i, j] = exponential(s, error)
                deepest = min(deepest, X[i, j])
        scale, error = two_sum(scale, top)
        lost += error
    depth = 0.0
    if single:
        depth = 8.0 * n * (8.0 - deepest)
        X[1:, 0] -= depth
    return scale, lost, depth


@kernel
def tilt(V, W, T):
    """Derivatives of weights along log-weights V: T = W (V - their mean in the row), which changes no probability."""
    n = len(W)
    for i in range(1, n):
        mean, total = 0.0, 0.0
        for j in range(n):
            mean += W[i, j] * V[i, j]
            total += W[i, j]
        mean /= total
        for j in range(n):
            T[i, j] = W[i, j] * (V[i, j] - mean)
