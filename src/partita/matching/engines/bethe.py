"""Free energies of matchings: Bethe, and reweighted towards plain entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, Result, Status
from ...core.validation import check_count, check_real
from ..kernels.messages import bethe as kernels, many
from ..kernels.messages.bethe import Run
from ..kernels.messages.certificates import certify, settled
from ..structure.half_edges import half_edges
from .b_bethe import b_matching_bethe
from .entropy_weights import entropy_weights
from .frozen import freeze
from .scaling import Scaling
from .support import forced_edges, fractional_support

#: Edges from which the sweeps of one example are shared out to threads.
LARGE = 20_000
#: Sweeps after which a frozen solution is looked for, and messages begin anew from prices of the best matching.
FIRST = 50


def matching_bethe(
    structure: Any,
    weights: FloatArray,
    rho: Any = 1.0,
    tol: float = 1e-8,
    max_iter: int = 5000,
    messages: Any = None,
) -> Result:
    """The largest of ``<weights, tau> + H_rho(tau)`` over all tau whose degrees are one (at most one if matchings need not
    be perfect), and the tau where it is.

    ``H_rho = sum_e [(2 rho - 1) (1 - tau_e) log(1 - tau_e) - tau_e log tau_e] - rho sum_i s_i log s_i``, where s_i is what
    is missing to one at vertex i. It is concave: the answer has a certificate, which is the `gap` of the result.

    Parameters
    ----------
    structure : BipartiteMatching or Matching
    weights : array of shape (examples, edges)
        -inf forbids an edge.
    rho : float, above 0 and up to 1, or a pair for rows and columns
        1 is Bethe's, by messages: with two sides log Z is at least that, and at most n log(2) / 2 more. 1/2 is the plain
        entropy, by scalings: log Z is at most that, and at most the value for any smaller one (by the messages of
        b-matchings). Where all vertices are matched, a pair is its mean. Else its sum is 2 rho in the first part of H, and
        each vertex has its own in the second; the mean must then be at least 1/2.
    tol : float
        Stop when the certificate is at most so large.
    max_iter : int
        Most sweeps.
    messages : array, optional
        Those of an earlier result with as many examples on the same structure, for a warm start.
    """
    pair, tol = entropy_weights(structure, rho), check_real("tol", tol, minimum=0.0)
    check_count("max_iter", max_iter, minimum=1)
    rho = 0.5 * (pair[0] + pair[1])
    if rho < 0.5:  # scalings would overshoot
        return b_matching_bethe(structure, weights, pair, tol, max_iter, messages)
    weights = structure.rows(weights)
    B, m = len(weights), structure.n_edges
    if rho == 1.0 and m >= LARGE and (messages is None or np.shape(messages) == (B, structure.n_vertices)):
        scaled = _scaled(structure, weights, tol, messages)
        if scaled is not None:
            return scaled
        messages = None
    twice = 1 if structure.left else 2  # of every edge, see `half_edges`
    vertices = twice * structure.n_vertices
    state = np.zeros((B, 2 * twice * m if rho == 1.0 else vertices + twice * m))
    if messages is not None:
        if np.shape(messages) != state.shape:
            raise ValueError(f"messages must have shape {state.shape}, as those of a result on the same structure has them")
        if not np.isfinite(messages).all():
            raise ValueError("messages must be finite")
        state[:] = messages
    elif rho < 1.0:
        state[:, vertices:] = np.log(0.5)
    tau, out = np.zeros((B, m)), np.zeros((B, 3))
    rows, allowed = np.arange(B), weights > -np.inf
    patterns, which = allowed[:1], np.zeros(B, np.int64)
    if not allowed.all():
        patterns, which = np.unique(allowed, axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        mine = rows[which.ravel() == k]
        free, forced = _support(structure, pattern, int(mine[0]))
        if not free.all():
            tau[np.ix_(mine, np.flatnonzero(forced))] = 1.0
        if free.any():
            graph = structure.graph if free.all() else _reduced(structure, free)
            part = state[mine] if free.all() else _cold(graph, rho, len(mine))
            inside, found = np.zeros((len(mine), twice * int(free.sum()))), np.zeros((len(mine), 3))
            W = weights[mine][:, free]
            if structure.perfect:  # all solutions have as many edges
                level = W.mean(1, keepdims=True)
                W = W - level
            W = np.tile(W, (1, twice))
            _run(structure, graph, W, Run(not structure.perfect, pair, twice * tol, max_iter), part, inside, found)
            if structure.perfect:
                found[:, 0] += level[:, 0] * graph[0][4]
            tau[np.ix_(mine, np.flatnonzero(free))] = inside.reshape(len(mine), twice, -1).mean(1)
            out[mine] = found / [twice, twice, 1]
            if free.all():
                state[mine] = part
        out[mine, 0] += weights[mine][:, forced].sum(1)
    return _result(structure, rho, tol, tau, out, state)


def _result(structure: Any, rho: float, tol: float, tau: FloatArray, out: FloatArray, state: FloatArray) -> Result:
    """With the value, the certificate and the number of sweeps of each example in `out`."""
    value, gap = out[:, 0].copy(), out[:, 1].copy()
    lower, upper = _bounds(structure, rho, value, gap)
    status = Status.CONVERGED if (gap <= tol).all() else Status.UNCERTIFIED
    return Result(
        value,
        tau,
        status,
        exact=False,
        lower=lower,
        upper=upper,
        n_iter=int(out[:, 2].max()),
        messages=state,
        engine="bethe",
        certificate=gap,
        residual=float(gap.max()),
        tol=tol,
    )


def _scaled(structure: Any, weights: FloatArray, tol: float, start: Any) -> Result | None:
    """By `Scaling`, whose messages are one number for each vertex; None if an example has an edge that needs more."""
    tau, out, state = np.empty_like(weights), np.empty((len(weights), 3)), np.empty((len(weights), structure.n_vertices))
    for b, row in enumerate(weights):
        if not row.min() > -np.inf:
            return None
        found = Scaling(structure, row, tau[b]).solve(tol, None if start is None else start[b])
        if found is None:
            return None
        out[b], state[b] = found[:3], found[3]
    return _result(structure, 1.0, tol, tau, out, state)


def _cold(graph: Any, rho: float, count: int) -> FloatArray:
    """A start without messages."""
    m, vertices = len(graph[0][3]), len(graph[0][0]) - 1
    state = np.zeros((count, 2 * m if rho == 1.0 else vertices + m))
    if rho < 1.0:
        state[:, vertices:] = np.log(0.5)
    return state


def _bounds(structure: Any, rho: float, value: FloatArray, gap: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What is known of log Z."""
    lower, upper = np.full_like(value, -np.inf), np.full_like(value, np.inf)
    if structure.two_sided and rho == 1.0:
        lower = value - gap
        if structure.perfect:
            upper = value + gap + 0.25 * structure.n_vertices * np.log(2.0)
    if rho <= 0.5:
        upper = value + gap
    return lower, upper


