"""Reweighted free energies of matchings, below rho = 1, by scalings of the weights. Words are those of `bethe`."""

from __future__ import annotations

import numpy as np

from ....numerics.jit import kernel, sum_kernel
from ....numerics.math import exp
from .bethe import leave_one_out
from .certificates import certify, settled

#: Most passes over all vertices before weights are moved again: scalings must be nearly right for the value to rise.
INNER = 100


@sum_kernel
def _log_sum(x, n):
    top = -np.inf
    for k in range(n):
        top = max(top, x[k])
    if top == -np.inf:
        return top
    total = 0.0
    for k in range(n):
        total += exp(x[k] - top)
    return top + np.log(total)


@kernel
def _alone(rho, x):
    """log s with s + s^rho exp(x) = 1."""
    y = -max(x / rho, 0.0) if x > 0.0 else -np.log1p(np.exp(x))
    for _ in range(60):
        a, b = np.exp(y), np.exp(rho * y + x)
        step = np.log(a + b) * (a + b) / (a + rho * b)
        y -= step
        if abs(step) < 1e-15 * (1.0 + abs(y)):
            break
    return y


@kernel
def scale(starts, edges, neighbours, moved, single, rho, lo, hi, scales):
    """Scales of the vertices lo..hi, given those of the others, at which their degrees are one.

    log tau = moved + scales of both ends. Returns the largest change.
    """
    most, change = 0, 0.0
    for i in range(lo, hi):
        most = max(most, starts[i + 1] - starts[i])
    x = np.empty(most)
    for i in range(lo, hi):
        first, n = starts[i], starts[i + 1] - starts[i]
        for k in range(n):
            x[k] = moved[edges[first + k]] + scales[neighbours[first + k]]
        total = _log_sum(x, n)
        new = rho * _alone(rho, total) if single else -total
        change = max(change, abs(new - scales[i]))
        scales[i] = new
    return change


@kernel
def scale_all(starts, edges, neighbours, moved, single, rho, left, scales):
    """`scale` of all vertices: of the first, then of the others."""
    change = scale(starts, edges, neighbours, moved, single, rho[0], 0, left, scales)
    return max(change, scale(starts, edges, neighbours, moved, single, rho[1], left, len(starts) - 1, scales))


@kernel
def _others(starts, edges, neighbours, moved, single, rho, scales, i, left_out, x):
    """The logarithm of what vertex i gives to all but one edge."""
    n = 0
    for h in range(starts[i], starts[i + 1]):
        if edges[h] != left_out:
            x[n] = moved[edges[h]] + scales[neighbours[h]] + scales[i]
            n += 1
    if single:
        x[n] = scales[i] / rho
        n += 1
    return _log_sum(x, n)


@kernel
def balance(starts, edges, neighbours, moved, single, rho, left, scales):
    """Where an edge has nearly all of both its ends, their scales may rise and fall together, and `scale` alone hardly moves
    them: here they do, until both ends give as much to their other edges. Returns the largest change."""
    most, change = 0, 0.0
    for i in range(len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    x = np.empty(most + 1)
    for i in range(left):
        top, best = -np.inf, -1
        for h in range(starts[i], starts[i + 1]):
            value = moved[edges[h]] + scales[neighbours[h]]
            if value > top:
                top, best = value, h
        if best < 0 or top + scales[i] < np.log(0.5):
            continue
        j, e = neighbours[best], edges[best]
        mine = _others(starts, edges, neighbours, moved, single, rho[0], scales, i, e, x)
        yours = _others(starts, edges, neighbours, moved, single, rho[1], scales, j, e, x)
        step = 0.25 * (rho[0] + rho[1]) * (yours - mine) if single else 0.5 * (yours - mine)
        if abs(step) < np.inf:
            scales[i] += step
            scales[j] -= step
            change = max(change, abs(step))
    return change


@kernel
def _complements(starts, edges, neighbours, moved, single, rho, scales, left, log_tau, log_rest):
    """log tau, and log(1 - tau) as the sum of the other edges of a vertex."""
    most = 0
    for i in range(left, len(starts) - 1):
        most = max(most, starts[i + 1] - starts[i])
    x, out = np.empty(most), np.empty(most)
    for i in range(left, len(starts) - 1):
        first, n = starts[i], starts[i + 1] - starts[i]
        alone = scales[i] / rho[1] if single else 0.0
        for k in range(n):
            x[k] = moved[edges[first + k]] + scales[i] + scales[neighbours[first + k]] - alone
        leave_one_out(x, n, single, out)
        for k in range(n):
            log_tau[edges[first + k]] = x[k] + alone
            log_rest[edges[first + k]] = out[k] + alone


@kernel
def reweighted(graph, neighbours, run, weights, scales, tau, log_tau, log_rest):
    """As `bethe`, for rho with a mean from 1/2 to 1, by scalings of weights that are moved by the term in 1 - tau, linear at
    the last. (Below 1/2 that term is concave, so that its tangent is above it, and steps would overshoot.)

    `log_rest` must be that of a start, and scales too.
    """
    starts, edges, left, single, rho = graph[0], graph[1], graph[4], run.single, run.rho
    V, m = len(starts) - 1, len(weights)
    sums, slack, moved = np.empty(V), np.empty(V), np.empty(m)
    power = rho[0] + rho[1] - 1.0
    offsets = np.empty(V)
    offsets[:left], offsets[left:] = rho[0], rho[1]
    value, gap, wait, least, stuck = -np.inf, np.inf, 1, np.inf, 0
    for sweep in range(1, run.max_iter + 1):
        for e in range(m):
            moved[e] = weights[e] - power * log_rest[e]
        first = scale_all(starts, edges, neighbours, moved, single, rho, left, scales)
        for _ in range(INNER):
            shift = balance(starts, edges, neighbours, moved, single, rho, left, scales)
            if max(shift, scale_all(starts, edges, neighbours, moved, single, rho, left, scales)) <= 0.01 * first:
                break
        _complements(starts, edges, neighbours, moved, single, rho, scales, left, log_tau, log_rest)
        if sweep in (wait, run.max_iter):
            wait = sweep + max(1, sweep // 8)
            value, gap = certify(graph, weights, single, rho, -scales - offsets, tau, log_tau, log_rest, sums, slack)
            done, stuck = settled(value, gap, run.tol, least, stuck)
            least = min(least, gap)
            if done:
                return value, gap, sweep
    return value, gap, run.max_iter
