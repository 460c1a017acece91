"""Windows of chains as chains of their own, and their sums added up again at the positions that they come from.

A window (`tuples.Windows`) between labels that are known gets the scores of the transitions from the label before and
into the label after it.
"""

from __future__ import annotations

from ...numerics.jit import kernel, sum_kernel
from .forward_backward import variances
from .forward_backward_padded import padded_forward_backward
from .tuples import Chains, Windows


@kernel
def unroll(U, A, windows, lo, hi, out):
    """Scores of the labels of the windows lo..hi."""
    _, rows, offsets, left, right = windows
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
def add_boundaries(P, windows, lo, hi, C):
    """Add what the labels at the ends of the windows lo..hi say of the transitions into and out of them."""
    _, _, offsets, left, right = windows
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
def cut(windows, lo, hi, base):
    """The windows lo..hi alone, of chains that begin at position `base`."""
    begin, rows, offsets, left, right = windows
    start = offsets[lo]
    return Windows(begin, rows[start : offsets[hi]] - base, offsets[lo : hi + 1] - start, left[lo:hi], right[lo:hi])


@sum_kernel
def window_sums(U, A, transitions, windows, w, variance, room, R, totals):
    """As `kernels.forward_backward_padded.padded_forward_backward` for windows with weights w, whose rows are those of U.

    R gets the marginals summed over windows at each row, the weights of transitions in `totals` those of transitions from
    and to known labels, both with `variance` of variances; its counts get the transitions inside, up to the factor M. `room`
    is for a few windows at a time.
    """
    scores, messages = room
    P, ends, n, hard, i = messages.P, totals.weights.transitions, A.shape[0], 0, 0
    R[:] = 0.0
    while i < len(w):
        j = i + 1
        while j < len(w) and windows.offsets[j + 1] - windows.offsets[i] <= len(scores):
            j += 1
        few = cut(windows, i, j, 0)
        chains = Chains(few.offsets, w[i:j])
        unroll(U, A, few, 0, j - i, scores)
        hard += padded_forward_backward(scores, transitions, chains, messages, totals.counts, totals.log_z[i:j])
        if variance:
            variances(P, chains, 0, j - i, P)
        add_boundaries(P, few, 0, j - i, ends)
        for r in range(len(few.rows)):
            t = few.rows[r]
            for v in range(n):
                R[t, v] += P[r, v]
        i = j
    return hard
