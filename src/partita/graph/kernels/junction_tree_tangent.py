"""Derivatives of the sums of a junction tree along a direction in its potentials: forward mode, after `junction_tree`.

Tuples of arrays are those of `clique_layout`. Where nothing is possible the derivative is zero.
"""

from __future__ import annotations

from ...numerics.jit import in_place, kernel, sum_kernel
from .clique_blocks import advance, begin, clear, conditionals, fill, flush, n_blocks, scatter
from .clique_layout import ADDED, FIRST_INPUT, INNER, KIND, LAST_INPUT, RESIDUAL, scratch


@sum_kernel
def _means(block, change, inner, residual):
    """change[:rows] = the mean of the changes in each row, by the probabilities in the block."""
    step = min(inner, residual)
    for j in range(inner // step):
        total = 0.0
        for i in range(j * step, (j + 1) * step):
            total += block[i] * change[i]
        change[j] = total


@in_place
def _collect_tangent(tree, tables, lo, hi, tangent, work):
    block, change, cursor, messages = work.block, work.change, work.cursor, tangent.separators
    for c in range(lo, hi):
        clique = tree.cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        begin(tree, clique, cursor)
        clear(clique, work.read)
        clear(clique, work.changes)
        for o in range(n_blocks(tree, clique)):
            if o > 0:
                advance(tree, clique, cursor)
            row = cursor.offsets[clique[LAST_INPUT] - clique[FIRST_INPUT]]
            fill(tree, clique, cursor, tables, work.read, block)
            fill(tree, clique, cursor, tangent, work.changes, change)
            conditionals(block, inner, residual, tables.separators[row])
            _means(block, change, inner, residual)
            again = clique[ADDED] or o * inner % residual > 0  # a row may take several blocks
            for j in range(max(1, inner // residual)):
                messages[row + j] = messages[row + j] + change[j] if again else change[j]


@kernel
def collect_tangent(tree, tables, lo, hi, tangent):
    """Derivatives of the messages of the cliques lo..hi along ``tangent.factors``, into ``tangent.separators``."""
    _collect_tangent(tree, tables, lo, hi, tangent, scratch(tree))


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


@in_place
def _distribute_tangent(tree, tables, tangent, beliefs, lo, hi, product, work):
    inputs, cursor, block, change, shifts = tree.inputs, work.cursor, work.block, work.change, product.separators
    for c in range(hi - 1, lo - 1, -1):
        clique = tree.cliques[c]
        inner, residual = clique[INNER], clique[RESIDUAL]
        first, last = clique[FIRST_INPUT], clique[LAST_INPUT]
        begin(tree, clique, cursor)
        clear(clique, work.read)
        clear(clique, work.changes)
        clear(clique, work.written)
        for o in range(n_blocks(tree, clique)):
            if o > 0:
                advance(tree, clique, cursor)
            row = cursor.offsets[last - first]
            fill(tree, clique, cursor, tables, work.read, block)
            fill(tree, clique, cursor, tangent, work.changes, change)
            conditionals(block, inner, residual, tables.separators[row])
            _changes(block, change, inner, residual, row, tangent.separators, beliefs, shifts)
            for k in range(first, last):
                target = shifts if inputs[k, KIND] else product.factors
                scatter(change, inner, inputs[k], tree.maps, cursor.offsets[k - first], work.written, k - first, target)
        for k in range(first, last):
            flush(inputs[k], tree.maps, work.written, k - first, shifts if inputs[k, KIND] else product.factors)


@kernel
def distribute_tangent(tree, tables, tangent, beliefs, lo, hi, product):
    """Add the derivatives of the probabilities of factors and separators to `product`, after `collect_tangent`.

    Those of separators are zero at the beginning. `beliefs` are the probabilities of separators, where their messages are.
    """
    _distribute_tangent(tree, tables, tangent, beliefs, lo, hi, product, scratch(tree))
