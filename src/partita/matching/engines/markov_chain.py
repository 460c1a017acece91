"""Matchings drawn by a Markov chain, where sums over all of them are out of reach."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...core.validation import check_count
from ..kernels import markov_chain as kernels


def matching_chain(
    structure: Any,
    weights: FloatArray,
    size: int,
    rng: np.random.Generator,
    burn_in: int = 200,
    thinning: int = 10,
) -> IntArray:
    """Matchings, one after every `thinning` sweeps of a Metropolis chain that begins at the best one. A sweep has ten steps
    for each vertex.

    Neighbours in the sample are not independent, and where many edges are forbidden the chain may not reach all matchings.
    """
    check_count("burn_in", burn_in)
    check_count("thinning", thinning, minimum=1)
    if structure.left and structure.is_padded:
        found = matching_chain(structure.padded, structure.pad(weights[None])[0], size, rng, burn_in, thinning)
        found = found[:, : structure.n]
        return np.where(found < structure.m, found, -1)
    two_sided = structure.left and structure.perfect
    n = structure.left if two_sided else structure.n_vertices
    start = structure.best(weights[None])[0].copy()
    structure.check_possible(structure.score_of(weights[None], start))
    if two_sided:
        W, step = np.ascontiguousarray(weights.reshape(n, n)), kernels.permutation_chain
    else:
        W = np.empty((n, n))
        kernels.edge_weights(structure.ends, weights, W)
        step = kernels.perfect_chain if structure.perfect else kernels.free_chain
        start = _partners(start, structure) if structure.left else start
    out = np.empty((size, structure.left or n), np.int64)
    moves = 10 * n
    for draw in range(-burn_in, size * thinning):
        if n > 1:
            first = rng.integers(0, n, moves)
            pairs = np.column_stack([first, (first + rng.integers(1, n, moves)) % n])
            step(W, start, pairs, rng.random(moves))
        if draw >= 0 and draw % thinning == thinning - 1:
            out[draw // thinning] = start[: out.shape[1]]
    return np.where(out >= 0, out - structure.left, -1) if structure.left and not two_sided else out


def _partners(columns: IntArray, structure: Any) -> IntArray:
    """The partners of all vertices of a graph with two sides, from the columns of its rows."""
    out = np.full(structure.n_vertices, -1, np.int64)
    rows = np.flatnonzero(columns >= 0)
    out[rows], out[structure.left + columns[rows]] = structure.left + columns[rows], rows
    return out
