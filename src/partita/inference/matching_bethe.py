"""Free energies of matchings: Bethe, and reweighted towards plain entropy."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..core.parallel import Workers
from ..core.results import FloatArray, Result, Status
from ..core.validation import check_count, check_real
from ..kernels import matching as kernels
from ..kernels import matching_many
from ..structures.matching import half_edges
from .matching_support import forced_edges, fractional_support

#: Edges from which the sweeps of one example are shared out to threads.
LARGE = 20_000


def matching_bethe(
    structure: Any,
    weights: FloatArray,
    rho: float = 1.0,
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
    rho : float, from 1/2 to 1
        1 is Bethe's, by messages: with two sides log Z is at least that, and at most n log(2) / 2 more. 1/2 is the plain
        entropy, by scalings: log Z is at most that.
    tol : float
        Stop when the certificate is at most so large.
    max_iter : int
        Most sweeps.
    messages : array, optional
        Those of an earlier result with as many examples on the same structure, for a warm start.
    """
    rho, tol = check_real("rho", rho), check_real("tol", tol, minimum=0.0)
    check_count("max_iter", max_iter, minimum=1)
    if not 0.5 <= rho <= 1.0:
        raise ValueError(f"rho must be from 1/2 to 1, got {rho}")
    B, m, V = len(weights), structure.n_edges, structure.n_vertices
    state = np.zeros((B, 2 * m if rho == 1.0 else V + m))
    if messages is not None:
        if np.shape(messages) != state.shape:
            raise ValueError(
                f"messages must have shape {state.shape}, as those of a result of this call; got {np.shape(messages)}"
            )
        state[:] = messages
    elif rho < 1.0:
        state[:, V:] = np.log(0.5)
    tau, out = np.zeros((B, m)), np.zeros((B, 3))
    rows, allowed = np.arange(B), weights > -np.inf
    patterns, which = (
        np.unique(allowed, axis=0, return_inverse=True) if not allowed.all() else (allowed[:1], np.zeros(B, int))
    )
    for k, pattern in enumerate(patterns):
        mine = rows[which == k]
        free, forced = _support(structure, pattern, int(mine[0]))
        options = (rho, tol, max_iter)
        if free.all():
            part, inside, found = state[mine], tau[mine], out[mine]
            _run(structure, structure.graph, weights[mine], *options, part, inside, found)
            state[mine], tau[mine], out[mine] = part, inside, found
            continue
        base = weights[mine][:, forced].sum(1)
        tau[np.ix_(mine, np.flatnonzero(forced))] = 1.0
        found = np.zeros((len(mine), 3))
        if free.any():
            graph = _reduced(structure, free)
            part = np.zeros((len(mine), 2 * int(free.sum()) if rho == 1.0 else len(graph[0][0]) - 1 + int(free.sum())))
            part[:, len(graph[0][0]) - 1 :] = 0.0 if rho == 1.0 else np.log(0.5)
            inside = np.zeros((len(mine), int(free.sum())))
            _run(structure, graph, np.ascontiguousarray(weights[mine][:, free]), *options, part, inside, found)
            tau[np.ix_(mine, np.flatnonzero(free))] = inside
        found[:, 0] += base
        out[mine] = found
    value, gap = out[:, 0].copy(), out[:, 1].copy()
    lower, upper = _bounds(structure, rho, value, gap)
    status = Status.CONVERGED if (gap <= tol).all() else Status.UNSETTLED
    return Result(
        value,
        tau,
        status,
        exact=False,
        lower=lower,
        upper=upper,
        n_iter=int(out[:, 2].max()),
        messages=state,
        certificate=gap,
    )


def _bounds(structure: Any, rho: float, value: FloatArray, gap: FloatArray) -> tuple[FloatArray, FloatArray]:
    """What is known of log Z."""
    lower, upper = np.full_like(value, -np.inf), np.full_like(value, np.inf)
    if structure.left and structure.perfect and rho == 1.0:
        lower, upper = value - gap, value + gap + structure.left * np.log(2.0) / 2.0
    if rho == 0.5:
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


def _run(
    structure: Any, graph: Any, weights: FloatArray, rho: float, tol: float, max_iter: int, state: Any, tau: Any, out: Any
) -> None:
    arrays, neighbours = graph
    if rho == 1.0 and weights.shape[1] >= LARGE:
        for b in range(len(weights)):
            out[b] = _large(structure.workers, arrays, not structure.perfect, weights[b], tol, max_iter, state[b], tau[b])
        return
    given = (arrays, neighbours, not structure.perfect, rho, weights, tol, max_iter, state, tau)
    ranges = Workers.ranges(len(weights), 200.0 * weights.size)
    structure.workers.run(lambda lo, hi: matching_many.free_energies(*given, lo, hi, out), ranges)


def _large(
    workers: Workers, graph: Any, single: bool, weights: FloatArray, tol: float, max_iter: int, messages: Any, tau: Any
) -> tuple[float, float, int]:
    """`kernels.matching.bethe` for one example whose sweeps are shared out to threads."""
    starts, edges, others, _, owned, component, sizes, left = graph
    V, m = len(starts) - 1, len(weights)
    sent = messages if left else np.empty_like(messages)
    totals, sums, slack = np.empty(V), np.empty(V), np.empty(V)
    log_tau, log_rest, shift = np.empty(m), np.empty(m), np.empty(len(sizes))
    sides = [(0, left), (left, V)] if left else [(0, V)]
    pieces = [_pieces(starts, lo, hi) for lo, hi in sides]
    value, gap, wait = -np.inf, np.inf, 1
    for sweep in range(1, max_iter + 1):
        for side in pieces:
            tasks = [(starts, edges, others, weights, single, lo, hi, messages, sent, totals) for lo, hi in side]
            workers.run(kernels.send, tasks)
        if sweep in (wait, max_iter):
            wait = sweep + max(1, sweep // 8)
            given = (owned, messages, sent, totals, log_tau, log_rest)
            workers.run(kernels.view, [(starts, edges, others, weights, lo, hi, *given) for lo, hi in pieces[-1]])
            duals = np.zeros(V) if single else totals - 1.0
            value, gap = kernels.certify(graph, weights, single, 1.0, duals, tau, log_tau, log_rest, sums, slack)
            if gap <= tol:
                return value, gap, sweep
        if not left:
            kernels.centre(starts, component, sizes, messages, sent, shift)
    return value, gap, max_iter


def _pieces(starts: Any, lo: int, hi: int) -> list[tuple[int, int]]:
    """Vertices lo..hi in pieces with about as many edges."""
    offsets = starts[lo : hi + 1] - starts[lo]
    return [(lo + a, lo + b) for a, b in Workers.balanced(offsets, 20.0 * float(offsets[-1]))]
