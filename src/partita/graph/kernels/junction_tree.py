"""Sums and maxima over the configurations of a junction tree, in logarithms.

The table of a clique is never stored whole: a block of `inner` entries at a time is the sum of its *inputs* (tables of
factors, messages of children). Its axes are ordered from the slowest to the fastest: those of the separator, then those
summed out here. Axes up to `outer` run from block to block; within a block, entry i of an input is at ``map[i]``.

Arrays of a tree: `cliques` has for each clique (first outer axis, last, first input, last, inner, residual, added); `axes`
the cardinality of each outer axis; `inputs` for each input (kind, place, first map, first stride, form, period), where kind
is 0 for factors and 1 for messages, form 0 for a map, 1 for a run of entries, 2 for one entry, and a map repeats after a
period; `maps` and `strides` are flat. The input after the last of a clique is its own message, which moves from block to
block as the others do; it is added to what is there if `added` is 1. Only cliques whose rows (the entries for one
configuration of the separator) are within a block may share the place of their message.

`targets` has for each input, and for the own message, where probabilities go: (kind, place, how many entries to set to zero
before), where kind is 0 for marginals and 1 for beliefs.
"""

from __future__ import annotations

import math

import numpy as np

from ...numerics.jit import kernel, sum_kernel
from ...numerics.math import exp, log1p_unit

FIRST_AXIS, LAST_AXIS, FIRST_INPUT, LAST_INPUT, INNER, RESIDUAL, ADDED = range(7)
KIND, PLACE, MAP, STRIDE, FORM, PERIOD = range(6)
TARGET, AREA = 1, 2
_GATHER, _RUN, _ONE = range(3)


