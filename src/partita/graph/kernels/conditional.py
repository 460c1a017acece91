"""Scores of the states of one variable given the others. Layouts are as in `belief_propagation`."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp


@kernel
def conditional_scores(layout, incident, edge_factor, states, tables, y, i, score):
    """score[x] = what state x of variable i adds, given the states y of the others; returns the number of states."""
    var_offsets, fac_offsets, fac_ptr, edge_var, _, strides = layout
    starts, members = incident
    a = var_offsets[i]
    count = var_offsets[i + 1] - a
    for x in range(count):
        score[x] = states[a + x]
    for k in range(starts[i], starts[i + 1]):
        e = members[k]
        f = edge_factor[e]
        base = fac_offsets[f]
        for g in range(fac_ptr[f], fac_ptr[f + 1]):
            if g != e:
                base += strides[g] * y[edge_var[g]]
        for x in range(count):
            score[x] += tables[base + x * strides[e]]
    return count


@kernel
def exponentials(x, count):
    """x[:count] = exp of it less its largest; returns the sum, zero if all are -inf (and x is left alone)."""
    top = -np.inf
    for k in range(count):
        top = max(top, x[k])
    if top == -np.inf:
        return 0.0
    total = 0.0
    for k in range(count):
        x[k] = exp(x[k] - top)
        total += x[k]
    return total