def _support(structure: Any, allowed: Any, example: int) -> tuple[Any, Any]:
    """The edges that are to be found out about, and those that must be in every matching."""
    none = np.zeros(structure.n_edges, bool)
    if not structure.perfect:
        return allowed, none
    if allowed.all() and (structure.left > 1 or (not structure.left and structure.complete and structure.n_vertices > 2)):
        return allowed, none
    index = np.flatnonzero(allowed)
    inside = fractional_support(structure.ends[index], structure.n_vertices, structure.left)
    if inside is None:
        raise ValueError(f"there is no perfect matching in example {example}: too many edges are missing or forbidden")
    index = index[inside]
    forced = none.copy()
    forced[index[forced_edges(structure.ends[index], structure.n_vertices)]] = True
    free = none.copy()
    free[index] = True
    return free & ~forced, forced


def _reduced(structure: Any, free: Any) -> Any:
    """The graph of some edges, with the vertices that have any."""
    ends = structure.ends[free]
    used = np.unique(ends)
    left = int((used < structure.left).sum())
    return half_edges(np.searchsorted(used, ends), len(used), left)


def _run(structure: Any, graph: Any, weights: FloatArray, run: Run, state: Any, tau: Any, out: Any) -> None:
    whole, tol, max_iter = run.rho == (1.0, 1.0), run.tol, run.max_iter
    if whole and weights.shape[1] >= LARGE:
        for b in range(len(weights)):
            out[b] = _large(structure.workers, graph[0], run, weights[b], state[b], tau[b])
        return
    if not whole or run.single:  # nothing is frozen
        _sweep(structure, graph, run, weights, state, tau, out)
        return
    first = run._replace(max_iter=min(max_iter, FIRST))
    _sweep(structure, graph, first, weights, state, tau, out)
    open_ = np.flatnonzero(out[:, 1] > tol)
    if len(open_):
        duals = np.array([freeze(graph[0], weights[b], tau[b], out[b]) for b in open_.tolist()])
        still = out[open_, 1] > tol
        if still.any() and max_iter > FIRST:
            rest = run._replace(max_iter=max_iter - FIRST)
            _again(structure, graph, rest, weights, duals[still], open_[still], state, tau, out)


