"""Exact sums over matchings by sums over sets of vertices: permanents and hafnians of matrices that are not negative.

A set is an integer whose bit j is one if j is in it. All sums over sets have positive terms only: they keep their digits.
"""

from __future__ import annotations

from ...numerics.jit import kernel
from .bits import bit_count, lowest_bit


@kernel
def assignments(A, sums):
    """sums[S] = the permanent of the first |S| rows and the columns in S. The last is that of A."""
    n = A.shape[0]
    sums[0] = 1.0
    for S in range(1, 1 << n):
        row = A[bit_count(S) - 1]
        total, rest = 0.0, S
        while rest:
            j = lowest_bit(rest)
            rest &= rest - 1
            total += row[j] * sums[S ^ (1 << j)]
        sums[S] = total


@kernel
def assignment_marginals(A, sums, below, marginals):
    """The probability of each entry, after `assignments`. `below` gets the sums over the other rows and columns."""
    n = A.shape[0]
    full = (1 << n) - 1
    z = sums[full]
    marginals[:] = 0.0
    below[full] = 1.0
    for S in range(full - 1, -1, -1):
        i = bit_count(S)
        weight = sums[S] / z
        total, rest = 0.0, full ^ S
        while rest:
            j = lowest_bit(rest)
            rest &= rest - 1
            part = A[i, j] * below[S | (1 << j)]
            total += part
            marginals[i, j] += weight * part
        below[S] = total


@kernel
def draw_assignment(A, sums, uniforms, columns):
    """A permutation by its probability, from the last row to the first, after `assignments`."""
    n = A.shape[0]
    S = (1 << n) - 1
    for i in range(n - 1, -1, -1):
        mass, rest, chosen = uniforms[i] * sums[S], S, -1
        while rest and mass >= 0.0:
            j = lowest_bit(rest)
            rest &= rest - 1
            part = A[i, j] * sums[S ^ (1 << j)]
            mass -= part
            if part > 0.0:
                chosen = j
        columns[i] = chosen
        S ^= 1 << chosen


@kernel
def pairings(A, alone, sums):
    """sums[S] = the sum over the matchings of the vertices in S, each the product of its entries of the symmetric A, and of
    numbers of those that stay alone (all zero if none may)."""
    n = A.shape[0]
    sums[0] = 1.0
    for S in range(1, 1 << n):
        i = lowest_bit(S)
        rest = S & (S - 1)
        total = alone[i] * sums[rest]
        others = rest
        while others:
            j = lowest_bit(others)
            others &= others - 1
            total += A[i, j] * sums[rest ^ (1 << j)]
        sums[S] = total


@kernel
def pairing_marginals(A, alone, sums, above, marginals):
    """The probability of each pair, after `pairings`. `above` gets the derivative of the whole by each sum."""
    n = A.shape[0]
    full = (1 << n) - 1
    above[:] = 0.0
    above[full] = 1.0 / sums[full]
    marginals[:] = 0.0
    for S in range(full, 0, -1):
        weight = above[S]
        if weight == 0.0:
            continue
        i = lowest_bit(S)
        rest = S & (S - 1)
        above[rest] += weight * alone[i]
        others = rest
        while others:
            j = lowest_bit(others)
            others &= others - 1
            left = rest ^ (1 << j)
            above[left] += weight * A[i, j]
            marginals[i, j] += weight * A[i, j] * sums[left]
    for i in range(n):
        for j in range(i):
            marginals[i, j] = marginals[j, i]


@kernel
def draw_pairing(A, alone, sums, uniforms, partners):
    """A matching by its probability, after `pairings`; -1 for those without a partner."""
    S = (1 << A.shape[0]) - 1
    while S:
        i = lowest_bit(S)
        rest = S & (S - 1)
        mass, chosen = uniforms[i] * sums[S], -1
        mass -= alone[i] * sums[rest]
        others = rest
        while others and mass >= 0.0:
            j = lowest_bit(others)
            others &= others - 1
            part = A[i, j] * sums[rest ^ (1 << j)]
            mass -= part
            if part > 0.0:
                chosen = j
        partners[i] = chosen
        S = rest
        if chosen >= 0:
            partners[chosen] = i
            S ^= 1 << chosen
