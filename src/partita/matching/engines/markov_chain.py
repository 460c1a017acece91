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
    n = structure.left or structure.n_vertices
    given = weights.reshape(n, n) if structure.left else weights
    start = np.array(structure.argmax(given)[0])
    if structure.left:
        W, step = np.ascontiguousarray(given), kernels.permutation_chain
    else:
        W = np.empty((n, n))
        kernels.edge_weights(structure.ends, weights, W)
        step = kernels.perfect_chain if structure.perfect else kernels.free_chain
    out = np.empty((size, len(start)), np.int64)
    moves = 10 * n
    for draw in range(-burn_in, size * thinning):
        if n > 1:
            first = rng.integers(0, n, moves)
            pairs = np.column_stack([first, (first + rng.integers(1, n, moves)) % n])
            step(W, start, pairs, rng.random(moves))
        if draw >= 0 and draw % thinning == thinning - 1:
            out[draw // thinning] = start
    return out