@sum_kernel
def _fill(block, inner, inputs, first, last, places, maps, potentials, messages, tiles, tiled):
    """block = the sum of the inputs at their current places. What a map picks stays in `tiles` until the place changes."""
    same = 0.0
    for k in range(first, last):
        if inputs[k, FORM] == _ONE:
            same += messages[places[k - first]] if inputs[k, KIND] else potentials[places[k - first]]
    for i in range(inner):
        block[i] = same
    for k in range(first, last):
        source = messages if inputs[k, KIND] else potentials
        place = places[k - first]
        if inputs[k, FORM] == _RUN:
            for i in range(inner):
                block[i] += source[place + i]
        elif inputs[k, FORM] == _GATHER:
            tile, period = tiles[k - first], inputs[k, PERIOD]
            if tiled[k - first] != place:
                tiled[k - first] = place
                start = inputs[k, MAP]
                for i in range(period):
                    tile[i] = source[place + maps[start + i]]
            for turn in range(inner // period):
                for i in range(period):
                    block[turn * period + i] += tile[i]


@kernel
def _fill_part(block, start, stop, inputs, first, last, places, maps, potentials, messages):
    """As `_fill`, for the entries start..stop only."""
    for i in range(start, stop):
        block[i] = 0.0
        for k in range(first, last):
            source = messages if inputs[k, KIND] else potentials
            shift = 0
            if inputs[k, FORM] == _RUN:
                shift = i
            elif inputs[k, FORM] == _GATHER:
                shift = maps[inputs[k, MAP] + i % inputs[k, PERIOD]]
            block[i] += source[places[k - first] + shift]


@kernel
def _begin(clique, inputs, places, digits, tiled):
    for a in range(clique[LAST_AXIS] - clique[FIRST_AXIS]):
        digits[a] = 0
    for k in range(clique[FIRST_INPUT], clique[LAST_INPUT] + 1):
        places[k - clique[FIRST_INPUT]] = inputs[k, PLACE]
        tiled[k - clique[FIRST_INPUT]] = -1


@kernel
def _advance(clique, axes, inputs, strides, places, digits):
    """Go to the next block: the outer axes count like an odometer."""
    first, n = clique[FIRST_AXIS], clique[LAST_AXIS] - clique[FIRST_AXIS]
    lo, hi = clique[FIRST_INPUT], clique[LAST_INPUT] + 1
    a = n - 1
    while a >= 0:
        digits[a] += 1
        full = digits[a] == axes[first + a]
        for k in range(lo, hi):
            step = strides[inputs[k, STRIDE] + a]
            places[k - lo] += step - (step * axes[first + a] if full else 0)
        if not full:
            return
        digits[a] = 0
        a -= 1


@kernel
def _seek(clique, axes, inputs, strides, block, places, digits):
    """Go to a block by its number."""
    first, lo, hi = clique[FIRST_AXIS], clique[FIRST_INPUT], clique[LAST_INPUT]
    for k in range(lo, hi):
        places[k - lo] = inputs[k, PLACE]
    for a in range(clique[LAST_AXIS] - first - 1, -1, -1):
        digit = block % axes[first + a]
        block //= axes[first + a]
        for k in range(lo, hi):
            places[k - lo] += digit * strides[inputs[k, STRIDE] + a]
        digits[a] = digit


@sum_kernel
def _log_sum(x, lo, hi):
    """log sum exp of x[lo:hi]."""
    top = -np.inf
    for i in range(lo, hi):
        top = max(top, x[i])
    if top == -np.inf:
        return top
    total = 0.0
    for i in range(lo, hi):
        total += exp(x[i] - top)
    return top + math.log(total)


@sum_kernel
def _largest(x, lo, hi):
    top = -np.inf
    for i in range(lo, hi):
        top = max(top, x[i])
    return top


@sum_kernel
def _log_pairs(x, rows, sums):
    """log sum exp of pairs."""
    for j in range(rows):
        a, b = x[2 * j], x[2 * j + 1]
        top, low = max(a, b), min(a, b)
        gap = low - top  # NaN if both are -inf
        e = exp(gap) if gap > -708.0 else 0.0
        sums[j] = top + log1p_unit(e)


@kernel
def _sum_rows(block, rows, residual, best, sums):
    """The sum, or with `best` the largest entry, of each row."""
    if residual == 2 and not best:
        _log_pairs(block, rows, sums)
        return
    for j in range(rows):
        lo, hi = j * residual, (j + 1) * residual
        sums[j] = _largest(block, lo, hi) if best or residual == 1 else _log_sum(block, lo, hi)


@kernel
def _blocks(clique, axes):
    n = 1
    for a in range(clique[FIRST_AXIS], clique[LAST_AXIS]):
        n *= axes[a]
    return n


@kernel
def _both(a, b):
    """log(exp(a) + exp(b))."""
    top = max(a, b)
    return top if top == -np.inf else top + math.log(math.exp(a - top) + math.exp(b - top))


@kernel
def collect(cliques, axes, inputs, maps, strides, potentials, best, lo, hi, room, messages):
    """Messages of the cliques lo..hi to their parents: sums, or with `best` maxima, over what is not in the separator."""
    block, sums = np.empty(room[0]), np.empty(room[0])
    places, digits = np.empty(room[1], np.int64), np.empty(room[2], np.int64)
    tiles, tiled = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    for c in range(lo, hi):
        clique = cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        rows = inner // residual
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        _begin(clique, inputs, places, digits, tiled)
        for o in range(_blocks(clique, axes)):
            if o > 0:
                _advance(clique, axes, inputs, strides, places, digits)
            _fill(block, inner, inputs, first, last, places, maps, potentials, messages, tiles, tiled)
            row = places[last - first]
            if rows == 0:  # a row takes several blocks
                part = _largest(block, 0, inner) if best else _log_sum(block, 0, inner)
                if o * inner % residual == 0:
                    messages[row] = part
                else:
                    messages[row] = max(messages[row], part) if best else _both(messages[row], part)
                continue
            _sum_rows(block, rows, residual, best, sums)
            if clique[ADDED]:
                for j in range(rows):
                    messages[row + j] += sums[j]
            else:
                for j in range(rows):
                    messages[row + j] = sums[j]


@sum_kernel
def _shares(block, inner, residual, up):
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


@sum_kernel
def _weigh(block, inner, residual, beliefs, own):
    """Multiply each row by the belief of its separator."""
    if residual == 1:
        for i in range(inner):
            block[i] *= beliefs[own + i]
        return
    if residual == 2 and inner > 1:
        for j in range(inner // 2):
            block[2 * j] *= beliefs[own + j]
            block[2 * j + 1] *= beliefs[own + j]
        return
    step = min(inner, residual)
    for j in range(inner // step):
        b = beliefs[own + j]
        for i in range(j * step, (j + 1) * step):
            block[i] *= b


@kernel
def distribute(cliques, axes, inputs, maps, strides, targets, potentials, lo, hi, room, messages, beliefs, marginals):
    """Add the probabilities of the configurations of separators and factors to `beliefs` and `marginals`, after `collect`.

    The beliefs of roots are one at the beginning.
    """
    block = np.empty(room[0])
    places, digits = np.empty(room[1], np.int64), np.empty(room[2], np.int64)
    tiles, tiled = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    heaps, heaped = np.empty((room[1], room[0])), np.empty(room[1], np.int64)
    for c in range(hi - 1, lo - 1, -1):
        clique = cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        for k in range(first, last):
            for i in range(targets[k, AREA]):
                beliefs[targets[k, TARGET] + i] = 0.0
        _begin(clique, inputs, places, digits, tiled)
        heaped[: last - first] = -1
        for o in range(_blocks(clique, axes)):
            if o > 0:
                _advance(clique, axes, inputs, strides, places, digits)
            _fill(block, inner, inputs, first, last, places, maps, potentials, messages, tiles, tiled)
            row = places[last - first]
            own = row - inputs[last, PLACE] + targets[last, TARGET]
            _shares(block, inner, residual, messages[row])
            _weigh(block, inner, residual, beliefs, own)
            for k in range(first, last):
                place = places[k - first] - inputs[k, PLACE] + targets[k, TARGET]
                _scatter(
                    block,
                    inner,
                    inputs[k],
                    maps,
                    place,
                    beliefs if targets[k, KIND] else marginals,
                    heaps,
                    heaped,
                    k - first,
                )
        for k in range(first, last):
            _unload(inputs[k], maps, beliefs if targets[k, KIND] else marginals, heaps, heaped, k - first)


@sum_kernel
def _unload(source, maps, target, heaps, heaped, k):
    """Add what was heaped up for an input to its table."""
    if source[FORM] == _GATHER and heaped[k] >= 0:
        heap, start, place = heaps[k], source[MAP], heaped[k]
        for i in range(source[PERIOD]):
            target[place + maps[start + i]] += heap[i]


@sum_kernel
def _scatter(block, inner, source, maps, place, target, heaps, heaped, k):
    """Add a block to a table, the reverse of `_fill`. What goes through a map is heaped up until the place changes."""
    if source[FORM] == _RUN:
        for i in range(inner):
            target[place + i] += block[i]
    elif source[FORM] == _ONE:
        total = 0.0
        for i in range(inner):
            total += block[i]
        target[place] += total
    else:
        heap, period = heaps[k], source[PERIOD]
        if heaped[k] != place:
            _unload(source, maps, target, heaps, heaped, k)
            heaped[k] = place
            for i in range(period):
                heap[i] = 0.0
        for turn in range(inner // period):
            for i in range(period):
                heap[i] += block[turn * period + i]


@kernel
def descend(
    cliques,
    axes,
    inputs,
    maps,
    strides,
    variables,
    bounds,
    cardinalities,
    potentials,
    messages,
    uniforms,
    lo,
    hi,
    room,
    states,
):
    """States of all variables from the roots down: the best ones if `uniforms` is empty, else a draw by one number for each
    clique. ``variables[bounds[c, 0] : bounds[c, 1]]`` are the separator of clique c, up to ``bounds[c, 2]`` its residual."""
    block = np.empty(room[0])
    places, digits = np.empty(room[1], np.int64), np.empty(room[2], np.int64)
    for c in range(hi - 1, lo - 1, -1):
        clique = cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        s = 0
        for a in range(bounds[c, 0], bounds[c, 1]):
            s = s * cardinalities[variables[a]] + states[variables[a]]
        entry = s * residual
        up = -np.inf
        for turn in range(2 if len(uniforms) else 1):  # the first of two finds the sum of the row
            chosen, top, mass, done = 0, -np.inf, 0.0, 0
            while done < residual:
                start = (entry + done) % inner
                stop = min(inner, start + residual - done)
                _seek(clique, axes, inputs, strides, (entry + done) // inner, places, digits)
                _fill_part(block, start, stop, inputs, first, last, places, maps, potentials, messages)
                if len(uniforms) and turn == 0:
                    up = _both(up, _log_sum(block, start, stop))
                    done += stop - start
                    continue
                for i in range(start, stop):
                    if len(uniforms) == 0:
                        if block[i] > top:
                            top, chosen = block[i], done + i - start
                    elif mass <= uniforms[c]:
                        p = math.exp(block[i] - up)
                        mass += p
                        if p > 0.0:
                            chosen = done + i - start
                done += stop - start
        for a in range(bounds[c, 2] - 1, bounds[c, 1] - 1, -1):
            states[variables[a]] = chosen % cardinalities[variables[a]]
            chosen //= cardinalities[variables[a]]
