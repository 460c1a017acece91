"""Bethe and reweighted free energies of matchings: messages for rho = 1, scalings of the weights below it.

A graph has for each vertex i the half-edges ``starts[i]:starts[i + 1]``; half-edge h belongs to edge ``edges[h]``, and its
other half is ``others[h]``. Every edge joins one of the first `left` vertices with one of the rest.
Weights of edges are logarithms. With `single`, vertices may stay alone. For each edge, `tau` is its probability, `log_tau`
the logarithm of that, and `log_rest` that of 1 - tau, which keeps its digits where tau is one to all digits.
"""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel, sum_kernel
from ...numerics.math import exp, log

#: Most passes over all vertices before weights are moved again: scalings must be nearly right for the value to rise.
INNER = 100
#: Rounding ends what certificates can show: stop when a small one has not become smaller by this factor in so many checks.
STUCK, PATIENCE, ROUNDING = 0.97, 8, 1e-8


@sum_kernel
def _leave_one_out(x, n, single, out):
    """out[h] = log sum of exp of all x but x[h], and of 0 if `single`; returns the log of the whole sum."""
    top, second, best = (0.0 if single else -np.inf), -np.inf, -1
    for h in range(n):
        if x[h] > top:
            second, top, best = top, x[h], h
        elif x[h] > second:
            second = x[h]
    if second == -np.inf:  # one choice at most
        for h in range(n):
            out[h] = top
        if best >= 0:
            out[best] = -np.inf
        return top
    rest = exp(-second) if single and best >= 0 else 0.0
    for h in range(n):
        out[h] = exp(min(x[h] - second, 0.0))
    if best >= 0:
        out[best] = 0.0
    for h in range(n):
        rest += out[h]
    share = exp(second - top)
    for h in range(n):
        out[h] = top + log(1.0 + share * max(rest - out[h], 0.0))
    if best >= 0:
        out[best] = second + log(rest)
    return top + log(1.0 + share * rest)


@kernel
def largest_message(weights):
    """Where a solution is frozen messages grow without end, and would be long on their way back: so far is enough."""
    low, high = 0.0, 0.0
    for e in range(len(weights)):
        low, high = min(low, weights[e]), max(high, weights[e])
    return 60.0 + 2.0 * (high - low)


@kernel
def send(starts, edges, others, weights, single, cap, lo, hi, messages, totals):
    """Messages of the vertices lo..hi: the log-odds that they give to each of their edges, up to `cap`. There is no lowest:
    those to the other edges of a frozen vertex must stay the reverse of its largest, or its weight is lost."""
    most = 0
    for i in range(lo, hi):
        most = max(most, starts[i + 1] - starts[i])
    x, out = np.empty(most), np.empty(most)
    for i in range(lo, hi):
        first, n = starts[i], starts[i + 1] - starts[i]
        for k in range(n):
            x[k] = weights[edges[first + k]] + messages[others[first + k]]
        totals[i] = _leave_one_out(x, n, single, out)
        for k in range(n):
            messages[first + k] = min(cap, -out[k])


@kernel
def view(starts, edges, others, weights, lo, hi, messages, totals, log_tau, log_rest):
    """The probabilities of the edges of the vertices lo..hi as these see them."""
    for i in range(lo, hi):
        for h in range(starts[i], starts[i + 1]):
            log_tau[edges[h]] = weights[edges[h]] + messages[others[h]] - totals[i]
            log_rest[edges[h]] = -messages[h] - totals[i]


@kernel
def certify(graph, weights, single, rho, duals, tau, log_tau, log_rest, sums, slack):
    """The free energy (negative) at tau, and how far below the largest it can be.

    The entropy is concave: its linear part at tau, maximised over all degrees of one, is above. `duals` are numbers of
    vertices whose sums over an edge are close to the gradient; with `slack` added they are above it. A vertex is alone as
    often as makes its number the derivative of that: 1 - sums would lose the digits.
    """
    starts, ends, left = graph[0], graph[3], graph[4]
    V, m = len(starts) - 1, len(weights)
    power = 2.0 * rho - 1.0
    sums[:] = 0.0
    slack[:] = 0.0
    if not single:
        slack[:left] = -np.inf
    for e in range(m):
        tau[e] = exp(log_tau[e])
        sums[ends[e, 0]] += tau[e]
        sums[ends[e, 1]] += tau[e]
    value, linear = 0.0, 0.0
    if single:
        for i in range(V):
            log_alone = -duals[i] / rho - 1.0
            alone = np.exp(log_alone)
            sums[i] += alone
            value -= rho * alone * log_alone
            linear += alone * duals[i]
    for e in range(m):
        i, j = ends[e]
        rest = exp(log_rest[e]) * log_rest[e] if log_rest[e] > -700.0 else 0.0
        value += tau[e] * (weights[e] - log_tau[e]) + power * rest
        gradient = weights[e] - log_tau[e] - 1.0 - power * (log_rest[e] + 1.0)
        linear += tau[e] * gradient
        excess = gradient - duals[i] - duals[j]
        if not single:
            slack[i] = max(slack[i], excess)
        else:
            slack[i] = max(slack[i], 0.5 * excess)
            slack[j] = max(slack[j], 0.5 * excess)
    above, wrong = 0.0, 0.0
    for i in range(V):
        above += duals[i] + slack[i]
        wrong += abs(sums[i] - 1.0) * (1.0 + abs(duals[i]))
    return value, max(above - linear, 0.0) + wrong


