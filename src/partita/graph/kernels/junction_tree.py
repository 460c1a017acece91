"""Exact sums and maxima on a junction tree, in logarithms: collect and distribute evidence.

Tuples of arrays, and what a block of a clique is, are those of `clique_layout`.
"""

from __future__ import annotations

import math

import numpy as np

from ...numerics.jit import in_place, kernel, step, sum_kernel
from ...numerics.math import exp, log1p_unit
from .clique_blocks import advance, begin, clear, conditionals, fill, fill_part, flush, n_blocks, scatter, seek
from .clique_layout import (
    ADDED,
    AREA,
    FIRST_INPUT,
    INNER,
    KIND,
    LAST_INPUT,
    OFFSET,
    RESIDUAL,
    TARGET,
    cursor as new_cursor,
    scratch,
)


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
def _sum_rows(block, rows, residual, max_product, sums):
    """The sum, or with `max_product` the largest entry, of each row."""
    if residual == 2 and not max_product:
        _log_pairs(block, rows, sums)
        return
    for j in range(rows):
        lo, hi = j * residual, (j + 1) * residual
        sums[j] = _largest(block, lo, hi) if max_product or residual == 1 else _log_sum(block, lo, hi)


@kernel
def _log_add(a, b):
    """log(exp(a) + exp(b))."""
    top = max(a, b)
    return top if top == -np.inf else top + math.log(math.exp(a - top) + math.exp(b - top))


@in_place
def _collect(tree, max_product, lo, hi, tables, work):
    block, sums, cursor, messages = work.block, work.change, work.cursor, tables.separators
    for c in range(lo, hi):
        clique = tree.cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        rows = inner // residual
        begin(tree, clique, cursor)
        clear(clique, work.read)
        for o in range(n_blocks(tree, clique)):
            if o > 0:
                advance(tree, clique, cursor)
            fill(tree, clique, cursor, tables, work.read, block)
            own = cursor.offsets[clique[LAST_INPUT] - clique[FIRST_INPUT]]
            if rows == 0:  # a row takes several blocks
                part = _largest(block, 0, inner) if max_product else _log_sum(block, 0, inner)
                if o * inner % residual == 0:
                    messages[own] = part
                else:
                    messages[own] = max(messages[own], part) if max_product else _log_add(messages[own], part)
                continue
            _sum_rows(block, rows, residual, max_product, sums)
            if clique[ADDED]:
                for j in range(rows):
                    messages[own + j] += sums[j]
            else:
                for j in range(rows):
                    messages[own + j] = sums[j]


@kernel
def collect(tree, max_product, lo, hi, tables):
    """Collect evidence: messages of the cliques lo..hi to their parents, into ``tables.separators``.

    They are sums, or with `max_product` maxima, over what is not in the separator.
    """
    _collect(tree, max_product, lo, hi, tables, scratch(tree))


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


@in_place
def _distribute(tree, tables, lo, hi, probabilities, work):
    inputs, targets, cursor, block = tree.inputs, tree.targets, work.cursor, work.block
    for c in range(hi - 1, lo - 1, -1):
        clique = tree.cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        for k in range(first, last):
            for i in range(targets[k, AREA]):
                probabilities.separators[targets[k, TARGET] + i] = 0.0
        begin(tree, clique, cursor)
        clear(clique, work.read)
        clear(clique, work.written)
        for o in range(n_blocks(tree, clique)):
            if o > 0:
                advance(tree, clique, cursor)
            fill(tree, clique, cursor, tables, work.read, block)
            row = cursor.offsets[last - first]
            own = row - inputs[last, OFFSET] + targets[last, TARGET]
            conditionals(block, inner, residual, tables.separators[row])
            _weigh(block, inner, residual, probabilities.separators, own)
            for k in range(first, last):
                offset = cursor.offsets[k - first] - inputs[k, OFFSET] + targets[k, TARGET]
                target = probabilities.separators if targets[k, KIND] else probabilities.factors
                scatter(block, inner, inputs[k], tree.maps, offset, work.written, k - first, target)
        for k in range(first, last):
            target = probabilities.separators if targets[k, KIND] else probabilities.factors
            flush(inputs[k], tree.maps, work.written, k - first, target)


@kernel
def distribute(tree, tables, lo, hi, probabilities):
    """Distribute evidence, after `collect`: add the probabilities of the entries of factors and separators of the cliques
    lo..hi to `probabilities`. The beliefs of roots are one at the beginning.
    """
    _distribute(tree, tables, lo, hi, probabilities, scratch(tree))


@step
def _row_of(c, scopes, states):
    """The configuration of the separator of clique c, as a number."""
    row = 0
    for a in range(scopes.bounds[c, 0], scopes.bounds[c, 1]):
        v = scopes.variables[a]
        row = row * scopes.cardinalities[v] + states[v]
    return row


@step
def _set_states(c, scopes, entry, states):
    """The states of the residual of clique c, from their number."""
    for a in range(scopes.bounds[c, 2] - 1, scopes.bounds[c, 1] - 1, -1):
        v = scopes.variables[a]
        states[v] = entry % scopes.cardinalities[v]
        entry //= scopes.cardinalities[v]


@in_place
def _descend(tree, scopes, tables, uniforms, states, block, cursor):
    for c in range(len(tree.cliques) - 1, -1, -1):
        clique = tree.cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        entry = _row_of(c, scopes, states) * residual
        up, chosen = -np.inf, 0
        for turn in range(2 if len(uniforms) else 1):  # the first of two finds the sum of the row
            chosen, top, mass, done = 0, -np.inf, 0.0, 0
            while done < residual:
                start = (entry + done) % inner
                stop = min(inner, start + residual - done)
                seek(tree, clique, (entry + done) // inner, cursor)
                fill_part(tree, clique, cursor, tables, start, stop, block)
                if len(uniforms) and turn == 0:
                    up = _log_add(up, _log_sum(block, start, stop))
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
        _set_states(c, scopes, chosen, states)


@kernel
def descend(tree, scopes, tables, uniforms, states):
    """States of all variables from the roots down, after `collect`, for each row of `states`: the best ones if the row of
    `uniforms` is empty, else an exact draw by one number for each clique."""
    block, cursor = np.empty(tree.largest[0]), new_cursor(tree)
    for row in range(len(states)):
        _descend(tree, scopes, tables, uniforms[row], states[row], block, cursor)