def _again(
    structure: Any, graph: Any, run: Any, weights: FloatArray, duals: FloatArray, which: Any, state: Any, tau: Any, out: Any
) -> None:
    """Some examples once more, from the prices of vertices at the best matching: with these taken off, weights are zero on
    its edges and at most that on others, and messages have no long way to go."""
    starts, ends = graph[0][0], graph[0][3]
    owners = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    reduced = weights[which] - duals[:, ends].sum(2)
    part, found = np.zeros((len(which), state.shape[1])), np.zeros((len(which), 3))
    inside = np.zeros((len(which), tau.shape[1]))
    _sweep(structure, graph, run, reduced, part, inside, found)
    found[:, 0] += duals.sum(1)
    found[:, 1] += 1e-15 * np.abs(weights[which]).max(1) * duals.shape[1]  # rounding of reduced weights
    found[:, 2] += out[which, 2]
    better = found[:, 1] < out[which, 1]
    out[which, 2] = found[:, 2]
    out[which[better]], tau[which[better]] = found[better], inside[better]
    state[which] = part - duals[:, owners]


def _sweep(structure: Any, graph: Any, run: Any, weights: FloatArray, state: Any, tau: Any, out: Any) -> None:
    given: Any = (*graph, run, weights, state, tau)
    ranges = Workers.ranges(len(weights), 200.0 * weights.size)
    kernel: Any = many.free_energies
    structure.workers.run(lambda lo, hi: kernel(*given, lo, hi, out), ranges)


def _large(workers: Workers, graph: Any, run: Any, weights: FloatArray, messages: Any, tau: Any) -> tuple[float, float, int]:
    """`kernels.messages.bethe.bethe` for one example whose sweeps are shared out to threads."""
    starts, edges, others, _, left = graph
    V, m = len(starts) - 1, len(weights)
    totals, sums, slack = np.empty(V), np.empty(V), np.empty(V)
    trial, move = np.empty_like(messages), np.empty_like(messages)
    log_tau, log_rest = np.empty(m), np.empty(m)
    pieces = [_pieces(starts, 0, left), _pieces(starts, left, V)]
    cap = kernels.largest_message(weights)

    def sweeps(count: int, messages: Any) -> tuple[float, float]:
        given = (starts, edges, others, weights, run.single, cap)
        for _ in range(count):
            for side in pieces:
                workers.run(kernels.send, [(*given, lo, hi, messages, totals) for lo, hi in side])
        seen = (messages, totals, log_tau, log_rest)
        workers.run(kernels.view, [(starts, edges, others, weights, lo, hi, *seen) for lo, hi in pieces[1]])
        found = certify(graph, weights, run.single, run.rho, totals - 1.0, tau, log_tau, log_rest, sums, slack)
        return float(found[0]), float(found[1])

    least, stuck, count, pause, sweep, begin = np.inf, 0, 1, kernels.PAUSE, 0, kernels.first_leap(V)
    while True:
        value, gap = sweeps(count, messages)
        sweep += count
        done, stuck = settled(value, gap, run.tol, least, stuck)
        least = min(least, gap)
        if done or sweep >= run.max_iter:
            return value, gap, sweep
        count, lower = min(max(1, sweep // 8), run.max_iter - sweep), True
        while lower and sweep >= begin and sweep + 2 * kernels.SMOOTHING < run.max_iter:
            largest, lower = kernels.leap(graph, run.single, weights, cap, messages, log_tau, log_rest, move), False
            for reach in (kernels.FAR, kernels.NEAR):
                if not lower and (reach == kernels.FAR or largest > reach):
                    kernels.moved(messages, move, min(1.0, reach / max(largest, 1e-300)), cap, trial)
                    found = sweeps(kernels.SMOOTHING, trial)
                    sweep += kernels.SMOOTHING
                    lower = found[1] < gap
            if lower:
                messages[:] = trial
                value, gap = found
                if gap <= run.tol:
                    return value, gap, sweep
            else:
                begin, count, pause = sweep + pause, min(pause, run.max_iter - sweep), 2 * pause


def _pieces(starts: Any, lo: int, hi: int) -> list[tuple[int, int]]:
    """Vertices lo..hi in pieces with about as many edges."""
    offsets = starts[lo : hi + 1] - starts[lo]
    return [(lo + a, lo + b) for a, b in Workers.balanced(offsets, 20.0 * float(offsets[-1]))]
