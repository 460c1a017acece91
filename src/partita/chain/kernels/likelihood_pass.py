"""Loss and gradient of chains in one pass: scores, forward-backward, pull-back, a few chains at a time, within the cache.

Scores and their pull-back are those of `kernels.attributes`, forward-backward is that of `kernels.forward_backward_padded`.
"""

from __future__ import annotations

from ...numerics.jit import sum_kernel
from .attributes import common_scores, common_sums, rare_scores, rare_sums
from .forward_backward import variances
from .forward_backward_padded import padded_forward_backward, workspace
from .tuples import Chains, Entries, Totals
from .windows import cut, window_sums

#: Positions that are done together.
ROOM = 512


@sum_kernel
def accumulate(attributes, values, weights, transitions, chains, windows, variance, lo, hi, totals):
    """Sum the weighted expectations of the features of the chains lo..hi into `totals`; returns how many chains are hard.

    Sums are taken with the pair of `values` in place of those of common and rare attributes: the same, or their squares;
    with `variance`, of variances instead of expectations. If there are `windows`, they are summed over instead of the
    chains, and the weights of `chains` are theirs. `weights` always have what labels get for standing first and last.
    """
    offsets, w = chains
    common, rare, label = attributes
    table, theta, A, first, last = weights
    room, width = ROOM, transitions.M.shape[1]
    for s in range(lo, hi):
        room = max(room, offsets[s + 1] - offsets[s])
    whole = len(windows.begin) == 0
    U, messages = workspace(room, width)
    P, extra = messages.P, workspace(0 if whole else room, width)
    _clear(totals)
    hard, s = 0, lo
    while s < hi:
        e = s + 1
        while e < hi and offsets[e + 1] - offsets[s] <= room:
            e += 1
        start, count = offsets[s], offsets[e] - offsets[s]
        local = offsets[s : e + 1] - start
        pointers = slice(start, offsets[e] + 1)
        c_indptr, r_indptr = common.indptr[pointers], rare.indptr[pointers]
        common_scores(Entries(common.values, common.indices, c_indptr), table, 0, count, U)
        rare_scores(Entries(rare.values, rare.indices, r_indptr), label, theta, 0, count, U)
        _add_ends(local, first, last, U)
        if whole:
            few = Chains(local, w[s:e])
            hard += padded_forward_backward(U, transitions, few, messages, totals.counts, totals.log_z[s:e])
            if variance:
                variances(P, few, 0, e - s, P)
        else:
            a, b = windows.begin[s], windows.begin[e]
            here = Totals(totals.weights, totals.counts, totals.log_z[a:b])
            hard += window_sums(U, A, transitions, cut(windows, a, b, start), w[a:b], variance, extra, P, here)
        _sum_ends(P, local, totals.weights.first, totals.weights.last)
        common_sums(Entries(values[0], common.indices, c_indptr), P, 0, count, totals.weights.table)
        rare_sums(Entries(values[1], rare.indices, r_indptr), label, P, 0, count, totals.weights.rare)
        s = e
    return hard


@sum_kernel
def _clear(totals):
    """Set all sums to zero."""
    table, rare, transitions, first, last = totals.weights
    table[:] = 0.0
    rare[:] = 0.0
    first[:] = 0.0
    last[:] = 0.0
    totals.counts[:] = 0.0
    transitions[:] = 0.0


@sum_kernel
def _add_ends(offsets, first, last, U):
    """Add what labels get for standing first and last."""
    n = len(first)
    for i in range(len(offsets) - 1):
        for v in range(n):
            U[offsets[i], v] += first[v]
        for v in range(n):
            U[offsets[i + 1] - 1, v] += last[v]


@sum_kernel
def _sum_ends(P, offsets, first, last):
    """Sum the marginals of first and of last positions."""
    n = len(first)
    for i in range(len(offsets) - 1):
        for v in range(n):
            first[v] += P[offsets[i], v]
        for v in range(n):
            last[v] += P[offsets[i + 1] - 1, v]
