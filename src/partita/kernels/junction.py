"""Sums and maxima over the configurations of a junction tree, in logarithms.

The table of a clique is never stored whole: a block of `inner` entries at a time is the sum of its *inputs* (tables of
factors, messages of children). Its axes are ordered from the slowest to the fastest: those of the separator, then those
summed out here. Axes up to `outer` run from block to block; within a block, entry i of an input is at ``map[i]``.

Arrays of a tree: `cliques` has for each clique (first outer axis, last, first input, last, inner, residual, message); `axes`
the cardinality of each outer axis; `inputs` for each input (kind, place, first map, first stride, form), where kind is 0 for
factors and 1 for messages, form 0 for a map, 1 for a run of entries, 2 for one entry; `maps` and `strides` are flat.
"""

from __future__ import annotations

import math

import numpy as np

from ._jit import kernel, sum_kernel
from ._math import exp, log1p_unit

FIRST_AXIS, LAST_AXIS, FIRST_INPUT, LAST_INPUT, INNER, RESIDUAL, MESSAGE = range(7)
KIND, PLACE, MAP, STRIDE, FORM = range(5)
_GATHER, _RUN, _ONE = range(3)


@sum_kernel
def _fill(block, start, stop, inputs, first, last, places, maps, potentials, messages):
    """block = the sum of the inputs at their current places, for the entries start..stop."""
    same = 0.0
    for k in range(first, last):
        if inputs[k, FORM] == _ONE:
            same += messages[places[k - first]] if inputs[k, KIND] else potentials[places[k - first]]
    for i in range(start, stop):
        block[i] = same
    for k in range(first, last):
        source = messages if inputs[k, KIND] else potentials
        place = places[k - first]
        if inputs[k, FORM] == _RUN:
            for i in range(start, stop):
                block[i] += source[place + i]
        elif inputs[k, FORM] == _GATHER:
            base = inputs[k, MAP]
            for i in range(start, stop):
                block[i] += source[place + maps[base + i]]


@kernel
def _begin(clique, inputs, places, digits):
    for a in range(clique[LAST_AXIS] - clique[FIRST_AXIS]):
        digits[a] = 0
    for k in range(clique[FIRST_INPUT], clique[LAST_INPUT]):
        places[k - clique[FIRST_INPUT]] = inputs[k, PLACE]


@kernel
def _advance(clique, axes, inputs, strides, places, digits):
    """Go to the next block: the outer axes count like an odometer."""
    first, n = clique[FIRST_AXIS], clique[LAST_AXIS] - clique[FIRST_AXIS]
    lo, hi = clique[FIRST_INPUT], clique[LAST_INPUT]
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
def _log_pairs(x, rows, out, place):
    """log sum exp of pairs."""
    for j in range(rows):
        a, b = x[2 * j], x[2 * j + 1]
        top, low = max(a, b), min(a, b)
        gap = low - top  # NaN if both are -inf
        e = exp(gap) if gap > -708.0 else 0.0
        out[place + j] = top + log1p_unit(e)


@sum_kernel
def _largest(x, lo, hi):
    top = -np.inf
    for i in range(lo, hi):
        top = max(top, x[i])
    return top


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
    block = np.empty(room[0])
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
            if rows == 0:  # a row takes several blocks
                part = _largest(block, 0, inner) if best else _log_sum(block, 0, inner)
                row = place + o * inner // residual
                if o * inner % residual == 0:
                    messages[row] = part
                else:
                    messages[row] = max(messages[row], part) if best else _both(messages[row], part)
            elif residual == 1:
                for i in range(inner):
                    messages[place + o * inner + i] = block[i]
            elif residual == 2 and not best:
                _log_pairs(block, rows, messages, place + o * rows)
            else:
                for j in range(rows):
                    lower, upper = j * residual, (j + 1) * residual
                    messages[place + o * rows + j] = _largest(block, lower, upper) if best else _log_sum(block, lower, upper)


@sum_kernel
def _probabilities(block, inner, residual, row, messages, beliefs):
    """Turn the sums of a block into probabilities, given those of the separator."""
    if residual == 1:
        for i in range(inner):
            block[i] = beliefs[row + i]
        return
    if residual >= inner:
        b, up = beliefs[row], messages[row]
        for i in range(inner):
            block[i] = b * exp(block[i] - up) if b > 0.0 else 0.0
        return
    if residual == 2:
        for j in range(inner // 2):
            b, up = beliefs[row + j], messages[row + j]
            p, q = b * exp(block[2 * j] - up), b * exp(block[2 * j + 1] - up)
            block[2 * j] = p if b > 0.0 else 0.0
            block[2 * j + 1] = q if b > 0.0 else 0.0
        return
    i = 0
    for j in range(inner // residual):
        b, up = beliefs[row + j], messages[row + j]
        live = b > 0.0
        for _ in range(residual):
            p = exp(block[i] - up)
            block[i] = b * p if live else 0.0
            i += 1


@kernel
def distribute(cliques, axes, inputs, maps, strides, potentials, lo, hi, room, messages, beliefs, marginals):
    """Add the probabilities of the configurations of separators and factors to `beliefs` and `marginals`, after `collect`.

    Beliefs are zero at the beginning but for those of roots, which are one.
    """
    block = np.empty(room[0])
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
            _probabilities(block, inner, residual, place + o * inner // residual, messages, beliefs)
            for k in range(first, last):
                target = beliefs if inputs[k, KIND] else marginals
                _scatter(block, inner, target, places[k - first], inputs[k, FORM], maps, inputs[k, MAP])


@sum_kernel
def _scatter(block, inner, target, place, form, maps, start):
    """Add a block to a table, the reverse of `_fill`."""
    if form == _RUN:
        for i in range(inner):
            target[place + i] += block[i]
    elif form == _ONE:
        total = 0.0
        for i in range(inner):
            total += block[i]
        target[place] += total
    else:
        for i in range(inner):
            target[place + maps[start + i]] += block[i]


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
        up = messages[clique[MESSAGE] + s]
        entry = s * residual
        chosen, top, mass = 0, -np.inf, 0.0
        done = 0
        while done < residual:
            start = (entry + done) % inner
            stop = min(inner, start + residual - done)
            _seek(clique, axes, inputs, strides, (entry + done) // inner, places, digits)
            _fill(block, start, stop, inputs, first, last, places, maps, potentials, messages)
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
