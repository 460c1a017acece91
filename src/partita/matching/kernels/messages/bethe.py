"""Bethe's free energy of matchings by messages, and by Newton's steps on them where they creep.

A graph has for each vertex i the half-edges ``starts[i]:starts[i + 1]``; half-edge h belongs to edge ``edges[h]``, and its
other half is ``others[h]``. Every edge joins one of the first `left` vertices with one of the rest.
Weights of edges are logarithms. With `single`, vertices may stay alone. For each edge, `tau` is its probability, `log_tau`
the logarithm of that, and `log_rest` that of 1 - tau, which keeps its digits where tau is one to all digits.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ....numerics.jit import kernel, sum_kernel
from ....numerics.math import exp, log
from . import newton
from .certificates import certify, settled

#: Newton's steps begin after so many sweeps, or one for four vertices, and not for more vertices than this.
EARLIEST, LARGEST_SYSTEM, NEVER = 10, 1000, 1 << 60
#: Largest changes of messages by a step of Newton's, and by a second trial of it.
FAR, NEAR = 10.0, 1.0
#: Sweeps after a step of Newton's, and after the first that failed.
SMOOTHING, PAUSE = 2, 10


class Run(NamedTuple):
    """What is asked for: whether vertices may stay alone, the weight of the entropies of the first vertices and that of the
    others, the certificate, most sweeps."""

    single: bool
    rho: tuple[float, float]
    tol: float
    max_iter: int


@sum_kernel
def leave_one_out(x, n, single, out):
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
        totals[i] = leave_one_out(x, n, single, out)
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
def sweeps(graph, single, weights, cap, count, messages, totals):
    """So many times messages of one side and then of the other."""
    starts, edges, others, left = graph[0], graph[1], graph[2], graph[4]
    V = len(starts) - 1
    for _ in range(count):
        send(starts, edges, others, weights, single, cap, 0, left, messages, totals)
        send(starts, edges, others, weights, single, cap, left, V, messages, totals)


@kernel
def judge(graph, single, weights, messages, totals, tau, log_tau, log_rest):
    """`certify` after a sweep."""
    starts, edges, others, left = graph[0], graph[1], graph[2], graph[4]
    V = len(starts) - 1
    view(starts, edges, others, weights, left, V, messages, totals, log_tau, log_rest)
    return certify(graph, weights, single, (1.0, 1.0), totals - 1.0, tau, log_tau, log_rest, np.empty(V), np.empty(V))


@kernel
def leap(graph, single, weights, cap, messages, log_tau, log_rest, move):
    """Newton's step for the messages of the second side, from those of a whole sweep (see `newton`): the largest change."""
    starts, edges, others, left = graph[0], graph[1], graph[2], graph[4]
    most = 0
    for i in range(left):
        most = max(most, starts[i + 1] - starts[i])
    x, out, seen = np.empty(most), np.empty(most), np.empty((3, len(weights)))
    for i in range(left):
        first, n = starts[i], starts[i + 1] - starts[i]
        for k in range(n):
            x[k] = weights[edges[first + k]] + messages[others[first + k]]
        total = leave_one_out(x, n, single, out)
        for k in range(n):
            e = edges[first + k]
            seen[0, e], seen[1, e] = x[k] - total, out[k] - total
            seen[2, e] = min(cap, -out[k]) - messages[first + k]
    return newton.changes(graph, single, seen, log_tau, log_rest, move)


@kernel
def moved(messages, move, part, cap, trial):
    """Messages after a part of a step."""
    for h in range(len(messages)):
        trial[h] = min(cap, messages[h] + part * move[h])


@kernel
def first_leap(vertices):
    """After how many sweeps Newton's steps begin: one costs as much as many sweeps of a large graph."""
    return max(EARLIEST, vertices // 4) if vertices <= LARGEST_SYSTEM else NEVER


@kernel
def bethe(graph, run, weights, messages, tau, log_tau, log_rest):
    """Belief propagation until the certificate is at most `run.tol`: the value, the certificate, and how many sweeps. From
    some sweep on, Newton's steps: one that does not lower the certificate is taken back, and sweeps go on for longer."""
    single, V, cap = run.single, len(graph[0]) - 1, largest_message(weights)
    totals, trial, move = np.empty(V), np.empty_like(messages), np.empty_like(messages)
    least, stuck, count, pause, sweep, begin = np.inf, 0, 1, PAUSE, 0, first_leap(V)
    while True:
        sweeps(graph, single, weights, cap, count, messages, totals)
        sweep += count
        value, gap = judge(graph, single, weights, messages, totals, tau, log_tau, log_rest)
        done, stuck = settled(value, gap, run.tol, least, stuck)
        least = min(least, gap)
        if done or sweep >= run.max_iter:
            return value, gap, sweep
        count = min(max(1, sweep // 8), run.max_iter - sweep)
        lower = True
        while lower and sweep >= begin and sweep + 2 * SMOOTHING < run.max_iter:
            largest, lower = leap(graph, single, weights, cap, messages, log_tau, log_rest, move), False
            for reach in (FAR, NEAR):
                if not lower and (reach == FAR or largest > reach):
                    moved(messages, move, min(1.0, reach / max(largest, 1e-300)), cap, trial)
                    sweeps(graph, single, weights, cap, SMOOTHING, trial, totals)
                    sweep += SMOOTHING
                    found = judge(graph, single, weights, trial, totals, tau, log_tau, log_rest)
                    lower = found[1] < gap
            if lower:
                messages[:] = trial
                value, gap = found
                if gap <= run.tol:
                    return value, gap, sweep
            else:
                begin, count, pause = sweep + pause, min(pause, run.max_iter - sweep), 2 * pause
