"""Windows of chains as chains of their own, and their sums added up again at the positions that they come from.

Row r of the windows is position ``rows[r]``. A window between labels that are known gets the scores of the transitions from
the label before (`left`) and into the label after it (`right`); -1 where the window begins or ends the chain.
"""

from __future__ import annotations

from ._jit import kernel


@kernel
def unroll(U, A, rows, offsets, left, right, lo, hi, out):
    """Scores of the labels of the windows lo..hi."""
    n = U.shape[1]
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
    n = P.shape[1]
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
