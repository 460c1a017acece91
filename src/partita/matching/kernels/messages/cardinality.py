"""Bethe and reweighted free energies of b-matchings: messages of vertices, whose factors are sets of b of their edges.

A sum over all sets of k of some edges is an elementary symmetric polynomial. Those without one edge are products of a prefix
and a suffix, so that a vertex with n edges takes ``n b`` operations. All are logarithms.

A graph has for each vertex i the half-edges ``starts[i]:starts[i + 1]``; half-edge h belongs to edge ``edges[h]``, and its
other half is ``others[h]``. With `single`, vertices may have fewer edges than b.
"""

from __future__ import annotations

import numpy as np

from ....numerics.jit import kernel
from ....numerics.math import exp, log

#: Rounding ends what certificates can show: stop when a small one has not become smaller by this factor in so many checks.
STUCK, PATIENCE, ROUNDING = 0.97, 8, 1e-8
#: Largest part of a message that stays as it was.
MOST_DAMPING = 0.8


@kernel
def _add(x, y):
    """log(exp(x) + exp(y))."""
    if y > x:
        x, y = y, x
    return x if y == -np.inf else x + log(1.0 + exp(y - x))


@kernel
def symmetric_polynomials(theta, n, b, single, prefix, suffix, with_one, without):
    """Logarithms of sums over all sets of b of n numbers (at most b with `single`), each with the exponential of its sum.

    Returns that of all sets; of those that have number k, `with_one` (less theta[k]), and of the others, `without`.
    """
    for t in range(b + 1):
        prefix[0, t] = -np.inf
        suffix[n, t] = 0.0 if single else -np.inf
    prefix[0, 0] = 0.0
    suffix[n, 0] = 0.0
    for k in range(n):
        prefix[k + 1, 0] = 0.0
        for t in range(1, b + 1):
            prefix[k + 1, t] = _add(prefix[k, t], prefix[k, t - 1] + theta[k])
    for k in range(n - 1, -1, -1):
        suffix[k, 0] = 0.0
        for t in range(1, b + 1):
            suffix[k, t] = _add(suffix[k + 1, t], suffix[k + 1, t - 1] + theta[k])
    for k in range(n):
        one, none = -np.inf, prefix[k, b] + suffix[k + 1, 0]
        for t in range(b):
            one = _add(one, prefix[k, t] + suffix[k + 1, b - 1 - t])
            none = _add(none, prefix[k, t] + suffix[k + 1, b - t])
        with_one[k], without[k] = one, none
    return suffix[0, b]


@kernel
def log_choices(starts, edges, b, single, weights, out):
    """For each vertex, the log of the sum over the sets of edges that it may have."""
    most, n = 0, 0
    for i in range(len(b)):
        most, n = max(most, b[i]), max(n, starts[i + 1] - starts[i])
    total = np.empty(most + 1)
    for i in range(len(b)):
        total[:] = 0.0 if single else -np.inf
        total[0] = 0.0
        for h in range(starts[i], starts[i + 1]):
            for t in range(b[i], 0, -1):
                total[t] = _add(total[t], total[t - 1] + weights[edges[h]])
        out[i] = total[b[i]]


@kernel
def _sends(graph, b, single, rho, weights, cap, damping, i, messages, work):
    """The messages of vertex i to its edges: the log-odds that it gives to each."""
    starts, edges, others = graph
    theta, prefix, suffix, one, none = work
    first, n = starts[i], starts[i + 1] - starts[i]
    for k in range(n):
        h = first + k
        theta[k] = weights[edges[h]] + rho * messages[others[h]] - (1.0 - rho) * messages[h]
    symmetric_polynomials(theta, n, b[i], single, prefix, suffix, one, none)
    change = 0.0
    for k in range(n):
        new = min(cap, max(-cap, one[k] - none[k]))
        change = max(change, abs(new - messages[first + k]))
        messages[first + k] = damping * messages[first + k] + (1.0 - damping) * new
    return change


@kernel
def _top(r, n, b, single, order):
    """The largest sum of b (or, with `single`, at most b) of n numbers."""
    for k in range(n):
        order[k] = r[k]
    order[:n].sort()
    total = 0.0
    for k in range(n - 1, max(n - 1 - b, -1), -1):
        if single and order[k] <= 0.0:
            break
        total += order[k]
    return total