@kernel
def bethe(graph, single, weights, tol, max_iter, messages, tau, log_tau, log_rest):
    """Belief propagation until the certificate is at most `tol`: the value, the certificate, and how many sweeps."""
    starts, edges, others, _, left = graph
    V = len(starts) - 1
    totals, duals, sums, slack = np.empty(V), np.zeros(V), np.empty(V), np.empty(V)
    cap = largest_message(weights)
    value, gap, wait, least, stuck = -np.inf, np.inf, 1, np.inf, 0
    for sweep in range(1, max_iter + 1):
        send(starts, edges, others, weights, single, cap, 0, left, messages, totals)
        send(starts, edges, others, weights, single, cap, left, V, messages, totals)
        if sweep in (wait, max_iter):
            wait = sweep + max(1, sweep // 8)
            view(starts, edges, others, weights, left, V, messages, totals, log_tau, log_rest)
            for i in range(V):
                duals[i] = totals[i] - 1.0
            value, gap = certify(graph, weights, single, 1.0, duals, tau, log_tau, log_rest, sums, slack)
            stuck = 0 if gap < STUCK * least or gap > ROUNDING * (1.0 + abs(value)) else stuck + 1
            least = min(least, gap)
            if gap <= tol or stuck == PATIENCE:
                return value, gap, sweep
    return value, gap, max_iter


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
        mine = _others(starts, edges, neighbours, moved, single, rho, scales, i, e, x)
        yours = _others(starts, edges, neighbours, moved, single, rho, scales, j, e, x)
        step = 0.5 * rho * (yours - mine) if single else 0.5 * (yours - mine)
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
        alone = scales[i] / rho if single else 0.0
        for k in range(n):
            x[k] = moved[edges[first + k]] + scales[i] + scales[neighbours[first + k]] - alone
        _leave_one_out(x, n, single, out)
        for k in range(n):
            log_tau[edges[first + k]] = x[k] + alone
            log_rest[edges[first + k]] = out[k] + alone


@kernel
def reweighted(graph, neighbours, single, rho, weights, tol, max_iter, scales, tau, log_tau, log_rest):
    """As `bethe`, for rho from 1/2 to 1, by scalings of weights that are moved by the term in 1 - tau, linear at the last.

    `log_rest` must be that of a start, and scales too.
    """
    starts, edges, left = graph[0], graph[1], graph[4]
    V, m = len(starts) - 1, len(weights)
    duals, sums, slack = np.zeros(V), np.empty(V), np.empty(V)
    moved = np.empty(m)
    power = 2.0 * rho - 1.0
    value, gap, wait, least, stuck = -np.inf, np.inf, 1, np.inf, 0
    for sweep in range(1, max_iter + 1):
        for e in range(m):
            moved[e] = weights[e] - power * log_rest[e]
        first = scale(starts, edges, neighbours, moved, single, rho, 0, V, scales)
        for _ in range(INNER):
            shift = balance(starts, edges, neighbours, moved, single, rho, left, scales)
            if max(shift, scale(starts, edges, neighbours, moved, single, rho, 0, V, scales)) <= 0.01 * first:
                break
        _complements(starts, edges, neighbours, moved, single, rho, scales, left, log_tau, log_rest)
        if sweep in (wait, max_iter):
            wait = sweep + max(1, sweep // 8)
            for i in range(V):
                duals[i] = -scales[i] - rho
            value, gap = certify(graph, weights, single, rho, duals, tau, log_tau, log_rest, sums, slack)
            stuck = 0 if gap < STUCK * least or gap > ROUNDING * (1.0 + abs(value)) else stuck + 1
            least = min(least, gap)
            if gap <= tol or stuck == PATIENCE:
                return value, gap, sweep
    return value, gap, max_iter
