"""Blocks of the cliques of a junction tree: going from one to the next, reading their inputs, writing to their targets.

Tuples of arrays, and what a block of a clique is, are those of `clique_layout`.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import step, sum_in_place, sum_kernel
from ...numerics.math import exp
from .clique_layout import (
    FIRST_AXIS,
    FIRST_INPUT,
    FORM,
    GATHER,
    INNER,
    KIND,
    LAST_AXIS,
    LAST_INPUT,
    MAP,
    OFFSET,
    ONE,
    PERIOD,
    RUN,
    STRIDE,
)


@step
def begin(tree, clique, cursor):
    """Go to the first block of a clique."""
    for a in range(clique[LAST_AXIS] - clique[FIRST_AXIS]):
        cursor.states[a] = 0
    for k in range(clique[FIRST_INPUT], clique[LAST_INPUT] + 1):
        cursor.offsets[k - clique[FIRST_INPUT]] = tree.inputs[k, OFFSET]


@step
def advance(tree, clique, cursor):
    """Go to the next block: the outer axes count like an odometer."""
    axes, states = tree.axes, cursor.states
    first, n = clique[FIRST_AXIS], clique[LAST_AXIS] - clique[FIRST_AXIS]
    lo, hi = clique[FIRST_INPUT], clique[LAST_INPUT] + 1
    a = n - 1
    while a >= 0:
        states[a] += 1
        full = states[a] == axes[first + a]
        for k in range(lo, hi):
            jump = tree.strides[tree.inputs[k, STRIDE] + a]
            cursor.offsets[k - lo] += jump - (jump * axes[first + a] if full else 0)
        if not full:
            return
        states[a] = 0
        a -= 1


@step
def seek(tree, clique, block, cursor):
    """Go to a block by its number."""
    axes, offsets = tree.axes, cursor.offsets
    first, lo, hi = clique[FIRST_AXIS], clique[FIRST_INPUT], clique[LAST_INPUT]
    for k in range(lo, hi):
        offsets[k - lo] = tree.inputs[k, OFFSET]
    for a in range(clique[LAST_AXIS] - first - 1, -1, -1):
        state = block % axes[first + a]
        block //= axes[first + a]
        for k in range(lo, hi):
            offsets[k - lo] += state * tree.strides[tree.inputs[k, STRIDE] + a]
        cursor.states[a] = state


@step
def n_blocks(tree, clique):
    """The number of blocks of a clique."""
    n = 1
    for a in range(clique[FIRST_AXIS], clique[LAST_AXIS]):
        n *= tree.axes[a]
    return n


@step
def clear(clique, tiles):
    """Nothing is kept of the inputs of a clique."""
    for k in range(clique[LAST_INPUT] + 1 - clique[FIRST_INPUT]):
        tiles.offsets[k] = -1


@sum_in_place
def fill(tree, clique, cursor, tables, tiles, block):
    """block = the sum of the inputs at the cursor."""
    inputs, maps, offsets = tree.inputs, tree.maps, cursor.offsets
    first, last, inner = clique[FIRST_INPUT], clique[LAST_INPUT], clique[INNER]
    same = 0.0
    for k in range(first, last):
        if inputs[k, FORM] == ONE:
            same += tables.separators[offsets[k - first]] if inputs[k, KIND] else tables.factors[offsets[k - first]]
    for i in range(inner):
        block[i] = same
    for k in range(first, last):
        source = tables.separators if inputs[k, KIND] else tables.factors
        offset = offsets[k - first]
        if inputs[k, FORM] == RUN:
            for i in range(inner):
                block[i] += source[offset + i]
        elif inputs[k, FORM] == GATHER:
            tile, period = tiles.entries[k - first], inputs[k, PERIOD]
            if tiles.offsets[k - first] != offset:
                tiles.offsets[k - first] = offset
                start = inputs[k, MAP]
                for i in range(period):
                    tile[i] = source[offset + maps[start + i]]
            for turn in range(inner // period):
                for i in range(period):
                    block[turn * period + i] += tile[i]


@step
def fill_part(tree, clique, cursor, tables, start, stop, block):
    """As `fill`, for the entries start..stop only."""
    inputs, first = tree.inputs, clique[FIRST_INPUT]
    for i in range(start, stop):
        block[i] = 0.0
        for k in range(first, clique[LAST_INPUT]):
            source = tables.separators if inputs[k, KIND] else tables.factors
            shift = 0
            if inputs[k, FORM] == RUN:
                shift = i
            elif inputs[k, FORM] == GATHER:
                shift = tree.maps[inputs[k, MAP] + i % inputs[k, PERIOD]]
            block[i] += source[cursor.offsets[k - first] + shift]


@sum_kernel
def conditionals(block, inner, residual, up):
    """Turn the sums of a block into probabilities given the separator. `up` is the sum of the row if that takes several
    blocks. Where nothing is possible they are anything from zero to one."""
    if residual == 1:
        for i in range(inner):
            block[i] = 1.0
    elif residual == 2 and inner > 1:
        for j in range(inner // 2):
            gap = block[2 * j + 1] - block[2 * j]
            e = exp(-abs(gap)) if abs(gap) < 708.0 else 0.0  # also where it is NaN
            p = 1.0 / (1.0 + e)
            q = p * e
            block[2 * j] = q if gap > 0.0 else p
            block[2 * j + 1] = p if gap > 0.0 else q
    elif residual > inner:
        for i in range(inner):
            block[i] = exp(block[i] - up) if up > -np.inf else 0.0
    else:
        for j in range(inner // residual):
            lo, hi = j * residual, (j + 1) * residual
            top = -np.inf
            for i in range(lo, hi):
                top = max(top, block[i])
            total = 0.0
            for i in range(lo, hi):
                block[i] = exp(block[i] - top) if top > -np.inf else 0.0
                total += block[i]
            scale = 1.0 / total if total > 0.0 else 0.0
            for i in range(lo, hi):
                block[i] *= scale


@sum_in_place
def flush(source, maps, tiles, k, target):
    """Add what was kept for input k to its table."""
    if source[FORM] == GATHER and tiles.offsets[k] >= 0:
        tile, start, offset = tiles.entries[k], source[MAP], tiles.offsets[k]
        for i in range(source[PERIOD]):
            target[offset + maps[start + i]] += tile[i]


@sum_in_place
def scatter(block, inner, source, maps, offset, tiles, k, target):
    """Add a block to a table, the transpose of `fill`. What goes through a map is kept in tiles until the offset changes."""
    if source[FORM] == RUN:
        for i in range(inner):
            target[offset + i] += block[i]
    elif source[FORM] == ONE:
        total = 0.0
        for i in range(inner):
            total += block[i]
        target[offset] += total
    else:
        tile, period = tiles.entries[k], source[PERIOD]
        if tiles.offsets[k] != offset:
            flush(source, maps, tiles, k, target)
            tiles.offsets[k] = offset
            for i in range(period):
                tile[i] = 0.0
        for turn in range(inner // period):
            for i in range(period):
                tile[i] += block[turn * period + i]
