"""Naive mean field: the independent variables that fit a factor graph best.

q has a probability per state. Tuples of arrays are those of `factor_layout`.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import in_place, step
from .conditional import exponentials

#: Probabilities below this become zero, so that products of them never vanish by rounding where a table forbids.
TINY = 1e-40


@step
def _product(layout, q, f, left_out, T):
    """T = the product of the probabilities of the variables of factor f, but for that of one edge."""
    var_offsets, fac_offsets, fac_ptr = layout.var_offsets, layout.fac_offsets, layout.fac_ptr
    edge_var, strides = layout.edge_var, layout.strides
    size = fac_offsets[f + 1] - fac_offsets[f]
    for x in range(size):
        T[x] = 1.0
    for o in range(fac_ptr[f], fac_ptr[f + 1]):
        if o == left_out:
            continue
        b = var_offsets[edge_var[o]]
        at = 0
        while at < size:
            for y in range(var_offsets[edge_var[o] + 1] - b):
                w = q[b + y]
                for _ in range(strides[o]):
                    T[at] *= w
                    at += 1


@step
def _expect(layout, tables, q, e, f, T, g):
    """Add to g[x] the mean of the table of factor f given state x of the variable of its edge e."""
    var_offsets, fac_offsets, fac_ptr = layout.var_offsets, layout.fac_offsets, layout.fac_ptr
    edge_var, strides = layout.edge_var, layout.strides
    off = fac_offsets[f]
    size = fac_offsets[f + 1] - off
    a = var_offsets[edge_var[e]]
    count = var_offsets[edge_var[e] + 1] - a
    if fac_ptr[f + 1] - fac_ptr[f] == 2:
        o = fac_ptr[f] + fac_ptr[f + 1] - 1 - e
        b = var_offsets[edge_var[o]]
        for y in range(var_offsets[edge_var[o] + 1] - b):
            w = q[b + y]
            if w > 0.0:
                at = off + y * strides[o]
                for x in range(count):
                    g[x] += w * tables[at + x * strides[e]]
        return
    _product(layout, q, f, e, T)
    stride = strides[e]
    for x in range(count):
        for block in range(x * stride, size, stride * count):
            for z in range(block, block + stride):
                if T[z] > 0.0:
                    g[x] += T[z] * tables[off + z]


@in_place
def coordinate_ascent(layout, potentials, max_iter, tol, q, T, g):
    """The best q of one variable after another, until the largest change is at most tol; returns sweeps and that change.

    T and g are scratch for the largest table and for the states of a variable.
    """
    var_offsets = layout.var_offsets
    change = np.inf
    for sweep in range(max_iter):
        change = 0.0
        for i in range(len(var_offsets) - 1):
            a = var_offsets[i]
            count = var_offsets[i + 1] - a
            for x in range(count):
                g[x] = potentials.states[a + x]
            for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
                e = layout.var_edges[k]
                _expect(layout, potentials.tables, q, e, layout.edge_factor[e], T, g)
            z = exponentials(g, count)
            if z == 0.0:
                continue
            kept = 0.0
            for x in range(count):
                g[x] = g[x] / z if g[x] > TINY * z else 0.0
                kept += g[x]
            for x in range(count):
                p = g[x] / kept
                change = max(change, abs(p - q[a + x]))
                q[a + x] = p
        if change <= tol:
            return sweep + 1, change
    return max_iter, change


@in_place
def evidence_lower_bound(layout, potentials, beliefs, value, T):
    """Add the mean score and the entropy to the values of examples; beliefs of tables become products of those of states.

    T is scratch for the largest table.
    """
    var_offsets, fac_offsets, fac_ptr = layout.var_offsets, layout.fac_offsets, layout.fac_ptr
    q = beliefs.states
    for i in range(len(var_offsets) - 1):
        part = 0.0
        for s in range(var_offsets[i], var_offsets[i + 1]):
            if q[s] > 0.0:
                part += q[s] * (potentials.states[s] - np.log(q[s]))
        value[layout.var_examples[i]] += part
    for f in range(len(fac_ptr) - 1):
        off = fac_offsets[f]
        size = fac_offsets[f + 1] - off
        _product(layout, q, f, -1, T)
        part = 0.0
        for x in range(size):
            beliefs.tables[off + x] = T[x]
            if T[x] > 0.0:
                part += T[x] * potentials.tables[off + x]
        value[layout.fac_examples[f]] += part
