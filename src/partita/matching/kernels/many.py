"""Kernels of matchings over many examples: ``lo..hi`` of them."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel
from . import permanent
from .messages.bethe import bethe
from .messages.reweighted import reweighted
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


@kernel
def free_energies(graph, neighbours, run, weights, messages, tau, lo, hi, out):
    """Bethe (rho = 1) or reweighted free energies, with the state of the last call in `messages`: the value, the
    certificate and the number of sweeps of each go to `out`."""
    m = weights.shape[1]
    log_tau, log_rest = np.empty(m), np.empty(m)
    for b in range(lo, hi):
        if run.rho[0] + run.rho[1] == 2.0:
            found = bethe(graph, run, weights[b], messages[b], tau[b], log_tau, log_rest)
        else:
            V = len(graph[0]) - 1
            log_rest[:] = messages[b, V:]
            scales = messages[b, :V]
            found = reweighted(graph, neighbours, run, weights[b], scales, tau[b], log_tau, log_rest)
            messages[b, V:] = log_rest
        out[b, 0], out[b, 1], out[b, 2] = found[0], found[1], found[2]
