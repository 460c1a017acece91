"""Conditional distributions of single variables of a factor graph, for Gibbs sampling and iterated conditional modes.

Tuples of arrays are those of `factor_layout`.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import in_place, kernel, step
from ...numerics.math import exp


@step
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


@in_place
def most_states(layout):
    """The largest number of states of a variable."""
    most = 1
    for i in range(len(layout.var_offsets) - 1):
        most = max(most, layout.var_offsets[i + 1] - layout.var_offsets[i])
    return most


@in_place
def _sweep_modes(layout, potentials, y, score):
    """Give one variable after another its best state; returns how many changed."""
    changed = 0
    for i in range(len(y)):
        count = conditional_scores(layout, potentials, y, i, score)
        top = y[i]
        for x in range(count):
            if score[x] > score[top]:
                top = x
        changed += top != y[i]
        y[i] = top
    return changed


@kernel
def iterated_conditional_modes(layout, potentials, y):
    """Change single variables of a configuration while its score rises; returns how many changed."""
    score = np.empty(most_states(layout))
    total = 0
    for _sweep in range(100):
        changed = _sweep_modes(layout, potentials, y, score)
        total += changed
        if changed == 0:
            break
    return total


@in_place
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
