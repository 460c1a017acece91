"""Free energies of b-matchings: Bethe, and reweighted towards plain entropy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray, Result, Status
from ...core.validation import check_count, check_real
from ..kernels.messages import cardinality as kernels
from ..kernels.messages.bethe import Run
from ..registry import find_engine
from ..structure.half_edges import half_edges
from .b_support import degree_support
from .entropy_weights import one_weight

#: Sweeps after which a frozen solution is looked for.
FIRST = 100


def b_matching_bethe(
    structure: Any,
    weights: FloatArray,
    rho: Any = 1.0,
    tol: float = 1e-8,
    max_iter: int = 5000,
    messages: Any = None,
) -> Result:
    """The largest of ``<weights, tau> + H_rho(tau)`` over all tau whose degrees are b (or at most b), and where it is.

    ``H_rho = (1 - 2 rho) sum_e H_e + rho sum_a H_a``, with H_e the entropy of an edge that is there with probability tau_e,
    and H_a the largest entropy of the set of edges of vertex a, of b edges or at most b, with these probabilities.

    Parameters
    ----------
    structure : BMatching
    weights : array of shape (examples, edges)
        -inf forbids an edge.
    rho : float, above 0 and up to 1, or a pair of equal ones
        1 is Bethe's. Up to 1/2, log Z is at most the value.
    tol : float
        Stop when the certificate is at most so large.
    max_iter : int
        Most sweeps.
    messages : array, optional
        Those of an earlier result with as many examples on the same structure, for a warm start.

    Notes
    -----
    It is concave for every rho up to 1. Up to 1/2 that is plain. Else the part of vertex a is
    ``rho H_a - (rho - 1/2) sum_e H_e``, whose Hessian is at most zero if the covariance of the edges at a is at most twice
    the diagonal of their variances. These edges are independent given their number, or, with one more variable (what is
    missing to b, equally likely from 0 to b), given the sum; all are log-concave, so that they are negatively associated
    (Joag-Dev and Proschan). Covariances of an edge with all others then sum, in size, to its variance at most, which bounds
    the eigenvalues as claimed (Gershgorin).

    The certificate is the difference of two numbers with the largest value between them, converged or not: linear parts of
    the free energy, each maximised by a vertex alone; and the value at shares with right degrees
    (`kernels.messages.cardinality`), or the score of the b-matching closest to them, which is the answer where weights are
    far apart (it is frozen).

    log Z is at most the value for rho up to 1/2, because the entropy of the whole is at most half the sum of those of
    vertices, each edge having two (Shearer). With two sides and exact degrees (or at most one edge, or all) it is at least
    Bethe's: the sums over sets at a vertex are then real stable polynomials (Straszak and Vishnoi, 2017). Sums over at most
    two edges or more need not be, nor do graphs with odd cycles keep the inequality: there is no lower bound there but that
    of the best b-matching.
    """
    rho, tol = one_weight(structure, rho), check_real("tol", tol, minimum=0.0)
    check_count("max_iter", max_iter, minimum=1)
    weights = structure.rows(weights)
    if structure.complement is not None and np.isfinite(weights).all():
        return _by_complement(structure.complement, weights, (rho, tol, max_iter, messages))
    B, m = weights.shape
    state = np.zeros((B, 2 * m))
    if messages is not None:
        if np.shape(messages) != state.shape or not np.isfinite(messages).all():
            raise ValueError(f"messages must be finite, of shape {state.shape}, as a result on the same structure has them")
        state[:] = messages
    tau, out = np.zeros((B, m)), np.zeros((B, 4))
    run = Run(not structure.perfect, (rho, rho), tol, max_iter)
    patterns, which = np.unique(weights > -np.inf, axis=0, return_inverse=True)
    for k, allowed in enumerate(patterns):
        mine = np.flatnonzero(which.ravel() == k)
        free, sure = _support(structure, allowed, int(mine[0]))
        tau[np.ix_(mine, np.flatnonzero(sure))] = 1.0
        b = structure.b - np.bincount(structure.ends[sure].ravel(), minlength=structure.n_vertices)
        if free.any():
            graph = structure.half if free.all() else half_edges(structure.ends[free], len(b), len(b))[0][:3]
            part = state[mine] if free.all() else np.zeros((len(mine), 2 * int(free.sum())))
            inside, found = np.zeros((len(mine), int(free.sum()))), np.zeros((len(mine), 4))
            _run(structure, free, graph, b, run, weights[mine][:, free], part, inside, found)
            tau[np.ix_(mine, np.flatnonzero(free))], out[mine] = inside, found
            if free.all():
                state[mine] = part
        out[mine, :3] += weights[mine][:, sure].sum(1)[:, None]
    return _result(structure, rho, tol, tau, out, state)


def _by_complement(matching: Any, weights: FloatArray, options: tuple[Any, ...]) -> Result:
    """Where all edges but one at each vertex are in the set, by those that are not: a perfect matching. Entropies are the
    same, and its messages take Newton's steps where these creep."""
    found: Result = find_engine("bethe")(matching, -weights, *options)
    total = weights.sum(1)
    values: dict[str, Any] = {
        name: None if value is None else value + total
        for name, value in (("lower", found.lower), ("upper", found.upper), ("free_energy", found.free_energy))
    }
    return replace(found, log_z=found.log_z + total, marginals=np.maximum(1.0 - found.marginals, 0.0), **values)


