"""Exact sums over matchings of two sides of any sizes by subset dynamic programming, over the sets of the smaller side.

The vertices of the larger side come one after another; the state is the set of vertices of the smaller side that are still
free, an integer whose bit j is one if j is. A[t, j] is the weight of a pair, alone[t] what vertex t of the larger side has
by itself, and spare[j] what vertex j of the smaller one has (zero if it must be matched). All terms are positive: sums keep
their digits.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from .bits import lowest_bit


@kernel
def rests(spare, out):
    """out[S] = the product of what the vertices in S have by themselves."""
    out[0] = 1.0
    for S in range(1, len(out)):
        j = lowest_bit(S)
        out[S] = spare[j] * out[S & (S - 1)]


@kernel
def partial_assignments(A, alone, spare, sums):
    """sums[t, S] = the sum over the matchings of the vertices t, t + 1, … of the larger side with those in S. The sum over
    all matchings is the last of the first row."""
    L = A.shape[0]
    rests(spare, sums[L])
    for t in range(L - 1, -1, -1):
        here, after = sums[t], sums[t + 1]
        for S in range(len(here)):
            total, free = alone[t] * after[S], S
            while free:
                j = lowest_bit(free)
                free &= free - 1
                total += A[t, j] * after[S ^ (1 << j)]
            here[S] = total


@kernel
def partial_assignment_marginals(A, alone, sums, reached, following, marginals):
    """The probability of each pair, after `partial_assignments`. The two rows of workspace get the sums over the matchings
    of the vertices before, that leave S free."""
    L, full = A.shape[0], sums.shape[1] - 1
    marginals[:] = 0.0
    reached[:] = 0.0
    reached[full] = 1.0 / sums[0, full]
    for t in range(L):
        after = sums[t + 1]
        following[:] = 0.0
        for S in range(full + 1):
            weight = reached[S]
            if weight == 0.0:
                continue
            following[S] += weight * alone[t]
            free = S
            while free:
                j = lowest_bit(free)
                free &= free - 1
                left = S ^ (1 << j)
                part = weight * A[t, j]
                following[left] += part
                marginals[t, j] += part * after[left]
        reached[:] = following


@kernel
def draw_partial_assignment(A, alone, sums, uniforms, partners):
    """A matching by its probability, after `partial_assignments`: the partner of each vertex of the larger side, or -1."""
    S = sums.shape[1] - 1
    for t in range(A.shape[0]):
        after = sums[t + 1]
        stay = alone[t] * after[S]
        mass, chosen, free = uniforms[t] * sums[t, S] - stay, -1, S
        if stay > 0.0 and mass < 0.0:
            free = 0
        while free and (mass >= 0.0 or chosen < 0):
            j = lowest_bit(free)
            free &= free - 1
            part = A[t, j] * after[S ^ (1 << j)]
            mass -= part
            if part > 0.0:
                chosen = j
        partners[t] = chosen
        if chosen >= 0:
            S ^= 1 << chosen


@kernel
def many_partial_assignments(A, alone, spare, log_z, marginals, lo, hi):
    """log Z of the examples lo..hi, and marginals unless there is no room for them."""
    L, s = A.shape[1], A.shape[2]
    sums = np.empty((L + 1, 1 << s))
    reached, following = np.empty(1 << s), np.empty(1 << s)
    for b in range(lo, hi):
        partial_assignments(A[b], alone[b], spare[b], sums)
        log_z[b] = np.log(sums[0, -1])
        if len(marginals) and sums[0, -1] > 0.0:
            partial_assignment_marginals(A[b], alone[b], sums, reached, following, marginals[b])


@kernel
def draw_partial_assignments(A, alone, sums, uniforms, partners):
    for d in range(len(partners)):
        draw_partial_assignment(A, alone, sums, uniforms[d], partners[d])