@kernel
def _beliefs(graph, b, single, rho, weights, messages, seen, work):
    """What vertices say of their edges, the slopes there of their parts of the free energy, and their entropies."""
    starts, edges, others = graph
    log_tau, log_rest, slopes, entropy = seen
    theta, prefix, suffix, one, none = work
    for i in range(len(b)):
        first, n = starts[i], starts[i + 1] - starts[i]
        for k in range(n):
            h = first + k
            theta[k] = weights[edges[h]] + rho * messages[others[h]] - (1.0 - rho) * messages[h]
        log_z = symmetric_polynomials(theta, n, b[i], single, prefix, suffix, one, none)
        entropy[i] = log_z
        for k in range(n):
            h = first + k
            log_tau[h], log_rest[h] = theta[k] + one[k] - log_z, none[k] - log_z
            slopes[h] = 0.5 * weights[edges[h]] - rho * theta[k] + (rho - 0.5) * (log_tau[h] - log_rest[h])
            entropy[i] -= exp(log_tau[h]) * theta[k]


@kernel
def _above(graph, b, single, rho, weights, seen, work):
    """A free energy that need not be attained, because vertices differ, and a number above the largest that is.

    The free energy is a sum over vertices of ``rho H_a - (rho - 1/2) sum_e H_e + <w, tau> / 2``, each concave in what the
    vertex says of its edges. Prices on what two vertices say differently of an edge make both slopes of it equal. The linear
    parts at what vertices say, each maximised over all sets of its own, are then above the whole.
    """
    starts, edges, others = graph
    log_tau, log_rest, slopes, entropy = seen
    theta, order = work[0], work[3]
    value, above = 0.0, 0.0
    for i in range(len(b)):
        first, n = starts[i], starts[i + 1] - starts[i]
        value += rho * entropy[i]
        for k in range(n):
            h = first + k
            tau, rest = exp(log_tau[h]), exp(log_rest[h])
            price = 0.5 * (slopes[others[h]] - slopes[h])
            value += tau * (0.5 * weights[edges[h]] + price)
            value += (rho - 0.5) * ((tau * log_tau[h] if tau > 0.0 else 0.0) + (rest * log_rest[h] if rest > 0.0 else 0.0))
            theta[k] = 0.5 * (slopes[h] + slopes[others[h]])
            above -= theta[k] * tau
        above += _top(theta, n, b[i], single, order)
    return value, value + max(above, 0.0)


@kernel
def _scaled_down(graph, log_tau, means, share):
    """Means of what vertices say, made smaller until no vertex has more than it said itself; the factor of each edge."""
    starts, edges, _ = graph
    share[:] = 1.0
    for i in range(len(starts) - 1):
        own, seen = 0.0, 0.0
        for h in range(starts[i], starts[i + 1]):
            own += exp(log_tau[h])
            seen += means[edges[h], 0]
        for h in range(starts[i], starts[i + 1]):
            if own < seen:
                share[edges[h]] = min(share[edges[h]], own / seen)
    for e in range(len(means)):
        means[e, 1] += (1.0 - share[e]) * means[e, 0]
        means[e, 0] *= share[e]


@kernel
def _spread(graph, means, y, out):
    """The degrees that numbers of vertices give, each edge its variance times those of its ends."""
    starts, edges, _ = graph
    move = np.zeros(len(means))
    for i in range(len(y)):
        for h in range(starts[i], starts[i + 1]):
            move[edges[h]] += y[i]
    for i in range(len(y)):
        out[i] = 0.0
        for h in range(starts[i], starts[i + 1]):
            out[i] += means[edges[h], 0] * means[edges[h], 1] * move[edges[h]]
    return move


@kernel
def _balanced(graph, log_tau, log_rest, means):
    """Means of what vertices say, moved by their variances times numbers of both ends until degrees are right: a linear
    system, by conjugate gradients. Whether it was solved, and shares stay between 0 and 1."""
    starts, edges, others = graph
    V = len(starts) - 1
    y, r, scale = np.zeros(V), np.zeros(V), np.zeros(V)
    for i in range(V):
        for h in range(starts[i], starts[i + 1]):
            near = log_tau[h] > log_rest[h]  # the smaller one has the digits
            r[i] += 0.5 * (
                exp(log_rest[others[h]]) - exp(log_rest[h]) if near else exp(log_tau[h]) - exp(log_tau[others[h]])
            )
            scale[i] += means[edges[h], 0] * means[edges[h], 1]
        scale[i] = max(scale[i], 1e-300)
    z, q = r / scale, np.empty(V)
    p, first, fit = z.copy(), 0.0, (r * z).sum()
    for i in range(V):
        first = max(first, abs(r[i]) / scale[i])
    left = first
    for _ in range(10 * V + 100):
        if left <= 1e-9 * first or left < 1e-14:
            break
        _spread(graph, means, p, q)
        curvature = (p * q).sum()
        if not curvature > 0.0:
            break
        step = fit / curvature
        y += step * p
        r -= step * q
        z = r / scale
        after = (r * z).sum()
        p = z + (after / fit) * p
        fit, left = after, 0.0
        for i in range(V):
            left = max(left, abs(z[i]))
    move, fine = _spread(graph, means, y, q), left <= 1e-6 * first or left < 1e-12
    for e in range(len(means)):
        fine = fine and abs(move[e]) < 1.0
    for e in range(len(means) if fine else 0):
        tau, rest = means[e, 0], means[e, 1]
        means[e, 0], means[e, 1] = tau * (1.0 + rest * move[e]), rest * (1.0 - tau * move[e])
    return fine


