"""Derivatives of the sums of a junction tree along a direction in its potentials.

Arrays of a tree are as in `kernels.junction_tree`. Where nothing is possible the derivative is zero.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel, sum_kernel
from .junction_tree import (
    ADDED,
    FIRST_INPUT,
    INNER,
    KIND,
    LAST_INPUT,
    RESIDUAL,
    _advance,
    _begin,
    _blocks,
    _fill,
    _scatter,
    _shares,
    _unload,
)


@sum_kernel
def _means(block, change, inner, residual):
    """change[:rows] = the mean of the changes in each row, by the probabilities in the block."""
    step = min(inner, residual)
    for j in range(inner // step):
        total = 0.0
        for i in range(j * step, (j + 1) * step):
            total += block[i] * change[i]
        change[j] = total


@kernel
def collect_tangent(cliques, axes, inputs, maps, strides, potentials, direction, lo, hi, room, messages, tangents):
    """The derivatives of the messages of the cliques lo..hi."""
    block, change = np.empty(room[0]), np.empty(room[0])
    places, digits = np.empty(room[1], np.int64), np.empty(room[2], np.int64)
    tiles, tiled = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    tiles_change, tiled_change = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    for c in range(lo, hi):
        clique = cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        _begin(clique, inputs, places, digits, tiled)
        tiled_change[: last - first] = -1
        for o in range(_blocks(clique, axes)):
            if o > 0:
                _advance(clique, axes, inputs, strides, places, digits)
            row = places[last - first]
            _fill(block, inner, inputs, first, last, places, maps, potentials, messages, tiles, tiled)
            _fill(change, inner, inputs, first, last, places, maps, direction, tangents, tiles_change, tiled_change)
            _shares(block, inner, residual, messages[row])
            _means(block, change, inner, residual)
            again = clique[ADDED] or o * inner % residual > 0  # a row may take several blocks
            for j in range(max(1, inner // residual)):
                tangents[row + j] = tangents[row + j] + change[j] if again else change[j]


@sum_kernel
def _changes(block, change, inner, residual, row, tangents, beliefs, shifts):
    """Turn the changes of the sums of a block into those of its probabilities."""
    step = min(inner, residual)
    for j in range(inner // step):
        mean = 0.0
        if residual > inner:
            mean = tangents[row]
        else:
            for i in range(j * step, (j + 1) * step):
                mean += block[i] * change[i]
        b, moved = beliefs[row + j], shifts[row + j]
        for i in range(j * step, (j + 1) * step):
            change[i] = block[i] * (moved + b * (change[i] - mean))


@kernel
def distribute_tangent(
    cliques, axes, inputs, maps, strides, potentials, direction, lo, hi, room, messages, tangents, beliefs, shifts, product
):
    """Add the derivatives of probabilities of separators and factors to `shifts` and `product`, after `collect_tangent`.

    `shifts` are zero at the beginning. Beliefs are where the messages are.
    """
    block, change = np.empty(room[0]), np.empty(room[0])
    places, digits = np.empty(room[1], np.int64), np.empty(room[2], np.int64)
    tiles, tiled = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    tiles_change, tiled_change = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    heaps, heaped = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    for c in range(hi - 1, lo - 1, -1):
        clique = cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        _begin(clique, inputs, places, digits, tiled)
        tiled_change[: last - first] = -1
        heaped[: last - first] = -1
        for o in range(_blocks(clique, axes)):
            if o > 0:
                _advance(clique, axes, inputs, strides, places, digits)
            row = places[last - first]
            _fill(block, inner, inputs, first, last, places, maps, potentials, messages, tiles, tiled)
            _fill(change, inner, inputs, first, last, places, maps, direction, tangents, tiles_change, tiled_change)
            _shares(block, inner, residual, messages[row])
            _changes(block, change, inner, residual, row, tangents, beliefs, shifts)
            for k in range(first, last):
                target = shifts if inputs[k, KIND] else product
                _scatter(change, inner, inputs[k], maps, places[k - first], target, heaps, heaped, k - first)
        for k in range(first, last):
            _unload(inputs[k], maps, shifts if inputs[k, KIND] else product, heaps, heaped, k - first)
