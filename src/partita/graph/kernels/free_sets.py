"""Sets of variables of a factor graph, given the states of all others: all configurations of small ones are written out.

What inner loops index by is unsigned: signed indices are tested for negative values.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray, IntArray
from ...numerics.jit import in_place, kernel, step
from ...numerics.math import exp


class Strides(NamedTuple):
    """Variables whose states, each times a stride, add up to an offset: those of row f are ``start[f]:start[f + 1]``."""

    start: IntArray
    variables: IntArray
    strides: IntArray


class SetTables(NamedTuple):
    """The factors that touch a set, and where its configurations are in their tables (uint64 arrays).

    The factors of set o are ``factor_start[o]:factor_start[o + 1]``. Configuration s, of K = sizes[o], of its f-th factor is
    ``maps[map_start[o] + f * K + s]`` entries from that which the variables outside of the set choose.
    """

    sizes: NDArray[np.uint64]  #: (sets,) numbers of configurations
    factor_start: NDArray[np.uint64]  #: (sets + 1,)
    offsets: NDArray[np.uint64]  #: (factors of sets,) the first entry of the table
    map_start: NDArray[np.uint64]  #: (sets + 1,)
    maps: NDArray[np.uint64]


class SetMembers(NamedTuple):
    """The variables of sets, and of each factor of a set those within it."""

    start: IntArray  #: (sets + 1,) where the variables of a set begin
    cardinalities: IntArray  #: of these variables
    free: Strides  #: of each factor of a set; variables are numbered within the set


class Settled(NamedTuple):
    """Factors of sets whose entry is counted as known: those of set o are ``start[o]:start[o + 1]``."""

    start: IntArray
    offsets: IntArray
    members: Strides  #: of each of these factors


class Blanket(NamedTuple):
    """The Markov blanket of every set: the variables that share a factor with it. Its configurations are numbered, unless
    there are too many (`by_row`): then every row of states counts as one of its own."""

    members: Strides  #: of each set
    by_row: NDArray[np.bool_]


class Rows(NamedTuple):
    """Rows of states. The weight of set o in row r is ``weights[r] * shares[r, columns[o]]``."""

    states: IntArray  #: (rows, variables)
    weights: FloatArray  #: (rows,)
    shares: FloatArray  #: (1, columns) or (rows, columns)
    columns: IntArray  #: (sets,)
    signs: FloatArray  #: (sets,) 1 or -1


class Items(NamedTuple):
    """Sets with a configuration of their Markov blanket."""

    sets: NDArray[np.uint64]  #: (items,)
    start: NDArray[np.uint64]  #: (items + 1,) where the bases of an item begin
    bases: NDArray[np.uint64]  #: the entry of each factor if the variables of the set are in their first states
    weights: FloatArray  #: (items,)
    p_start: NDArray[np.uint64]  #: (items + 1,) where the probabilities of an item begin


@in_place
def write_maps(sizes, factor_start, members, map_start, lo, hi, maps):
    """Where every configuration of the sets lo..hi is in the tables of its factors. The last variable changes first."""
    free = members.free
    for o in range(lo, hi):
        K, variables = sizes[o], members.start[o + 1] - members.start[o]
        for f in range(factor_start[o], factor_start[o + 1]):
            first = map_start[o] + (f - factor_start[o]) * K
            for s in range(K):
                rest, offset = s, 0
                for v in range(variables - 1, -1, -1):
                    count = members.cardinalities[members.start[o] + v]
                    for q in range(free.start[f], free.start[f + 1]):
                        if free.variables[q] == v:
                            offset += rest % count * free.strides[q]
                    rest //= count
                maps[first + s] = offset


@step
def _weight(rows, r, o):
    return rows.weights[r] * rows.shares[r if len(rows.shares) > 1 else 0, rows.columns[o]]


@in_place
def _add_offsets(members, columns, f, out):
    """Add strides times states, for every row. `columns` are states by variable."""
    for q in range(members.start[f], members.start[f + 1]):
        stride, column = members.strides[q], columns[members.variables[q]]
        for r in range(len(out)):
            out[r] += stride * column[r]


@in_place
def _codes(blanket, columns, o, out):
    """The number of the configuration of the Markov blanket in every row: that of the row, if there are too many."""
    for r in range(len(out)):
        out[r] = r if blanket.by_row[o] else 0
    if not blanket.by_row[o]:
        _add_offsets(blanket.members, columns, o, out)


@step
def _entry(base, members, states, r, f):
    for q in range(members.start[f], members.start[f + 1]):
        base += members.strides[q] * states[r, members.variables[q]]
    return base


@kernel
def tabulate(rows, columns, blanket, slot_start, settled, lo, hi, totals, chosen, counts):
    """Add up the weights of equal items in their slots, and the entries that are settled, for the sets lo..hi.

    `columns` are the states of rows by variable; `chosen` gets a row of each item.
    """
    n, signs, start, offsets = columns.shape[1], rows.signs, settled.start, settled.offsets
    codes, weights = np.empty(n, np.int64), np.empty(n)
    for o in range(lo, hi):
        for r in range(n):
            weights[r] = _weight(rows, r, o)
        _codes(blanket, columns, o, codes)
        for r in range(n):
            if weights[r] != 0.0:
                slot = slot_start[o] + codes[r]
                totals[slot] += signs[o] * weights[r]
                chosen[slot] = r
        for f in range(start[o], start[o + 1]):
            codes[:] = offsets[f]
            _add_offsets(settled.members, columns, f, codes)
            for r in range(n):
                counts[codes[r]] += weights[r]


@in_place
def write_slots(columns, blanket, slot_start, o, out):
    """The slot of a set in every row."""
    _codes(blanket, columns, o, out)
    for r in range(len(out)):
        out[r] += slot_start[o]


@in_place
def write_bases(states, factor_start, offsets, fixed, item_set, item_row, item_start, bases):
    """The entry of every factor of an item if the variables of its set are in their first states."""
    for i in range(len(item_set)):
        first = factor_start[item_set[i]]
        for f in range(first, factor_start[item_set[i] + 1]):
            bases[item_start[i] + f - first] = _entry(offsets[f], fixed, states, item_row[i], f)


@step
def _read(u, sets, bases, b, o, table):
    """The scores of the configurations of a set; returns their number."""
    K = sets.sizes[o]
    for s in range(K):
        table[s] = 0.0
    for f in range(sets.factor_start[o + 1] - sets.factor_start[o]):
        base, first = bases[b + f], sets.map_start[o] + f * K
        for s in range(K):
            table[s] += u[base + sets.maps[first + s]]
    return K


@step
def _add(sets, bases, b, o, table, out):
    """The transpose of `_read`."""
    K = sets.sizes[o]
    for f in range(sets.factor_start[o + 1] - sets.factor_start[o]):
        base, first = bases[b + f], sets.map_start[o] + f * K
        for s in range(K):
            out[base + sets.maps[first + s]] += table[s]


@in_place
def _normalise(table, K):
    """Scores become probabilities; returns log Z."""
    top = table[0]
    for s in range(1, K):
        top = max(top, table[s])
    if top == -np.inf:  # nothing is possible, and nothing has a probability
        table[:K] = 0.0
        return top
    z = 0.0
    for s in range(K):
        table[s] = exp(table[s] - top)
        z += table[s]
    for s in range(K):
        table[s] /= z
    return top + np.log(z)


@step
def _best(table, K):
    """The first configuration of the largest score."""
    best = np.uint64(0)
    for s in range(K):
        if table[s] > table[best]:
            best = s
    return best


@in_place
def sums(u, sets, items, lo, hi, P, gradient, table):
    """The weighted sum of log Z of the items lo..hi. Its gradient is added to `gradient`; probabilities go to P, if that has
    room. `table` is scratch for the largest set."""
    total = 0.0
    for i in range(lo, hi):
        K = _read(u, sets, items.bases, items.start[i], items.sets[i], table)
        total += items.weights[i] * _normalise(table, K)
        if len(P):
            for s in range(K):
                P[items.p_start[i] + s] = table[s]
        for s in range(K):
            table[s] *= items.weights[i]
        _add(sets, items.bases, items.start[i], items.sets[i], table, gradient)
    return total


@in_place
def product(v, sets, items, lo, hi, P, out, table):
    """Covariances of the entries with the sum of v, weighted, are added to `out`: a product with the Hessian of `sums`."""
    for i in range(lo, hi):
        K, first = _read(v, sets, items.bases, items.start[i], items.sets[i], table), items.p_start[i]
        mean = 0.0
        for s in range(K):
            mean += P[first + s] * table[s]
        for s in range(K):
            table[s] = items.weights[i] * P[first + s] * (table[s] - mean)
        _add(sets, items.bases, items.start[i], items.sets[i], table, out)


@in_place
def variances(sets, items, lo, hi, P, out, p):
    """Variances of the entries, one by one, are added to `out`, weighted. `p` is scratch for the largest table, all zero."""
    for i in range(lo, hi):
        o = items.sets[i]
        K = sets.sizes[o]
        for f in range(sets.factor_start[o + 1] - sets.factor_start[o]):
            base, first = items.bases[items.start[i] + f], sets.map_start[o] + f * K
            for s in range(K):
                p[sets.maps[first + s]] += P[items.p_start[i] + s]
            for s in range(K):
                entry = sets.maps[first + s]
                out[base + entry] += items.weights[i] * p[entry] * (1.0 - p[entry])
                p[entry] = 0.0


@in_place
def residuals(rows, u, sets, fixed, settled, lo, hi, out, table, bases):
    """For rows lo..hi, settled entries less expected ones: the gradient of what each row adds. Sets that are larger than
    `table` are left out. `bases` is scratch for the most factors of a set."""
    states = rows.states
    for r in range(lo, hi):
        for o in range(len(sets.sizes)):
            w = _weight(rows, r, o)
            if w == 0.0:
                continue
            for f in range(settled.start[o], settled.start[o + 1]):
                out[r - lo, _entry(settled.offsets[f], settled.members, states, r, f)] += w
            if sets.sizes[o] > len(table):
                continue
            first = sets.factor_start[o]
            for f in range(first, sets.factor_start[o + 1]):
                bases[f - first] = _entry(np.int64(sets.offsets[f]), fixed, states, r, f)
            K = _read(u, sets, bases, np.uint64(0), o, table)
            _normalise(table, K)
            for s in range(K):
                table[s] *= -rows.signs[o] * w
            _add(sets, bases, np.uint64(0), o, table, out[r - lo])


@in_place
def evaluate(u, sets, items, lo, hi, P, log_z, table):
    """log Z of the items lo..hi and, if P has room, their probabilities."""
    for i in range(lo, hi):
        K = _read(u, sets, items.bases, items.start[i], items.sets[i], table)
        log_z[i] = _normalise(table, K)
        if len(P):
            for s in range(K):
                P[items.p_start[i] + s] = table[s]


@in_place
def maxima(u, sets, items, lo, hi, choice, best, counts, table):
    """The best configuration of the items lo..hi and its score. Entries that it picks are added to `counts`, weighted."""
    for i in range(lo, hi):
        o, b = items.sets[i], items.start[i]
        K = _read(u, sets, items.bases, b, o, table)
        s = _best(table, K)
        choice[i], best[i] = s, table[s]
        for f in range(sets.factor_start[o + 1] - sets.factor_start[o]):
            counts[items.bases[b + f] + sets.maps[sets.map_start[o] + f * K + s]] += items.weights[i]


@in_place
def surplus(u, sets, items, lo, hi, choice, table):
    """The weighted sum of log Z of items less the score of the configuration chosen in each.

    Differences are taken before they are added up: where a choice is nearly certain, log Z and its score are large and equal
    but for the last digits, and those digits are all there is.
    """
    total = 0.0
    for i in range(lo, hi):
        K = _read(u, sets, items.bases, items.start[i], items.sets[i], table)
        chosen, top = table[choice[i]], table[_best(table, K)]
        if chosen == -np.inf:  # impossible
            total += np.inf
            continue
        z = 0.0
        for s in range(K):
            if s != choice[i]:
                z += exp(table[s] - top)
        total += items.weights[i] * (np.log1p(z) if top == chosen else top - chosen + np.log(z + exp(chosen - top)))
    return total
