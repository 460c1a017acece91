"""Loopy belief propagation on factor graphs in the log domain: sum-product, max-product and tree-reweighted messages.

Sweeps are sequential (one factor after another), parallel (all from the old messages) or residual (largest change first).
Tuples of arrays are those of `factor_layout`.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from ...numerics.jit import in_place, step
from ...numerics.math import exp


class ResidualQueue(NamedTuple):
    """Factors by the change that their update would make: a binary heap, the largest first. Of each factor:"""

    residual: FloatArray  #: (F,)
    heap: IntArray  #: (F,) factors
    position: IntArray  #: (F,) where a factor is in the heap


@in_place
def set_log_beliefs(layout, rho, states, lo, hi, messages):
    """Log beliefs of variables lo..hi from the messages to them."""
    log_beliefs = messages.log_beliefs
    for i in range(lo, hi):
        a, b = layout.var_offsets[i], layout.var_offsets[i + 1]
        for s in range(a, b):
            log_beliefs[s] = states[s]
        for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
            e = layout.var_edges[k]
            r = rho[layout.edge_factor[e]]
            first = layout.edge_offsets[e]
            for x in range(b - a):
                log_beliefs[a + x] += r * messages.to_variables[first + x]


@step
def _factor_belief(f, layout, tables, scale, messages, work):
    """Write the messages that factor f receives and its log belief, not normalised; returns the largest entry."""
    off = layout.fac_offsets[f]
    size = layout.fac_offsets[f + 1] - off
    log_belief, incoming = work.log_belief, work.incoming
    for x in range(size):
        log_belief[x] = tables[off + x] * scale
    p = 0
    for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
        i = layout.edge_var[e]
        a = layout.var_offsets[i]
        count = layout.var_offsets[i + 1] - a
        stride = layout.strides[e]
        for x in range(count):
            incoming[p + x] = messages.log_beliefs[a + x] - messages.to_variables[layout.edge_offsets[e] + x]
        at = 0
        while at < size:
            for x in range(count):
                add = incoming[p + x]
                for _ in range(stride):
                    log_belief[at] += add
                    at += 1
        p += count
    top = -np.inf
    for x in range(size):
        top = max(top, log_belief[x])
    return top


@in_place
def _max_out(log_belief, size, x, stride, count):
    """The largest of the entries in which a variable has state x."""
    peak = -np.inf
    for block in range(x * stride, size, stride * count):
        for y in range(block, block + stride):
            peak = max(peak, log_belief[y])
    return peak


@in_place
def _log_sum_out(log_belief, size, x, stride, count):
    """The log of the sum of the exponentials of these entries."""
    peak = _max_out(log_belief, size, x, stride, count)
    z = 0.0
    for block in range(x * stride, size, stride * count):
        for y in range(block, block + stride):
            z += exp(log_belief[y] - peak)
    return peak + np.log(z)


@in_place
def factor_messages(f, layout, tables, rho, max_product, messages, work):
    """Messages from factor f to its variables into ``work.outgoing``, one variable after another, not normalised.

    Returns the log of the sum of the factor's belief (or its maximum). ``work.log_belief`` has the logarithms of its entries
    and ``work.belief``, except in max-product, their exponentials, the largest being one.
    """
    top = _factor_belief(f, layout, tables, 1.0 if max_product else 1.0 / rho[f], messages, work)
    size = layout.fac_offsets[f + 1] - layout.fac_offsets[f]
    belief, incoming, outgoing = work.belief, work.incoming, work.outgoing
    total = 0.0
    if not max_product:
        for x in range(size):
            belief[x] = exp(work.log_belief[x] - top)
        for x in range(size):
            total += belief[x]
    p = 0
    for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
        i = layout.edge_var[e]
        count = layout.var_offsets[i + 1] - layout.var_offsets[i]
        stride = layout.strides[e]
        for x in range(count):
            if incoming[p + x] == -np.inf:
                outgoing[p + x] = 0.0
                continue
            if max_product:
                outgoing[p + x] = _max_out(work.log_belief, size, x, stride, count) - incoming[p + x]
                continue
            z = 0.0
            for block in range(x * stride, size, stride * count):
                for y in range(block, block + stride):
                    z += belief[y]
            if z > 1e-250:
                outgoing[p + x] = top + np.log(z) - incoming[p + x]
            else:  # too small beside the largest entry of all: scaled by its own largest
                outgoing[p + x] = _log_sum_out(work.log_belief, size, x, stride, count) - incoming[p + x]
        p += count
    return top if max_product else top + np.log(total)


@step
def _normalise(f, layout, cap, messages, outgoing):
    """Shift messages so that the largest of each edge is zero, and end the smallest at -cap.

    Where tables forbid, a state may lose a share of what it has in every round of a cycle: its logarithm then goes to -inf,
    often twice as far in every sweep, and the digits of all sums with it.
    """
    log_beliefs = messages.log_beliefs
    p = 0
    for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
        i = layout.edge_var[e]
        a = layout.var_offsets[i]
        count = layout.var_offsets[i + 1] - a
        top = -np.inf
        for x in range(count):
            if log_beliefs[a + x] > -np.inf:
                top = max(top, outgoing[p + x])
        for x in range(count):
            if log_beliefs[a + x] > -np.inf:
                outgoing[p + x] = max(outgoing[p + x] - top, -cap)
        p += count


@step
def _new_messages(f, layout, tables, update, messages, work):
    """The normalised messages of factor f, into ``work.outgoing``."""
    factor_messages(f, layout, tables, update.rho, update.max_product, messages, work)
    _normalise(f, layout, update.cap, messages, work.outgoing)


@step
def _apply(f, layout, update, outgoing, messages):
    """Replace the messages of factor f, update log beliefs, and return the largest change asked for."""
    m, log_beliefs = messages.to_variables, messages.log_beliefs
    r = 1.0 if update.max_product else update.rho[f]
    change = 0.0
    p = 0
    for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
        i = layout.edge_var[e]
        a = layout.var_offsets[i]
        for x in range(layout.var_offsets[i + 1] - a):
            d = outgoing[p] - m[layout.edge_offsets[e] + x]
            change = max(change, abs(d))
            d *= 1.0 - update.damping
            m[layout.edge_offsets[e] + x] += d
            log_beliefs[a + x] += r * d
            p += 1
    return change


@in_place
def sweep_sequential(layout, tables, update, order, backward, messages, work):
    """One factor after another, each with the newest messages; returns the largest change."""
    change = 0.0
    count = len(order)
    for k in range(count):
        f = order[count - 1 - k if backward else k]
        _new_messages(f, layout, tables, update, messages, work)
        change = max(change, _apply(f, layout, update, work.outgoing, messages))
    return change


@in_place
def sweep_parallel(layout, tables, update, messages, lo, hi, out, work):
    """Messages of factors lo..hi into out, all from the old ones; returns the largest change."""
    m, outgoing = messages.to_variables, work.outgoing
    change = 0.0
    for f in range(lo, hi):
        _new_messages(f, layout, tables, update, messages, work)
        first = layout.edge_offsets[layout.fac_ptr[f]]
        for p in range(layout.edge_offsets[layout.fac_ptr[f + 1]] - first):
            d = outgoing[p] - m[first + p]
            change = max(change, abs(d))
            out[first + p] = m[first + p] + (1.0 - update.damping) * d
    return change


@in_place
def _residual(f, layout, tables, update, messages, work):
    """The largest change that the update of factor f would make."""
    _new_messages(f, layout, tables, update, messages, work)
    change = 0.0
    first = layout.edge_offsets[layout.fac_ptr[f]]
    for p in range(layout.edge_offsets[layout.fac_ptr[f + 1]] - first):
        change = max(change, abs(work.outgoing[p] - messages.to_variables[first + p]))
    return change


@in_place
def _sift(queue, k):
    """Move entry k of the heap to where it belongs."""
    residual, heap, position = queue.residual, queue.heap, queue.position
    f = heap[k]
    while k > 0 and residual[heap[(k - 1) // 2]] < residual[f]:
        heap[k] = heap[(k - 1) // 2]
        position[heap[k]] = k
        k = (k - 1) // 2
    size = len(heap)
    while 2 * k + 1 < size:
        c = 2 * k + 1
        if c + 1 < size and residual[heap[c + 1]] > residual[heap[c]]:
            c += 1
        if residual[heap[c]] <= residual[f]:
            break
        heap[k] = heap[c]
        position[heap[k]] = k
        k = c
    heap[k] = f
    position[f] = k


@in_place
def residual_start(layout, tables, update, messages, queue, work):
    """Residuals of all factors, and the heap of them."""
    for f in range(len(queue.heap)):
        queue.residual[f] = -1.0
        queue.heap[f] = f
        queue.position[f] = f
    for f in range(len(queue.heap)):
        queue.residual[f] = _residual(f, layout, tables, update, messages, work)
        _sift(queue, queue.position[f])


@in_place
def sweep_residual(layout, tables, update, tol, messages, queue, work):
    """Residual belief propagation: as many updates as there are factors, the largest change first.

    Returns the largest change left.
    """
    for _ in range(len(queue.heap)):
        f = queue.heap[0]
        if not queue.residual[f] > tol:
            break
        _new_messages(f, layout, tables, update, messages, work)
        _apply(f, layout, update, work.outgoing, messages)
        for e in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
            i = layout.edge_var[e]
            for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
                g = layout.edge_factor[layout.var_edges[k]]
                queue.residual[g] = _residual(g, layout, tables, update, messages, work)
                _sift(queue, queue.position[g])
    return queue.residual[queue.heap[0]]


@step
def _max_marginal(e, layout, tables, messages, y, log_belief, out):
    """What the factor of edge e adds to the max-marginals of its variable, the variables in y (not -1) being fixed."""
    f = layout.edge_factor[e]
    off = layout.fac_offsets[f]
    size = layout.fac_offsets[f + 1] - off
    for x in range(size):
        log_belief[x] = tables[off + x]
    for g in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
        j = layout.edge_var[g]
        if g == e:
            continue
        at = 0
        while at < size:
            for x in range(layout.var_offsets[j + 1] - layout.var_offsets[j]):
                if y[j] < 0:
                    add = messages.log_beliefs[layout.var_offsets[j] + x] - messages.to_variables[layout.edge_offsets[g] + x]
                else:
                    add = 0.0 if y[j] == x else -np.inf
                for _ in range(layout.strides[g]):
                    log_belief[at] += add
                    at += 1
    count = layout.edge_offsets[e + 1] - layout.edge_offsets[e]
    for x in range(count):
        out[x] = _max_out(log_belief, size, x, layout.strides[e], count)


@step
def _best_state(i, layout, potentials, messages, y, work):
    """The state of variable i with the largest max-marginal, the variables in y (not -1) being fixed."""
    score, sent = work.incoming, work.outgoing
    a = layout.var_offsets[i]
    count = layout.var_offsets[i + 1] - a
    for x in range(count):
        score[x] = potentials.states[a + x]
    for k in range(layout.var_ptr[i], layout.var_ptr[i + 1]):
        _max_marginal(layout.var_edges[k], layout, potentials.tables, messages, y, work.log_belief, sent)
        for x in range(count):
            score[x] += sent[x]
    best = 0
    for x in range(count):
        if score[x] > score[best]:
            best = x
    return best


@in_place
def decode(layout, potentials, messages, order, y, work):
    """States by max-marginals, one variable after another given those before it: the best configuration on a tree."""
    for i in range(len(order)):
        y[i] = -1
    for i in order:
        y[i] = _best_state(i, layout, potentials, messages, y, work)
