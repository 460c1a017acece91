"""Small sets of variables of a factor graph, given the states of all others: all configurations are written out.

Tuples of arrays, as `structure.free_sets` makes them:

- sets: number of configurations, where its factors begin, and its maps, of each set; the first entry of each of these
  factors; maps. ``maps[map_start[o] + f * K + s]`` is where configuration s of set o, of K, is in the table of its f-th
  factor, from the entry that the other variables choose;
- fixed: for each of these factors, its variables outside of the set, and their steps;
- settled: for each set, factors whose entry is known, with all their variables and steps;
- data: states, weights of rows, shares of columns (one row for all, or one each), the column and the sign of each set;
- columns: states again, by variable;
- items, which are a set and a configuration of what is around it: the set, where its `bases` begin, bases, weights, and
  where its probabilities begin.

What inner loops index by is unsigned: signed indices are tested for negative values.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp


@kernel
def write_maps(sizes, pair_start, set_start, counts, free_start, free_place, free_stride, map_start, lo, hi, maps):
    """Where every configuration of every set is in the table of each of its factors. The last variable changes first."""
    for o in range(lo, hi):
        K, variables = sizes[o], set_start[o + 1] - set_start[o]
        for f in range(pair_start[o], pair_start[o + 1]):
            first = map_start[o] + (f - pair_start[o]) * K
            for s in range(K):
                rest, place = s, 0
                for v in range(variables - 1, -1, -1):
                    count = counts[set_start[o] + v]
                    for q in range(free_start[f], free_start[f + 1]):
                        if free_place[q] == v:
                            place += rest % count * free_stride[q]
                    rest //= count
                maps[first + s] = place


@kernel
def _weight(data, r, o):
    _, row_weights, shares, columns, _ = data
    return row_weights[r] * shares[r if len(shares) > 1 else 0, columns[o]]


@kernel
def _codes(around, columns, o, out):
    """The number of the configuration around a set in every row: that of the row, if there are too many."""
    start, variables, multipliers, by_row = around
    for r in range(len(out)):
        out[r] = r if by_row[o] else 0
    if not by_row[o]:
        _add_entries(start, variables, multipliers, columns, o, out)


@kernel
def _add_entries(start, variables, strides, columns, f, out):
    """Add steps times states, for every row. `columns` are states by variable."""
    for q in range(start[f], start[f + 1]):
        stride, column = strides[q], columns[variables[q]]
        for r in range(len(out)):
            out[r] += stride * column[r]


@kernel
def _entry(base, start, variables, strides, states, r, f):
    for q in range(start[f], start[f + 1]):
        base += strides[q] * states[r, variables[q]]
    return base


@kernel
def tabulate(data, columns, around, slot_start, settled, lo, hi, totals, rows, counts):
    """Add up the weights of equal items, and the entries that are settled. `rows` has a row of each item."""
    n, signs = columns.shape[1], data[4]
    start, offset, member_start, variables, strides = settled
    codes, weights = np.empty(n, np.int64), np.empty(n)
    for o in range(lo, hi):
        for r in range(n):
            weights[r] = _weight(data, r, o)
        _codes(around, columns, o, codes)
        for r in range(n):
            if weights[r] != 0.0:
                slot = slot_start[o] + codes[r]
                totals[slot] += signs[o] * weights[r]
                rows[slot] = r
        for f in range(start[o], start[o + 1]):
            codes[:] = offset[f]
            _add_entries(member_start, variables, strides, columns, f, codes)
            for r in range(n):
                counts[codes[r]] += weights[r]


@kernel
def write_slots(columns, around, slot_start, o, out):
    """The slot of a set in every row."""
    _codes(around, columns, o, out)
    for r in range(len(out)):
        out[r] += slot_start[o]


@kernel
def write_bases(states, pairs, fixed, item_set, item_row, item_start, lo, hi, bases):
    """The entry of every factor of an item if the variables of its set are in their first states."""
    pair_start, pair_offset = pairs
    start, variables, strides = fixed
    for i in range(lo, hi):
        first = pair_start[item_set[i]]
        for f in range(first, pair_start[item_set[i] + 1]):
            base = _entry(pair_offset[f], start, variables, strides, states, item_row[i], f)
            bases[item_start[i] + f - first] = base


@kernel
def _read(u, sets, bases, b, o, table):
    """The scores of the configurations of a set."""
    sizes, pair_start, _, map_start, maps = sets
    K = sizes[o]
    for s in range(K):
        table[s] = 0.0
    for f in range(pair_start[o + 1] - pair_start[o]):
        base, first = bases[b + f], map_start[o] + f * K
        for s in range(K):
            table[s] += u[base + maps[first + s]]
    return K


@kernel
def _add(sets, bases, b, o, table, out):
    """The transpose of `_read`."""
    sizes, pair_start, _, map_start, maps = sets
    K = sizes[o]
    for f in range(pair_start[o + 1] - pair_start[o]):
        base, first = bases[b + f], map_start[o] + f * K
        for s in range(K):
            out[base + maps[first + s]] += table[s]


@kernel
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


@kernel
def sums(u, sets, items, room, lo, hi, P, gradient):
    """The weighted sum of log Z of items. Its gradient is added to `gradient`; probabilities go to P, if that has room."""
    item_set, item_start, bases, weights, p_start = items
    table, total = np.empty(room), 0.0
    for i in range(lo, hi):
        K = _read(u, sets, bases, item_start[i], item_set[i], table)
        total += weights[i] * _normalise(table, K)
        if len(P):
            for s in range(K):
                P[p_start[i] + s] = table[s]
        for s in range(K):
            table[s] *= weights[i]
        _add(sets, bases, item_start[i], item_set[i], table, gradient)
    return total


@kernel
def product(v, sets, items, room, lo, hi, P, out):
    """Covariances of the entries with the sum of v, weighted, are added to `out`."""
    item_set, item_start, bases, weights, p_start = items
    table = np.empty(room)
    for i in range(lo, hi):
        K = _read(v, sets, bases, item_start[i], item_set[i], table)
        mean = 0.0
        for s in range(K):
            mean += P[p_start[i] + s] * table[s]
        for s in range(K):
            table[s] = weights[i] * P[p_start[i] + s] * (table[s] - mean)
        _add(sets, bases, item_start[i], item_set[i], table, out)


@kernel
def variances(sets, items, room, lo, hi, P, out):
    """Variances of the entries, one by one, are added to `out`, weighted. `room` is that of the largest table."""
    item_set, item_start, bases, weights, p_start = items
    sizes, pair_start, _, map_start, maps = sets
    p = np.zeros(room)
    for i in range(lo, hi):
        o = item_set[i]
        K = sizes[o]
        for f in range(pair_start[o + 1] - pair_start[o]):
            base, first = bases[item_start[i] + f], map_start[o] + f * K
            for s in range(K):
                p[maps[first + s]] += P[p_start[i] + s]
            for s in range(K):
                place = maps[first + s]
                out[base + place] += weights[i] * p[place] * (1.0 - p[place])
                p[place] = 0.0


@kernel
def residuals(data, u, sets, fixed, settled, room, lo, hi, out):
    """For rows lo..hi, settled entries less expected ones: the gradient of what each row adds. Larger sets are left out."""
    states, signs = data[0], data[4]
    sizes, pair_start, pair_offset, _, _ = sets
    start, offset, member_start, variables, strides = settled
    table, bases = np.empty(room), np.empty(np.max(np.diff(pair_start)), np.uint64)
    for r in range(lo, hi):
        for o in range(len(sizes)):
            w = _weight(data, r, o)
            if w == 0.0:
                continue
            for f in range(start[o], start[o + 1]):
                out[r - lo, _entry(offset[f], member_start, variables, strides, states, r, f)] += w
            if sizes[o] > room:
                continue
            for f in range(pair_start[o], pair_start[o + 1]):
                bases[f - pair_start[o]] = _entry(np.int64(pair_offset[f]), fixed[0], fixed[1], fixed[2], states, r, f)
            K = _read(u, sets, bases, np.uint64(0), o, table)
            _normalise(table, K)
            for s in range(K):
                table[s] *= -signs[o] * w
            _add(sets, bases, np.uint64(0), o, table, out[r - lo])


@kernel
def evaluate(u, sets, items, room, lo, hi, P, log_z):
    """log Z of items and, if P has room, their probabilities."""
    item_set, item_start, bases, _, p_start = items
    table = np.empty(room)
    for i in range(lo, hi):
        K = _read(u, sets, bases, item_start[i], item_set[i], table)
        log_z[i] = _normalise(table, K)
        if len(P):
            for s in range(K):
                P[p_start[i] + s] = table[s]


@kernel
def maxima(u, sets, items, room, lo, hi, choice, best, counts):
    """The best configuration of every item and its score. Entries that it picks are added to `counts`, weighted."""
    item_set, item_start, bases, weights, _ = items
    _, pair_start, _, map_start, maps = sets
    table = np.empty(room)
    for i in range(lo, hi):
        o, b = item_set[i], item_start[i]
        K = _read(u, sets, bases, b, o, table)
        s = np.argmax(table[:K])
        choice[i], best[i] = s, table[s]
        for f in range(pair_start[o + 1] - pair_start[o]):
            counts[bases[b + f] + maps[map_start[o] + f * K + s]] += weights[i]


@kernel
def surplus(u, sets, items, room, lo, hi, choice):
    """The weighted sum of log Z of items less the score of the configuration chosen in each.

    Differences are taken before they are added up: where a choice is nearly certain, log Z and its score are large and equal
    but for the last digits, and those digits are all there is.
    """
    item_set, item_start, bases, weights, _ = items
    table, total = np.empty(room), 0.0
    for i in range(lo, hi):
        K = _read(u, sets, bases, item_start[i], item_set[i], table)
        chosen, top = table[choice[i]], np.max(table[:K])
        if chosen == -np.inf:  # impossible
            total += np.inf
            continue
        z = 0.0
        for s in range(K):
            if s != choice[i]:
                z += exp(table[s] - top)
        total += weights[i] * (np.log1p(z) if top == chosen else top - chosen + np.log(z + exp(chosen - top)))
    return total
