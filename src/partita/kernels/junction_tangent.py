"""Derivatives of the sums of a junction tree along a direction in its potentials.

Arrays of a tree are as in `kernels.junction`. Where nothing is possible the derivative is zero.
"""

from __future__ import annotations

import numpy as np

from ._jit import kernel, sum_kernel
from ._math import exp
from .junction import (
    FIRST_INPUT,
    FORM,
    INNER,
    KIND,
    LAST_INPUT,
    MAP,
    MESSAGE,
    RESIDUAL,
    _advance,
    _begin,
    _blocks,
    _fill,
    _scatter,
)


@sum_kernel
def _mean(block, change, lo, hi, up):
    """The sum of exp(block - up) times the change."""
    if up == -np.inf:
        return 0.0
    total = 0.0
    for i in range(lo, hi):
        total += exp(block[i] - up) * change[i]
    return total


@kernel
def collect_tangent(cliques, axes, inputs, maps, strides, potentials, direction, lo, hi, room, messages, tangents):
    """The derivatives of the messages of the cliques lo..hi."""
    block, change = np.empty(room[0]), np.empty(room[0])
    places, digits = np.empty(room[1], np.int64), np.empty(room[2], np.int64)
    for c in range(lo, hi):
        clique = cliques[c]
        inner, residual, place = clique[INNER], clique[RESIDUAL], clique[MESSAGE]
        rows = inner // residual
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        _begin(clique, inputs, places, digits)
        for o in range(_blocks(clique, axes)):
            if o > 0:
                _advance(clique, axes, inputs, strides, places, digits)
            _fill(block, 0, inner, inputs, first, last, places, maps, potentials, messages)
            _fill(change, 0, inner, inputs, first, last, places, maps, direction, tangents)
            if rows == 0:  # a row takes several blocks
                row = place + o * inner // residual
                part = _mean(block, change, 0, inner, messages[row])
                tangents[row] = part if o * inner % residual == 0 else tangents[row] + part
            else:
                for j in range(rows):
                    row = place + o * rows + j
                    tangents[row] = _mean(block, change, j * residual, (j + 1) * residual, messages[row])


@sum_kernel
def _changes(block, change, inner, residual, row, messages, tangents, beliefs, shifts):
    """Turn the changes of the sums of a block into those of its probabilities."""
    step = min(inner, residual)
    for j in range(inner // step):
        b, up, shift, moved = beliefs[row + j], messages[row + j], tangents[row + j], shifts[row + j]
        live = up > -np.inf
        for i in range(j * step, (j + 1) * step):
            change[i] = exp(block[i] - up) * (moved + b * (change[i] - shift)) if live else 0.0


@kernel
def distribute_tangent(
    cliques, axes, inputs, maps, strides, potentials, direction, lo, hi, room, messages, tangents, beliefs, shifts, product
):
    """Add the derivatives of probabilities of separators and factors to `shifts` and `product`, after `collect_tangent`.

    `shifts` are zero at the beginning.
    """
    block, change = np.empty(room[0]), np.empty(room[0])
    places, digits = np.empty(room[1], np.int64), np.empty(room[2], np.int64)
    for c in range(hi - 1, lo - 1, -1):
        clique = cliques[c]
        inner, residual, place = clique[INNER], clique[RESIDUAL], clique[MESSAGE]
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        _begin(clique, inputs, places, digits)
        for o in range(_blocks(clique, axes)):
            if o > 0:
                _advance(clique, axes, inputs, strides, places, digits)
            _fill(block, 0, inner, inputs, first, last, places, maps, potentials, messages)
            _fill(change, 0, inner, inputs, first, last, places, maps, direction, tangents)
            row = place + o * inner // residual
            _changes(block, change, inner, residual, row, messages, tangents, beliefs, shifts)
            for k in range(first, last):
                target = shifts if inputs[k, KIND] else product
                _scatter(change, inner, target, places[k - first], inputs[k, FORM], maps, inputs[k, MAP])
