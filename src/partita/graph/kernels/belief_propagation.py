"""Reweighted sum-product and max-product on factor graphs, in the log domain.

A layout is a tuple of int64 arrays: where the states of a variable begin, where a table begins, where the members of a
table begin, then of each member: its variable, where its messages begin, its stride in the table. Members of variables are
(offsets, numbers). Messages m go from tables to variables; totals[s] = states[s] + the sum of rho m of the variable.
Forbidden states have a total of -inf and messages of zero. All other messages are finite: `Layout.prune` has removed states
that no table allows.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from ...numerics.math import exp
from .conditional import conditional_scores

#: A few units in the last place.
ROUNDING = 2e-15
#: The mass that tables with forbidden entries may lack.
SMALL = 1e-8


@kernel
def set_totals(layout, incident, edge_factor, rho, states, m, lo, hi, totals):
    """Totals of variables lo:hi from messages."""
    var_offsets, edge_offsets = layout[0], layout[4]
    starts, members = incident
    for i in range(lo, hi):
        a, b = var_offsets[i], var_offsets[i + 1]
        for s in range(a, b):
            totals[s] = states[s]
        for k in range(starts[i], starts[i + 1]):
            e = members[k]
            r = rho[edge_factor[e]]
            first = edge_offsets[e]
            for x in range(b - a):
                totals[a + x] += r * m[first + x]


@kernel
def table_messages(f, layout, tables, rho, totals, m, best, T, E, n, new):
    """Messages of table f into new, members one after another, not normalised; returns log of its sum (or its maximum).

    T gets the logarithms of the entries of the belief, up to the returned number; E and n are scratch.
    """
    var_offsets, fac_offsets, fac_ptr, edge_var, edge_offsets, strides = layout
    off = fac_offsets[f]
    size = fac_offsets[f + 1] - off
    scale = 1.0 if best else 1.0 / rho[f]
    for x in range(size):
        T[x] = tables[off + x] * scale
    p = 0
    for e in range(fac_ptr[f], fac_ptr[f + 1]):
        i = edge_var[e]
        a = var_offsets[i]
        count = var_offsets[i + 1] - a
        stride = strides[e]
        for x in range(count):
            n[p + x] = totals[a + x] - m[edge_offsets[e] + x]
        at = 0
        while at < size:
            for x in range(count):
                add = n[p + x]
                for _ in range(stride):
                    T[at] += add
                    at += 1
        p += count
    top = -np.inf
    for x in range(size):
        top = max(top, T[x])
    total = 0.0
    if not best:
        for x in range(size):
            E[x] = exp(T[x] - top)
        for x in range(size):
            total += E[x]
    p = 0
    for e in range(fac_ptr[f], fac_ptr[f + 1]):
        i = edge_var[e]
        count = var_offsets[i + 1] - var_offsets[i]
        stride = strides[e]
        jump = stride * count
        for x in range(count):
            if n[p + x] == -np.inf:
                new[p + x] = 0.0
                continue
            z, peak = 0.0, -np.inf
            if not best:
                for block in range(x * stride, size, jump):
                    for y in range(block, block + stride):
                        z += E[y]
            if z > 1e-250:
                new[p + x] = top + np.log(z) - n[p + x]
                continue
            for block in range(x * stride, size, jump):
                for y in range(block, block + stride):
                    peak = max(peak, T[y])
            if not best:
                z = 0.0
                for block in range(x * stride, size, jump):
                    for y in range(block, block + stride):
                        z += exp(T[y] - peak)
                peak += np.log(z)
            new[p + x] = peak - n[p + x]
        p += count
    return top if best else top + np.log(total)


@kernel
def _normalise(f, layout, totals, cap, new):
    """Shift messages so that the largest of each member is zero, and end the smallest at -cap.

    Where tables forbid, a state may lose a share of what it has in every round of a cycle: its logarithm then goes to -inf,
    often twice as far in every sweep, and the digits of all sums with it.
    """
    var_offsets, fac_ptr, edge_var = layout[0], layout[2], layout[3]
    p = 0
    for e in range(fac_ptr[f], fac_ptr[f + 1]):
        i = edge_var[e]
        a = var_offsets[i]
        count = var_offsets[i + 1] - a
        top = -np.inf
        for x in range(count):
            if totals[a + x] > -np.inf:
                top = max(top, new[p + x])
        for x in range(count):
            if totals[a + x] > -np.inf:
                new[p + x] = max(new[p + x] - top, -cap)
        p += count


@kernel
def _apply(f, layout, rho, damping, best, totals, m, new):
    """Replace the messages of table f, update totals, and return the largest change asked for."""
    var_offsets, fac_ptr, edge_var, edge_offsets = layout[0], layout[2], layout[3], layout[4]
    r = 1.0 if best else rho[f]
    change = 0.0
    p = 0
    for e in range(fac_ptr[f], fac_ptr[f + 1]):
        i = edge_var[e]
        a = var_offsets[i]
        for x in range(var_offsets[i + 1] - a):
            d = new[p] - m[edge_offsets[e] + x]
            change = max(change, abs(d))
            d *= 1.0 - damping
            m[edge_offsets[e] + x] += d
            totals[a + x] += r * d
            p += 1
    return change


@kernel
def sweep_sequential(layout, tables, rho, order, backward, damping, best, cap, totals, m, T, E, n, new):
    """One table after another, each with the newest messages; returns the largest change."""
    change = 0.0
    count = len(order)
    for k in range(count):
        f = order[count - 1 - k if backward else k]
        table_messages(f, layout, tables, rho, totals, m, best, T, E, n, new)
        _normalise(f, layout, totals, cap, new)
        change = max(change, _apply(f, layout, rho, damping, best, totals, m, new))
    return change


@kernel
def sweep_parallel(layout, tables, rho, damping, best, cap, totals, m, lo, hi, out, T, E, n, new):
    """Messages of tables lo:hi into out, all from the old ones; returns the largest change."""
    fac_ptr, edge_offsets = layout[2], layout[4]
    change = 0.0
    for f in range(lo, hi):
        table_messages(f, layout, tables, rho, totals, m, best, T, E, n, new)
        _normalise(f, layout, totals, cap, new)
        first = edge_offsets[fac_ptr[f]]
        for p in range(edge_offsets[fac_ptr[f + 1]] - first):
            d = new[p] - m[first + p]
            change = max(change, abs(d))
            out[first + p] = m[first + p] + (1.0 - damping) * d
    return change


@kernel
def _residual(f, layout, tables, rho, totals, m, best, cap, T, E, n, new):
    """The largest change that table f would make."""
    fac_ptr, edge_offsets = layout[2], layout[4]
    table_messages(f, layout, tables, rho, totals, m, best, T, E, n, new)
    _normalise(f, layout, totals, cap, new)
    change = 0.0
    first = edge_offsets[fac_ptr[f]]
    for p in range(edge_offsets[fac_ptr[f + 1]] - first):
        change = max(change, abs(new[p] - m[first + p]))
    return change


@kernel
def _sift(heap, place, key, k):
    """Move entry k of a heap (largest key first) to where it belongs."""
    f = heap[k]
    while k > 0 and key[heap[(k - 1) // 2]] < key[f]:
        heap[k] = heap[(k - 1) // 2]
        place[heap[k]] = k
        k = (k - 1) // 2
    size = len(heap)
    while 2 * k + 1 < size:
        c = 2 * k + 1
        if c + 1 < size and key[heap[c + 1]] > key[heap[c]]:
            c += 1
        if key[heap[c]] <= key[f]:
            break
        heap[k] = heap[c]
        place[heap[k]] = k
        k = c
    heap[k] = f
    place[f] = k


@kernel
def residual_start(layout, tables, rho, best, cap, totals, m, key, heap, place, T, E, n, new):
    """Keys of all tables, and the heap of them."""
    for f in range(len(heap)):
        key[f] = -1.0
        heap[f] = f
        place[f] = f
    for f in range(len(heap)):
        key[f] = _residual(f, layout, tables, rho, totals, m, best, cap, T, E, n, new)
        _sift(heap, place, key, place[f])


@kernel
def sweep_residual(
    layout, incident, edge_factor, tables, rho, damping, best, cap, tol, totals, m, key, heap, place, T, E, n, new
):
    """As many updates as there are tables, the largest change first; returns the largest change left."""
    fac_ptr, edge_var = layout[2], layout[3]
    starts, members = incident
    for _ in range(len(heap)):
        f = heap[0]
        if not key[f] > tol:
            break
        table_messages(f, layout, tables, rho, totals, m, best, T, E, n, new)
        _normalise(f, layout, totals, cap, new)
        _apply(f, layout, rho, damping, best, totals, m, new)
        for e in range(fac_ptr[f], fac_ptr[f + 1]):
            i = edge_var[e]
            for k in range(starts[i], starts[i + 1]):
                g = edge_factor[members[k]]
                key[g] = _residual(g, layout, tables, rho, totals, m, best, cap, T, E, n, new)
                _sift(heap, place, key, place[g])
    return key[heap[0]]


@kernel
def conclude(
    layout, order, lo, hi, tables, rho, examples, fac_examples, totals, m, value, slack, b_states, b_tables, T, E, n, new
):
    """Beliefs about variables lo:hi and about tables in `order`, which have no others; adds to `value` the reweighted log Z
    of the examples and to `slack` how far it may be below log Z.

    With c_i, c_a the logarithms of the sums of beliefs, value = sum_i c_i + sum_a rho_a (c_a - sum_{i in a} c_i), and the
    slack is sum_a rho_a max_i max_{x_i} log(sum of b_a over the others / b_i), which is the change of a message. What
    rounding may do is added to it: messages that diverge cancel in the value, and lose its digits.
    """
    var_offsets, fac_offsets, fac_ptr, edge_var, edge_offsets = layout[0], layout[1], layout[2], layout[3], layout[4]
    norm = np.empty(hi - lo)
    reach, members = np.zeros(len(norm)), np.ones(len(norm))
    for f in order:
        for e in range(fac_ptr[f], fac_ptr[f + 1]):
            i = edge_var[e]
            high = 0.0
            for x in range(edge_offsets[e], edge_offsets[e] + var_offsets[i + 1] - var_offsets[i]):
                high = max(high, abs(m[x]))
            reach[i - lo] += max(1.0, rho[f]) * high
            members[i - lo] += 1.0
    for i in range(lo, hi):
        high = 0.0
        for s in range(var_offsets[i], var_offsets[i + 1]):
            if totals[s] > -np.inf:
                high = max(high, abs(totals[s]))
        reach[i - lo] += high
        slack[examples[i]] += ROUNDING * members[i - lo] * reach[i - lo]
        top = -np.inf
        for s in range(var_offsets[i], var_offsets[i + 1]):
            top = max(top, totals[s])
        z = 0.0
        for s in range(var_offsets[i], var_offsets[i + 1]):
            b_states[s] = exp(totals[s] - top)
            z += b_states[s]
        for s in range(var_offsets[i], var_offsets[i + 1]):
            b_states[s] /= z
        norm[i - lo] = top + np.log(z)
        value[examples[i]] += norm[i - lo]
    for f in order:
        c = table_messages(f, layout, tables, rho, totals, m, False, T, E, n, new)
        off = fac_offsets[f]
        z = 0.0
        for x in range(fac_offsets[f + 1] - off):
            z += E[x]
        for x in range(fac_offsets[f + 1] - off):
            b_tables[off + x] = E[x] / z
        high = 0.0
        for x in range(off, fac_offsets[f + 1]):
            if tables[x] > -np.inf:
                high = max(high, abs(tables[x]))
        high /= rho[f]
        part = c
        worst = 0.0
        p = 0
        for e in range(fac_ptr[f], fac_ptr[f + 1]):
            i = edge_var[e]
            part -= norm[i - lo]
            high += reach[i - lo]
            for x in range(var_offsets[i + 1] - var_offsets[i]):
                if totals[var_offsets[i] + x] > -np.inf:
                    worst = max(worst, new[p] - m[edge_offsets[e] + x] - c + norm[i - lo])
                p += 1
        value[fac_examples[f]] += rho[f] * part
        slack[fac_examples[f]] += rho[f] * (worst + ROUNDING * high)


@kernel
def attained(layout, order, lo, hi, states, tables, rho, examples, fac_examples, b_states, b_tables, value, T, E, p, rest):
    """Adds <scores, tau> + H_rho(tau) to `value`, with the given marginals of variables and tables made to agree with them.

    A table is scaled to the marginals of its members once, then down to them where it is above, and what is missing is added
    as a product. In tables that forbid entries it is scaled more often; if more than `SMALL` is missing then, the value is
    -inf, else it is taken off what that could cost.
    """
    var_offsets, fac_offsets, fac_ptr, edge_var, _, strides = layout
    entropy = np.zeros(hi - lo)
    for i in range(lo, hi):
        total = 0.0
        for s in range(var_offsets[i], var_offsets[i + 1]):
            if b_states[s] > 0.0:
                total += states[s] * b_states[s]
                entropy[i - lo] -= b_states[s] * np.log(b_states[s])
        value[examples[i]] += total + entropy[i - lo]
    for f in order:
        off = fac_offsets[f]
        size = fac_offsets[f + 1] - off
        for x in range(size):
            T[x] = b_tables[off + x]
        high, forbids = 0.0, False
        for x in range(off, off + size):
            if tables[x] == -np.inf:
                forbids = True
            else:
                high = max(high, abs(tables[x]))
        last = (20 if forbids else 1) + 1
        for turn in range(last + 1):  # scale (often where nothing can be added), scale down, see what is missing
            at = 0
            for e in range(fac_ptr[f], fac_ptr[f + 1]):
                a = var_offsets[edge_var[e]]
                count = var_offsets[edge_var[e] + 1] - a
                stride = strides[e]
                for x in range(count):
                    total = 0.0
                    for block in range(x * stride, size, stride * count):
                        for y in range(block, block + stride):
                            total += T[y]
                    factor = b_states[a + x] / total if total > 0.0 else 1.0
                    if turn == last:
                        rest[at + x] = max(b_states[a + x] - total, 0.0)
                    elif turn < last - 1 or factor < 1.0:
                        for block in range(x * stride, size, stride * count):
                            for y in range(block, block + stride):
                                T[y] *= factor
                at += count
        missing = 0.0
        for x in range(var_offsets[edge_var[fac_ptr[f]] + 1] - var_offsets[edge_var[fac_ptr[f]]]):
            missing += rest[x]
        if forbids and missing > SMALL:
            value[fac_examples[f]] = -np.inf
            continue
        total = -missing * (high + rho[f] * 40.0) if forbids else 0.0  # what it could cost
        for x in range(size):
            if missing > 0.0 and not forbids:
                more, at = missing, 0
                for e in range(fac_ptr[f], fac_ptr[f + 1]):
                    count = var_offsets[edge_var[e] + 1] - var_offsets[edge_var[e]]
                    more *= rest[at + (x // strides[e]) % count] / missing
                    at += count
                T[x] += more
            if T[x] > 0.0:
                total += tables[off + x] * T[x] - rho[f] * T[x] * np.log(T[x])
        for e in range(fac_ptr[f], fac_ptr[f + 1]):
            total -= rho[f] * entropy[edge_var[e] - lo]
        value[fac_examples[f]] += total


@kernel
def information(layout, b_tables, out, p):
    """For each table the sum of the entropies of its members less its own; p is scratch."""
    var_offsets, fac_offsets, fac_ptr, edge_var, _, strides = layout
    for f in range(len(fac_ptr) - 1):
        off = fac_offsets[f]
        size = fac_offsets[f + 1] - off
        total = 0.0
        for x in range(off, off + size):
            if b_tables[x] > 0.0:
                total += b_tables[x] * np.log(b_tables[x])
        for e in range(fac_ptr[f], fac_ptr[f + 1]):
            count = var_offsets[edge_var[e] + 1] - var_offsets[edge_var[e]]
            stride = strides[e]
            for x in range(count):
                p[x] = 0.0
                for block in range(x * stride, size, stride * count):
                    for y in range(off + block, off + block + stride):
                        p[x] += b_tables[y]
                if p[x] > 0.0:
                    total -= p[x] * np.log(p[x])
        out[f] = total


@kernel
def decode(layout, incident, edge_factor, tables, states, totals, m, order, y, T):
    """States by beliefs, one variable after another given those before it: the best configuration if there are no cycles."""
    var_offsets, fac_offsets, fac_ptr, edge_var, edge_offsets, strides = layout
    starts, members = incident
    for i in range(len(order)):
        y[i] = -1
    widest = 1
    for i in range(len(order)):
        widest = max(widest, var_offsets[i + 1] - var_offsets[i])
    score, peak = np.empty(widest), np.empty(widest)
    for i in order:
        a = var_offsets[i]
        count = var_offsets[i + 1] - a
        for x in range(count):
            score[x] = states[a + x]
        for k in range(starts[i], starts[i + 1]):
            f = edge_factor[members[k]]
            off = fac_offsets[f]
            size = fac_offsets[f + 1] - off
            for x in range(size):
                T[x] = tables[off + x]
            for e in range(fac_ptr[f], fac_ptr[f + 1]):
                j = edge_var[e]
                if j == i:
                    continue
                at = 0
                while at < size:
                    for x in range(var_offsets[j + 1] - var_offsets[j]):
                        if y[j] < 0:
                            add = totals[var_offsets[j] + x] - m[edge_offsets[e] + x]
                        else:
                            add = 0.0 if y[j] == x else -np.inf
                        for _ in range(strides[e]):
                            T[at] += add
                            at += 1
            stride = strides[members[k]]
            for x in range(count):
                top = -np.inf
                for block in range(x * stride, size, stride * count):
                    for z in range(block, block + stride):
                        top = max(top, T[z])
                peak[x] = top
            for x in range(count):
                score[x] += peak[x]
        y[i] = 0
        for x in range(count):
            if score[x] > score[y[i]]:
                y[i] = x


@kernel
def ascend(layout, incident, edge_factor, tables, states, y):
    """Change one variable at a time while the score rises; returns how many changed."""
    var_offsets = layout[0]
    n = len(y)
    widest = 1
    for i in range(n):
        widest = max(widest, var_offsets[i + 1] - var_offsets[i])
    score = np.empty(widest)
    total = 0
    for _sweep in range(100):
        changed = 0
        for i in range(n):
            count = conditional_scores(layout, incident, edge_factor, states, tables, y, i, score)
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
