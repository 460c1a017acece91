"""Kernels of matchings over many examples: ``lo..hi`` of them."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from . import permanent
from .permanent import assignment_marginals, draw_assignment, draw_pairing, pairing_marginals


@kernel
def assignments(A, log_z, marginals, lo, hi):
    """Logarithms of permanents, and marginals unless there is no room for them."""
    n = A.shape[1]
    sums = np.empty(1 << n)
    below = np.empty(1 << n if len(marginals) else 0)
    for b in range(lo, hi):
        permanent.assignments(A[b], sums)
        log_z[b] = np.log(sums[-1])
        if len(marginals) and sums[-1] > 0.0:
            assignment_marginals(A[b], sums, below, marginals[b])


@kernel
def pairings(A, alone, log_z, marginals, lo, hi):
    """The same of sums over matchings of any graph."""
    n = A.shape[1]
    sums = np.empty(1 << n)
    above = np.empty(1 << n if len(marginals) else 0)
    for b in range(lo, hi):
        permanent.pairings(A[b], alone[b], sums)
        log_z[b] = np.log(sums[-1])
        if len(marginals) and sums[-1] > 0.0:
            pairing_marginals(A[b], alone[b], sums, above, marginals[b])


@kernel
def draw_assignments(A, sums, uniforms, columns):
    for d in range(len(columns)):
        draw_assignment(A, sums, uniforms[d], columns[d])


@kernel
def draw_pairings(A, alone, sums, uniforms, partners):
    for d in range(len(partners)):
        draw_pairing(A, alone, sums, uniforms[d], partners[d])
