"""Derivatives of exact marginals along a direction of the weights: products with the covariance of edges.

By complex steps: the sums of `permanent` and `rectangular` are polynomials, and take weights ``A (1 + i h D)`` as they take
A. The imaginary part over h is the derivative, to all digits: nothing is subtracted, and h squared is below rounding.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from . import permanent
from .permanent import assignment_marginals, pairing_marginals
from .rectangular import partial_assignment_marginals, partial_assignments

#: The step. Directions are at most one in size.
STEP = 1e-30


@kernel
def assignments(A, directions, out, lo, hi):
    """Of permutations, for the examples lo..hi."""
    n = A.shape[1]
    sums, below = np.empty(1 << n, np.complex128), np.empty(1 << n, np.complex128)
    moved, marginals = np.empty((n, n), np.complex128), np.empty((n, n), np.complex128)
    for b in range(lo, hi):
        moved[:] = A[b] * (1.0 + 1j * STEP * directions[b])
        permanent.assignments(moved, sums)
        assignment_marginals(moved, sums, below, marginals)
        out[b] = marginals.imag / STEP


@kernel
def partial(A, alone, spare, directions, out, lo, hi):
    """Of matchings of two sides; what vertices have by themselves does not move."""
    L, s = A.shape[1], A.shape[2]
    sums = np.empty((L + 1, 1 << s), np.complex128)
    reached, following = np.empty(1 << s, np.complex128), np.empty(1 << s, np.complex128)
    moved, marginals = np.empty((L, s), np.complex128), np.empty((L, s), np.complex128)
    for b in range(lo, hi):
        moved[:] = A[b] * (1.0 + 1j * STEP * directions[b])
        partial_assignments(moved, alone[b] + 0j, spare[b] + 0j, sums)
        partial_assignment_marginals(moved, alone[b] + 0j, sums, reached, following, marginals)
        out[b] = marginals.imag / STEP


@kernel
def pairings(A, alone, directions, out, lo, hi):
    """Of matchings of any graph, with symmetric matrices."""
    n = A.shape[1]
    sums, above = np.empty(1 << n, np.complex128), np.empty(1 << n, np.complex128)
    moved, marginals = np.empty((n, n), np.complex128), np.empty((n, n), np.complex128)
    for b in range(lo, hi):
        moved[:] = A[b] * (1.0 + 1j * STEP * directions[b])
        permanent.pairings(moved, alone[b] + 0j, sums)
        pairing_marginals(moved, alone[b] + 0j, sums, above, marginals)
        out[b] = marginals.imag / STEP
