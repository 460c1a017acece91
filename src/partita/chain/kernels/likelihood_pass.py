"""Loss and gradient of chains in one pass: scores, sums and their pull-back, a few chains at a time, within the cache.

The layout of attributes is that of `kernels.attributes`, the sums are those of `kernels.forward_backward`.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import sum_kernel
from .attributes import common_scores, common_sums, rare_scores, rare_sums
from .forward_backward import variances
from .forward_backward_padded import padded_sums
from .windows import window_sums


@sum_kernel
def accumulate(
    common, rare, label, weights, A, M, MT, shift, offsets, windows, w, room, factors, variance, lo, hi, table_sum, rare_sum,
    first_sum, last_sum, C, ends, log_z
):  # fmt: skip
    """Sum the weighted expectations of the features of the chains lo..hi; returns how many chains are hard.

    `weights` are the table of common attributes, those of rare ones, and what labels get for standing first and last. `C`
    gets transitions up to the factor M. Sums are taken with `factors` as the values of common and rare attributes; with
    `variance`, of variances instead of expectations. `room` is the number of positions that are done together.
    `windows` (where those of each chain begin, and see `kernels.windows`) are summed instead of the chains if there
    are any, with one weight each; `ends` gets the transitions to the labels around them.
    """
    table, theta, first, last = weights
    common_values, common_indices, common_indptr = common
    rare_values, rare_indices, rare_indptr = rare
    n, width = M.shape
    for s in range(lo, hi):
        room = max(room, offsets[s + 1] - offsets[s])
    U, alpha, B, P = (
        np.full((room, width), -np.inf),
        np.empty((room, width)),
        np.empty((room, width)),
        np.empty((room, width)),
    )
    whole = len(windows[0]) == 0
    copies = 0 if whole else room
    extra = (
        np.full((copies, width), -np.inf),
        np.empty((copies, width)),
        np.empty((copies, width)),
        np.empty((copies, width)),
    )
    table_sum[:] = 0.0
    rare_sum[:] = 0.0
    first_sum[:] = 0.0
    last_sum[:] = 0.0
    C[:] = 0.0
    ends[:] = 0.0
    hard, s = 0, lo
    while s < hi:
        e = s + 1
        while e < hi and offsets[e + 1] - offsets[s] <= room:
            e += 1
        start, count = offsets[s], offsets[e] - offsets[s]
        local = offsets[s : e + 1] - start
        pointers = slice(start, offsets[e] + 1)
        c_indptr, r_indptr = common_indptr[pointers], rare_indptr[pointers]
        common_scores(common_values, common_indices, c_indptr, table, 0, count, U)
        rare_scores(rare_values, rare_indices, r_indptr, label, theta, 0, count, U)
        for i in range(e - s):
            for v in range(n):
                U[local[i], v] += first[v]
            for v in range(n):
                U[local[i + 1] - 1, v] += last[v]
        if whole:
            hard += padded_sums(U, M, MT, shift, local, w[s:e], alpha, B, P, C, log_z[s:e])
            if variance:
                variances(P, local, w[s:e], 0, e - s, P)
        else:
            a, b = windows[0][s], windows[0][e]
            hard += window_sums(U, A, M, MT, shift, start, windows, w, a, b, extra, variance, P, ends, C, log_z)
        for i in range(e - s):
            for v in range(n):
                first_sum[v] += P[local[i], v]
            for v in range(n):
                last_sum[v] += P[local[i + 1] - 1, v]
        common_sums(factors[0], common_indices, c_indptr, P, 0, count, table_sum)
        rare_sums(factors[1], rare_indices, r_indptr, label, P, 0, count, rare_sum)
        s = e
    return hard