@kernel
def _attained(graph, b, single, rho, weights, seen, means):
    """A free energy that is attained, or -inf: `means` gets shares of edges, and what is missing to one, with right degrees.

    The entropy of vertex a there is at least ``1 - lost`` times that of what it says, if the rest of the shares, divided by
    `lost`, is a mean of its sets: that is, if its entries are from 0 to 1 (and their sum is no larger than b).
    """
    starts, edges, _ = graph
    log_tau, log_rest, _, entropy = seen
    means[:] = 0.0
    for h in range(len(edges)):
        means[edges[h], 0] += 0.5 * exp(log_tau[h])
        means[edges[h], 1] += 0.5 * exp(log_rest[h])
    if single:
        _scaled_down(graph, log_tau, means, np.empty(len(means)))
    elif not _balanced(graph, log_tau, log_rest, means):
        return -np.inf
    value = 0.0
    for i in range(len(b)):
        kept = 1.0
        for h in range(starts[i], starts[i + 1]):
            tau, rest = exp(log_tau[h]), exp(log_rest[h])
            if tau > 0.0:
                kept = min(kept, means[edges[h], 0] / tau)
            if rest > 0.0:
                kept = min(kept, means[edges[h], 1] / rest)
        value += rho * kept * entropy[i]
    for e in range(len(means)):
        tau, rest = means[e, 0], means[e, 1]
        value += tau * weights[e]
        value -= (1.0 - 2.0 * rho) * ((tau * log(tau) if tau > 0.0 else 0.0) + (rest * log(rest) if rest > 0.0 else 0.0))
    return value


@kernel
def free_energy(graph, b, run, weights, messages, tau):
    """Belief propagation until the largest negative free energy is known up to `run.tol`: what messages stand for, numbers
    below and above the largest, and how many sweeps."""
    starts, edges, _ = graph
    single, rho, max_iter = run.single, run.rho[0], run.max_iter
    n, most, low, high = 0, 0, 0.0, 0.0
    for i in range(len(b)):
        n, most = max(n, starts[i + 1] - starts[i]), max(most, b[i])
    for w in weights:
        low, high = min(low, w), max(high, w)
    cap = 60.0 + 2.0 * (high - low)
    work = np.empty(n), np.empty((n + 1, most + 1)), np.empty((n + 1, most + 1)), np.empty(n), np.empty(n)
    seen = np.empty(len(edges)), np.empty(len(edges)), np.empty(len(edges)), np.empty(len(b))
    means = np.empty((len(weights), 2))
    value, below, above = -np.inf, -np.inf, np.inf
    wait, least, stuck, damping, before = 1, np.inf, 0, 0.0, np.inf
    for sweep in range(1, max_iter + 1):
        change = 0.0
        for i in range(len(b)):
            change = max(change, _sends(graph, b, single, rho, weights, cap, damping, i, messages, work))
        if sweep in (wait, max_iter):
            wait = sweep + max(1, sweep // 8)
            _beliefs(graph, b, single, rho, weights, messages, seen, work)
            value, above = _above(graph, b, single, rho, weights, seen, work)
            below = _attained(graph, b, single, rho, weights, seen, means)
            gap = above - below
            stuck = 0 if gap < STUCK * least or gap > ROUNDING * (1.0 + abs(value)) else stuck + 1
            least = min(least, gap)
            if gap <= run.tol or stuck == PATIENCE or sweep == max_iter:
                break
            if sweep > 20 and change > 0.9 * before:  # they go back and forth
                damping = min(damping + 0.1, MOST_DAMPING)
            before = change
    tau[:] = means[:, 0]
    return value, below, above, sweep


@kernel
def free_energies(graph, b, run, weights, messages, tau, lo, hi, out):
    """`free_energy` of the rows lo..hi; `run` is a `bethe.Run`, with one weight for all entropies."""
    for row in range(lo, hi):
        value, below, above, sweeps = free_energy(graph, b, run, weights[row], messages[row], tau[row])
        out[row, 0], out[row, 1], out[row, 2], out[row, 3] = value, below, above, sweeps
