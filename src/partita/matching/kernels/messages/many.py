"""Free energies of many examples: ``lo..hi`` of them."""

from __future__ import annotations

import numpy as np

from ....numerics.jit import kernel
from .bethe import bethe
from .reweighted import reweighted


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
