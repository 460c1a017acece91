"""How far below the largest a free energy of matchings can be, whatever was done to find it. Words are those of `bethe`."""

from __future__ import annotations

import numpy as np

from ....numerics.jit import kernel
from ....numerics.math import exp

#: Rounding ends what certificates can show: stop when a small one has not become smaller by this factor in so many checks.
STUCK, PATIENCE, ROUNDING = 0.97, 8, 1e-8
#: Vertices with an edge that leaves less than exp of this to the others may be frozen.
NEARLY = -7.0


@kernel
def _rest(log_rest):
    """(1 - tau) log(1 - tau)."""
    return exp(log_rest) * log_rest if log_rest > -700.0 else 0.0


@kernel
def _frozen_bound(graph, weights, duals, j):
    """A bound on the largest ``<w - duals, tau> + H(tau)`` over the shares tau of one vertex, for rho = 1.

    Along the line from its best edge alone to any shares of the other edges this is concave, and grows at the start by what
    the others have, with plain entropy, above the best edge. So it is nowhere above the larger of the two.
    """
    starts, edges, ends = graph[0], graph[1], graph[3]
    top, best = -np.inf, -1
    for h in range(starts[j], starts[j + 1]):
        x = weights[edges[h]] - duals[ends[edges[h], 0]]
        if x > top:
            top, best = x, h
    total = 0.0
    for h in range(starts[j], starts[j + 1]):
        if h != best:
            total += exp(weights[edges[h]] - duals[ends[edges[h], 0]] - top)
    return top + max(0.0, np.log(total)) if total > 0.0 else top


@kernel
def _certify_perfect(graph, weights, power, duals, tau, log_tau, log_rest):
    """`certify` of perfect matchings, but for what degrees lack: the value, and how much larger that of one vertex of the
    second side after another can be. Prices of the first side are given; of two bounds the smaller one counts."""
    starts, edges, ends, left = graph[0], graph[1], graph[3], graph[4]
    value, above = 0.0, 0.0
    for j in range(left, len(starts) - 1):
        mine, priced, linear, top, least = 0.0, 0.0, 0.0, -np.inf, 0.0
        for h in range(starts[j], starts[j + 1]):
            e = edges[h]
            share, price, whole = tau[e], duals[ends[e, 0]], weights[e] - log_tau[e]
            excess = whole - 1.0 - power * (log_rest[e] + 1.0) - price
            mine += share * whole + power * _rest(log_rest[e])
            priced += share * price
            linear += share * excess
            top, least = max(top, excess), min(least, log_rest[e])
        more = top - linear
        if power == 1.0 and least < NEARLY:
            more = min(more, _frozen_bound(graph, weights, duals, j) - (mine - priced))
        value += mine
        above += more
    return value, above


@kernel
def _certify_single(graph, weights, rho, duals, tau, log_tau, log_rest, sums, slack):
    """`certify` where vertices may stay alone, but for what degrees lack."""
    ends, left, power = graph[3], graph[4], rho[0] + rho[1] - 1.0
    V, m = len(sums), len(weights)
    value, linear, above = 0.0, 0.0, 0.0
    slack[:] = 0.0
    for i in range(V):
        own = rho[0] if i < left else rho[1]
        log_alone = -duals[i] / own - 1.0
        alone = np.exp(log_alone)
        sums[i] += alone
        value -= own * alone * log_alone
        linear += alone * duals[i]
    for e in range(m):
        i, j = ends[e]
        value += tau[e] * (weights[e] - log_tau[e]) + power * _rest(log_rest[e])
        gradient = weights[e] - log_tau[e] - 1.0 - power * (log_rest[e] + 1.0)
        linear += tau[e] * gradient
        excess = gradient - duals[i] - duals[j]
        slack[i] = max(slack[i], 0.5 * excess)
        slack[j] = max(slack[j], 0.5 * excess)
    for i in range(V):
        above += duals[i] + slack[i]
    return value, above - linear


@kernel
def certify(graph, weights, single, rho, duals, tau, log_tau, log_rest, sums, slack):
    """The free energy (negative) at tau, and how far below the largest it can be. `rho` are the weights of the entropies of
    the first `left` vertices and of the others.

    The entropy is concave: its linear part at tau, maximised over all degrees of one, is above. `duals` are numbers of
    vertices whose sums over an edge are close to the gradient; with `slack` added they are above it. A vertex is alone as
    often as makes its number the derivative of that: 1 - sums would lose the digits.
    """
    ends, left = graph[3], graph[4]
    sums[:] = 0.0
    for e in range(len(weights)):
        tau[e] = exp(log_tau[e])
        sums[ends[e, 0]] += tau[e]
        sums[ends[e, 1]] += tau[e]
    if single:
        value, above = _certify_single(graph, weights, rho, duals, tau, log_tau, log_rest, sums, slack)
    else:
        value, above = _certify_perfect(graph, weights, rho[0] + rho[1] - 1.0, duals, tau, log_tau, log_rest)
        for i in range(left):
            above += duals[i] * (1.0 - sums[i])
    wrong = 0.0
    for i in range(len(sums)):
        wrong += abs(sums[i] - 1.0) * (1.0 + abs(duals[i]))
    return value, max(above, 0.0) + wrong


@kernel
def settled(value, gap, tol, least, stuck):
    """Whether a certificate is small, or as small as rounding lets it be; and for how many checks it has not shrunk."""
    still = gap >= STUCK * least and gap <= ROUNDING * (1.0 + abs(value))
    stuck = stuck + 1 if still else 0
    return gap <= tol or stuck == PATIENCE, stuck