def _support(structure: Any, allowed: Any, example: int) -> tuple[Any, Any]:
    """The edges that are to be found out about, and those that are in every b-matching."""
    none = np.zeros(structure.n_edges, bool)
    free = allowed & (structure.b[structure.ends] > 0).all(1)
    if not structure.perfect:
        return free, none
    index = np.flatnonzero(free)
    found = degree_support(structure.ends[index], structure.b, structure.left)
    if found is None:
        raise ValueError(f"there is no perfect b-matching in example {example}: too many edges are missing or forbidden")
    free, sure = none.copy(), none.copy()
    free[index[found[0]]] = True
    sure[index[~found[0] & found[1]]] = True
    return free, sure


def _run(
    structure: Any,
    free: Any,
    graph: Any,
    b: IntArray,
    run: Run,
    weights: FloatArray,
    state: FloatArray,
    tau: FloatArray,
    out: FloatArray,
) -> None:
    """By messages; those of frozen examples may grow for ever, and these are looked for after some sweeps."""
    level = weights.mean(1, keepdims=True) if structure.perfect else np.zeros((len(weights), 1))
    shifted, edges = weights - level, 0.5 * level * float(b.sum())  # all solutions have as many edges

    def sweep(rows: IntArray, sweeps: int) -> None:
        part = state[rows], tau[rows], out[rows]
        given: Any = (graph, b, run._replace(max_iter=sweeps), shifted[rows], *part[:2])
        ranges = Workers.ranges(len(rows), 2000.0 * weights.size * float(b.max()))
        structure.workers.run(lambda lo, hi: kernels.free_energies(*given, lo, hi, part[2]), ranges)
        part[2][:, 3] += out[rows, 3]
        part[2][:, :3] += edges[rows]
        state[rows], tau[rows], out[rows] = part

    rows = np.arange(len(weights))
    sweep(rows, min(run.max_iter, FIRST))
    rows = rows[out[:, 2] - out[:, 1] > run.tol]
    if len(rows):
        _freeze(structure, free, b, weights, rows, run.tol, tau, out)
        rows = rows[out[rows, 2] - out[rows, 1] > run.tol]
    if len(rows) and run.max_iter > FIRST:
        sweep(rows, run.max_iter - FIRST)
        rows = rows[out[rows, 2] - out[rows, 1] > run.tol]
        _freeze(structure, free, b, weights, rows, run.tol, tau, out)


def _freeze(
    structure: Any, free: Any, b: IntArray, weights: FloatArray, rows: IntArray, tol: float, tau: FloatArray, out: FloatArray
) -> None:
    """Where the b-matching that shares are closest to is better than what messages attain, it is the answer."""
    ends = structure.ends[free]
    for row in rows.tolist():
        y = np.rint(tau[row])
        degrees = np.bincount(ends.ravel(), np.repeat(y, 2), len(b))
        if not (degrees == b if structure.perfect else degrees <= b).all():
            continue
        score = float(weights[row] @ y)
        if score > out[row, 1]:
            out[row, 1] = score
            if out[row, 2] - score <= tol:
                tau[row] = y


def _result(structure: Any, rho: float, tol: float, tau: FloatArray, out: FloatArray, state: FloatArray) -> Result:
    """With the value, numbers below and above the largest, and the number of sweeps of each example in `out`."""
    value, gap = np.clip(out[:, 0], out[:, 1], out[:, 2]), np.maximum(out[:, 2] - out[:, 1], 0.0)
    degrees = np.bincount(structure.ends.ravel(), minlength=structure.n_vertices)
    stable = structure.perfect or ((structure.b <= 1) | (structure.b >= degrees)).all()
    lower, upper = np.full_like(value, -np.inf), np.full_like(value, np.inf)
    if structure.left and stable and rho == 1.0:
        lower = out[:, 1].copy()
    if rho <= 0.5:
        upper = out[:, 2].copy()
    return Result(
        value,
        tau,
        Status.CONVERGED if (gap <= tol).all() else Status.UNCERTIFIED,
        exact=False,
        lower=lower,
        upper=upper,
        n_iter=int(out[:, 3].max()),
        messages=state,
        engine="bethe",
        certificate=gap,
        residual=float(gap.max()),
        tol=tol,
    )
