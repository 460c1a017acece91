"""Windows of chains as chains of their own, and their sums added up again at the positions that they come from.

Row r of the windows is position ``rows[r]``. A window between labels that are known gets the scores of the transitions from
the label before (`left`) and into the label after it (`right`); -1 where the window begins or ends the chain.
"""

from __future__ import annotations

from ...numerics.jit import kernel, sum_kernel
from .forward_backward import variances
from .forward_backward_padded import padded_sums


@kernel
def unroll(U, A, rows, offsets, left, right, lo, hi, out):
    """Scores of the labels of the windows lo..hi."""
    n = A.shape[0]
    for w in range(lo, hi):
        first, last = offsets[w], offsets[w + 1] - 1
        for r in range(first, last + 1):
            t = rows[r]
            for v in range(n):
                out[r, v] = U[t, v]
        if left[w] >= 0:
            for v in range(n):
                out[first, v] += A[left[w], v]
        if right[w] >= 0:
            for v in range(n):
                out[last, v] += A[v, right[w]]


@kernel
def add_boundaries(P, offsets, left, right, lo, hi, C):
    """Add what the labels at the ends of the windows lo..hi say of the transitions into and out of them."""
    n = C.shape[0]
    for w in range(lo, hi):
        first, last = offsets[w], offsets[w + 1] - 1
        if left[w] >= 0:
            for v in range(n):
                C[left[w], v] += P[first, v]
        if right[w] >= 0:
            for v in range(n):
                C[v, right[w]] += P[last, v]


@kernel
def collect(P, rows, pointers, lo, hi, out):
    """out[t] = the sum of the rows of P that come from position t, ``rows[pointers[t] : pointers[t + 1]]``."""
    n = P.shape[1]
    for t in range(lo, hi):
        for v in range(n):
            out[t, v] = 0.0
        for q in range(pointers[t], pointers[t + 1]):
            r = rows[q]
            for v in range(n):
                out[t, v] += P[r, v]


@sum_kernel
def window_sums(U, A, M, MT, shift, base, windows, w, lo, hi, room, variance, R, ends, C, log_z):
    """As `kernels.forward_backward_padded.padded_sums` for the windows lo..hi, whose rows are ``rows - base`` of U.

    R gets the sums over windows at each row, `ends` those of transitions from and to known labels, both with `variance` of
    variances; C gets the transitions inside, up to the factor M. `room` are four arrays for a few windows at a time.
    """
    _, rows, offsets, left, right = windows
    scores, alpha, B, P = room
    n, hard, i = A.shape[0], 0, lo
    R[:] = 0.0
    while i < hi:
        j = i + 1
        while j < hi and offsets[j + 1] - offsets[i] <= len(scores):
            j += 1
        start = offsets[i]
        local, local_rows = offsets[i : j + 1] - start, rows[start : offsets[j]] - base
        unroll(U, A, local_rows, local, left[i:j], right[i:j], 0, j - i, scores)
        hard += padded_sums(scores, M, MT, shift, local, w[i:j], alpha, B, P, C, log_z[i:j])
        if variance:
            variances(P, local, w[i:j], 0, j - i, P)
        add_boundaries(P, local, left[i:j], right[i:j], 0, j - i, ends)
        for r in range(len(local_rows)):
            t = local_rows[r]
            for v in range(n):
                R[t, v] += P[r, v]
        i = j
    return hard
