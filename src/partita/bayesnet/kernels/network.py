"""Rows of states of which some are unknown, and the distributions of Bayesian networks."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import IntArray
from ...numerics.jit import kernel
from ...numerics.math import exp

#: Steps of Newton's method for one distribution; from zero it takes about ten.
STEPS = 200
#: The weight of a state that never occurs, if there is no penalty: its probability is zero in double precision.
NEVER = -745.0


class Tables(NamedTuple):
    """Where the tables of factors are in one vector, and how states pick their entries.

    Attributes
    ----------
    scope_start : int64 array (factors + 1,)
        Where the members of each factor begin.
    members : int64 array
        Variables of the factors, one after another.
    strides : int64 array
        Of each member: how far apart entries of its successive states are.
    offsets : int64 array (factors + 1,)
        Where the table of each factor begins.
    """

    scope_start: IntArray
    members: IntArray
    strides: IntArray
    offsets: IntArray


@kernel
def components(unknown, first, factors, scope_start, members, lo, hi, labels):
    """Connected components of the unknown variables of rows lo..hi: `labels` has the lowest of each, -1 where a state is
    known.

    `factors` are those of each variable, from ``first[v]`` on.
    """
    stack = np.empty(unknown.shape[1], np.int64)
    for r in range(lo, hi):
        for v in range(unknown.shape[1]):
            labels[r, v] = -1
        for v in range(unknown.shape[1]):
            if not unknown[r, v] or labels[r, v] >= 0:
                continue
            labels[r, v] = v
            stack[0], top = v, 1
            while top:
                top -= 1
                w = stack[top]
                for f in range(first[w], first[w + 1]):
                    for q in range(scope_start[factors[f]], scope_start[factors[f] + 1]):
                        other = members[q]
                        if unknown[r, other] and labels[r, other] < 0:
                            labels[r, other] = v
                            stack[top] = other
                            top += 1


@kernel
def settled_counts(states, weights, tables, lo, hi, counts):
    """The part of the E-step without inference: add weights of rows to the entries that factors of known states pick."""
    for r in range(lo, hi):
        for f in range(len(tables.offsets) - 1):
            place = _picked(states, tables, r, f)
            if place >= 0:
                counts[place] += weights[r]


@kernel
def settled_sums(states, u, tables, lo, hi, out):
    """Sums of these entries, of every row."""
    for r in range(lo, hi):
        total = 0.0
        for f in range(len(tables.offsets) - 1):
            place = _picked(states, tables, r, f)
            if place >= 0:
                total += u[place]
        out[r] = total


@kernel
def _picked(states, tables, r, f):
    """The entry of factor f that row r picks; -1 if a state is unknown."""
    place = tables.offsets[f]
    for q in range(tables.scope_start[f], tables.scope_start[f + 1]):
        state = states[r, tables.members[q]]
        if state < 0:
            return -1
        place += tables.strides[q] * state
    return place


@kernel
def item_codes(states, blanket, rows, sets, lo, hi, out):
    """The number of the configuration of a set's Markov blanket, for pairs of a row and a set; the row, if there are too
    many."""
    start, variables, multipliers = blanket.members
    by_row = blanket.by_row
    for i in range(lo, hi):
        r, o = rows[i], sets[i]
        if by_row[o]:
            out[i] = r
            continue
        code = 0
        for q in range(start[o], start[o + 1]):
            code += multipliers[q] * states[r, variables[q]]
        out[i] = code


@kernel
def log_distributions(w, start, lo, hi, out):
    """log p = w - log sum exp w, for each distribution."""
    for b in range(lo, hi):
        top = w[start[b]]
        for i in range(start[b] + 1, start[b + 1]):
            top = max(top, w[i])
        z = 0.0
        for i in range(start[b], start[b + 1]):
            z += exp(w[i] - top)
        log_z = top + np.log(z)
        for i in range(start[b], start[b + 1]):
            out[i] = w[i] - log_z


@kernel
def fit_distributions(counts, start, alpha, w):
    """The M-step: minimise ``n log sum exp w - counts . w + alpha / 2 |w|^2`` for each distribution, from `w` on."""
    for b in range(len(start) - 1):
        lo, hi = start[b], start[b + 1]
        n = 0.0
        for i in range(lo, hi):
            n += counts[i]
        if alpha == 0.0:
            for i in range(lo, hi):
                w[i] = 0.0 if n == 0.0 else max(NEVER, np.log(counts[i] / n))
        elif n == 0.0:
            for i in range(lo, hi):
                w[i] = 0.0
        else:
            _newton(counts[lo:hi], n, alpha, w[lo:hi])


@kernel
def _value(counts, n, alpha, w, p):
    """The objective at w; p becomes the probabilities."""
    top, dot, square = w.max(), 0.0, 0.0
    z = 0.0
    for i in range(len(w)):
        p[i] = exp(w[i] - top)
        z += p[i]
        dot += counts[i] * w[i]
        square += w[i] * w[i]
    for i in range(len(w)):
        p[i] /= z
    return n * (top + np.log(z)) - dot + 0.5 * alpha * square


@kernel
def _newton(counts, n, alpha, w):
    """Newton's method for one distribution. The Hessian is ``diag(n p + alpha) - n p p'``: solved in closed form."""
    k = len(w)
    p, step, trial, q = np.empty(k), np.empty(k), np.empty(k), np.empty(k)
    value = _value(counts, n, alpha, w, p)
    for _ in range(STEPS):
        top, below = 0.0, 0.0
        for i in range(k):
            gradient = n * p[i] - counts[i] + alpha * w[i]
            step[i] = gradient / (n * p[i] + alpha)
            top += n * p[i] * step[i]
            below += n * p[i] * alpha / (n * p[i] + alpha)
        slope = 0.0
        for i in range(k):
            step[i] += top / below * p[i] * n / (n * p[i] + alpha)
            slope += step[i] * (n * p[i] - counts[i] + alpha * w[i])
        if not slope > 1e-13 * n:  # what is left after this step is far below rounding
            for i in range(k):
                w[i] -= step[i]
            return
        size = 1.0
        while True:
            for i in range(k):
                trial[i] = w[i] - size * step[i]
            following = _value(counts, n, alpha, trial, q)
            if following <= value - 1e-4 * size * slope:
                break
            size *= 0.5
            if size < 1e-10:
                return
        value = following
        for i in range(k):
            w[i], p[i] = trial[i], q[i]
