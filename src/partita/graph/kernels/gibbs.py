"""Gibbs sampling of factor graphs. Tuples of arrays are those of `factor_layout`.

Randomness is counted, not streamed: chain, sweep and variable number the draws, so that no order of work changes them.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import in_place
from .conditional import conditional_scores, exponentials


@in_place
def uniform(seed, counter):
    """A number in [0, 1) from a seed and a counter (two rounds of splitmix64's mixing)."""
    z = np.uint64(seed) + (np.uint64(counter) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    z = (z ^ (z >> np.uint64(31))) * np.uint64(0xD6E8FEB86659FD93)
    z = z ^ (z >> np.uint64(32))
    return np.float64(z >> np.uint64(11)) * (1.0 / 9007199254740992.0)


@in_place
def chain(layout, potentials, order, seed, burn_in, n_samples, y, counts, score):
    """Sweeps of one Markov chain over the variables in order; states and table entries after burn-in go to `counts`.

    `score` is scratch for the states of a variable.
    """
    n = len(order)
    for sweep in range(burn_in + n_samples):
        for k in range(n):
            i = order[k]
            count = conditional_scores(layout, potentials, y, i, score)
            z = exponentials(score, count)
            if z == 0.0:
                continue
            u = z * uniform(seed, sweep * n + i)
            last = 0
            for x in range(count):
                if score[x] > 0.0:
                    last = x
                    u -= score[x]
                    if u < 0.0:
                        break
            y[i] = last
        if sweep >= burn_in:
            for i in range(n):
                counts.states[layout.var_offsets[i] + y[i]] += 1
            for f in range(len(layout.fac_ptr) - 1):
                at = layout.fac_offsets[f]
                for g in range(layout.fac_ptr[f], layout.fac_ptr[f + 1]):
                    at += layout.strides[g] * y[layout.edge_var[g]]
                counts.tables[at] += 1
