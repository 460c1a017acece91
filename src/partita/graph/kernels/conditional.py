"""Conditional distributions of single variables of a factor graph, for Gibbs sampling and iterated conditional modes.

Tuples of arrays are those of `factor_layout`.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp


@kernel
def conditional_scores(layout, potentials, y, i, score):
    """score[x] = what state x of variable i adds, given the states y of the others; returns the number of states."""
    a = layout.var_offsets[i]
    count = layout.var_offsets[i + 1] - a
    for x in range(count):
        score[x] = potentials.states[a + x]
    for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
        e = layout.var_edges[k]
        f = layout.edge_factor[e]
        base = layout.fac_offsets[f]
        for g in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            if g != e:
                base += layout.strides[g] * y[layout.edge_var[g]]
        for x in range(count):
            score[x] += potentials.tables[base + x * layout.strides[e]]
    return count


@kernel
def iterated_conditional_modes(layout, potentials, y):
    """Give one variable after another its best state, while the score rises; returns how many changed."""
    n = len(y)
    widest = 1
    for i in range(n):
        widest = max(widest, layout.var_offsets[i + 1] - layout.var_offsets[i])
    score = np.empty(widest)
    total = 0
    for _sweep in range(100):
        changed = 0
        for i in range(n):
            count = conditional_scores(layout, potentials, y, i, score)
            top = y[i]
            for x in range(count):
                if score[x] > score[top]:
                    top = x
            changed += top != y[i]
            y[i] = top
        total += changed
        if changed == 0:
            break
    return total


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
