"""Scores of labels from the attributes of a position, and back.

A position has two lists of attributes (`tuples.Attributes`). *Common* ones occur with many labels and have a whole row
of weights in a small table, which stays in the cache. *Rare* ones have a weight only for the labels they were seen with, and
their entries are these weights.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel, sum_kernel
from ...numerics.simd import LANES, load, spread, store
from .blocks import WIDTH

_0, _1, _2, _3, _4 = np.uint64(0), np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)


@sum_kernel
def common_scores(common, table, lo, hi, U):
    """U[i] = sum_q values[q] table[indices[q]]."""
    values, indices, indptr = common
    n = table.shape[1]
    ones = len(values) == 0
    for i in range(lo, hi):
        row = U[i]
        for k in range(n):
            row[k] = 0.0
        q, stop = indptr[i], indptr[i + 1]
        if ones:
            while q + _4 <= stop:
                a, b, c, d = table[indices[q]], table[indices[q + _1]], table[indices[q + _2]], table[indices[q + _3]]
                for k in range(n):
                    row[k] += a[k] + b[k] + c[k] + d[k]
                q += _4
        while q < stop:
            x = 1.0 if ones else values[q]
            a = table[indices[q]]
            for k in range(n):
                row[k] += x * a[k]
            q += _1


@sum_kernel
def rare_scores(rare, label, theta, lo, hi, U):
    """U[i, label[f]] += values[q] theta[f] for the weights f = indices[q] of i."""
    values, indices, indptr = rare
    ones = len(values) == 0
    for i in range(lo, hi):
        row = U[i]
        for q in range(indptr[i], indptr[i + 1]):
            f = indices[q]
            row[label[f]] += theta[f] if ones else values[q] * theta[f]


@sum_kernel
def common_sums(common, R, lo, hi, table):
    """table[indices[q]] += values[q] R[i]."""
    values, indices, indptr = common
    n = table.shape[1]
    ones = len(values) == 0
    for i in range(lo, hi):
        row = R[i]
        for q in range(indptr[i], indptr[i + 1]):
            x = 1.0 if ones else values[q]
            a = table[indices[q]]
            for k in range(n):
                a[k] += x * row[k]


@sum_kernel
def rare_sums(rare, label, R, lo, hi, G):
    """G[f] += values[q] R[i, label[f]] for the weights f = indices[q] of i."""
    values, indices, indptr = rare
    ones = len(values) == 0
    for i in range(lo, hi):
        row = R[i]
        for q in range(indptr[i], indptr[i + 1]):
            f = indices[q]
            G[f] += row[label[f]] if ones else values[q] * row[label[f]]


@kernel
def pair_entries(attributes, numbers, n_common, extra, position, wanted, fill, lo, hi, out):
    """The weights that label ``wanted[x]`` at ``position[x]`` uses, row x of `out`: with `fill` their numbers and values,
    else ``out.indptr[x + 1]``, how many they are.

    ``numbers[slot, k]`` is the weight of a common attribute, -1 if there is none; rare ones follow those
    `n_common`. Entries of `extra`, a row for each pair, are weights with the value 1, or -1.
    """
    common_values, common_indices, common_indptr = attributes.common
    rare_values, rare_indices, rare_indptr = attributes.rare
    label, (values, indices, indptr) = attributes.label, out
    ones = len(values) == 0
    for x in range(lo, hi):
        t, k = position[x], wanted[x]
        place = indptr[x] if fill else _0
        for q in range(common_indptr[t], common_indptr[t + 1]):
            f = numbers[common_indices[q], k]
            if f >= 0:
                if fill:
                    indices[place] = f
                if fill and not ones:
                    values[place] = common_values[q]
                place += _1
        for q in range(rare_indptr[t], rare_indptr[t + 1]):
            if label[rare_indices[q]] == k:
                if fill:
                    indices[place] = n_common + np.int64(rare_indices[q])
                if fill and not ones:
                    values[place] = rare_values[q]
                place += _1
        for f in extra[x]:
            if f >= 0:
                if fill:
                    indices[place] = f
                if fill and not ones:
                    values[place] = 1.0
                place += _1
        if not fill:
            indptr[x + 1] = place


@sum_kernel
def common_blocks(common, R, chain, signs, lo, hi, out):
    """out[j, k] = sum_t X[t, j] R[t, k] signs[chain[t]]: a block of sums, each with its own signs of the chains.

    The entries are given by column: those of attribute j are its positions.
    """
    values, positions, indptr = common
    n = R.shape[1]
    for j in range(lo, hi):
        out[j] = 0.0
        for q in range(indptr[j], indptr[j + 1]):
            t = int(positions[q])
            at = chain[t] * WIDTH
            a, b = spread(values[q]) * load(signs, at), spread(values[q]) * load(signs, at + LANES)
            place = j * n * WIDTH
            for k in range(n):
                r = spread(R[t, k])
                store(out, place, load(out, place) + r * a)
                store(out, place + LANES, load(out, place + LANES) + r * b)
                place += WIDTH


@sum_kernel
def rare_blocks(rare, label, R, chain, signs, lo, hi, out):
    """out[f] = sum_t X[t, f] R[t, label[f]] signs[chain[t]], as `common_blocks`."""
    values, positions, indptr = rare
    for f in range(lo, hi):
        a, b = spread(0.0), spread(0.0)
        for q in range(indptr[f], indptr[f + 1]):
            t = int(positions[q])
            r, at = spread(values[q] * R[t, label[f]]), chain[t] * WIDTH
            a = a + r * load(signs, at)
            b = b + r * load(signs, at + LANES)
        store(out, f * WIDTH, a)
        store(out, f * WIDTH + LANES, b)
