"""Strictly convex quadratic programs: a primal-dual active set with a warm start, safeguarded by Goldfarb-Idnani, and
projected conjugate gradients for boxes whose matrix is known by products only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.linalg.lapack import dpotrf, dpotrs, dtrtri, dtrtrs

from . import goldfarb_idnani
from .goldfarb_idnani import INFEASIBLE, ITERATION_LIMIT, OPTIMAL

__all__ = ["INFEASIBLE", "ITERATION_LIMIT", "OPTIMAL", "Program", "ProgramResult", "box_by_products", "solve_program"]

Vector = NDArray[np.float64]
#: Violations and wrong signs up to so much, relative to the numbers compared, count as rounding.
ROUNDING = 1e-12
#: Full exchanges of the active set that may pass without progress, and in all.
PATIENCE, MAX_EXCHANGES = 5, 60
#: Variables up to which the dual method from scratch is the faster one, without and with a guess (`benchmarks/qp.py`).
DUAL_COLD, DUAL_WARM = 250, 50
#: Square root of the reciprocal condition number from which a matrix counts as singular.
SINGULAR = 1e-7
#: Share of its diagonal that a singular matrix gets added.
RIDGE = 1e-10


@dataclass(frozen=True)
class Program:
    """``min 1/2 x'Cx + g'x`` subject to ``lower <= x <= upper`` and ``row_lower <= A x <= row_upper``.

    `rows` is a scipy CSR matrix, or None.
    """

    C: NDArray[np.float64]
    g: Vector
    lower: Vector
    upper: Vector
    rows: Any = None
    row_lower: Vector = field(default_factory=lambda: np.zeros(0))
    row_upper: Vector = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class ProgramResult:
    """The solution, with ``C x + g = A' row_multipliers + bound_multipliers``.

    Multipliers are positive where the lower side holds, negative where the upper does. `active` says for every variable,
    then for every row, which side is active (-1, 0, 1): what the next program of a sequence starts from.
    """

    x: Vector
    bound_multipliers: Vector
    row_multipliers: Vector
    active: NDArray[np.int8]
    status: int
    iterations: int


def solve_program(program: Program, guess: NDArray[np.int8] | None = None) -> ProgramResult:
    """Solve a program; `guess` is the active set to start from.

    A matrix that is singular to working precision gets `RIDGE` times its diagonal added.
    """
    C, factor = _definite(program.C)
    if C is not program.C:
        program = Program(C, program.g, program.lower, program.upper, program.rows, program.row_lower, program.row_upper)
    small = len(program.g) <= (DUAL_COLD if guess is None else DUAL_WARM)
    found = None if small else _exchange(program, guess)
    return found if found is not None else _dual_active_set(program, factor)


def _definite(C: Any) -> tuple[Any, Any]:
    """C, or C with a ridge if it is singular, and its lower Cholesky factor."""
    diagonal = np.diag(C)
    ridge = 0.0
    while True:
        attempt = C
        if ridge > 0.0:
            attempt = C.copy()
            attempt.flat[:: len(C) + 1] += ridge * np.maximum(diagonal, 1e-3 * diagonal.max(initial=0.0) + 1e-300)
        factor, info = dpotrf(attempt.T, lower=1, overwrite_a=0, clean=1)
        pivots = np.diag(factor)
        if info == 0 and np.all(pivots > SINGULAR * np.sqrt(np.maximum(diagonal, 1e-300))):
            return attempt, factor
        if ridge > 1.0 or not np.isfinite(diagonal).all():
            raise np.linalg.LinAlgError("the matrix of a quadratic program is not finite or not positive semi-definite")
        ridge = RIDGE if ridge == 0.0 else 100.0 * ridge


def _dual_active_set(program: Program, factor: Any) -> ProgramResult:
    """Goldfarb and Idnani from scratch."""
    p = program
    d, m = len(p.g), len(p.row_lower)
    x, _ = dpotrs(factor, -p.g, lower=1)
    inverse, _ = dtrtri(factor, lower=1)
    JT = np.ascontiguousarray(np.tril(inverse))
    constraints = goldfarb_idnani.Constraints(
        p.lower, p.upper, *_csr(p.rows), p.row_lower, p.row_upper, _row_norms(p.rows, m)
    )
    bound, row = np.zeros(d), np.zeros(m)
    x = np.ascontiguousarray(x)
    active = np.zeros(d + m, np.int8)
    status, iterations = goldfarb_idnani.solve(constraints, ROUNDING, JT, x, bound, row, active)
    return ProgramResult(x, bound, row, active, int(status), int(iterations))


def _csr(rows: Any) -> tuple[Any, Any, Any]:
    if rows is None:
        return np.zeros(1, np.int64), np.zeros(0, np.int64), np.zeros(0)
    return rows.indptr.astype(np.int64), rows.indices.astype(np.int64), rows.data.astype(np.float64)


def _row_norms(rows: Any, m: int) -> Vector:
    if rows is None or m == 0:
        return np.zeros(0)
    norms = np.sqrt(np.asarray(rows.multiply(rows).sum(1))).ravel()
    return np.where(norms > 0.0, norms, 1.0)


def _exchange(program: Program, guess: NDArray[np.int8] | None) -> ProgramResult | None:
    """Exchange every wrong entry of the active set at once until none is; None if that gets nowhere.

    Block principal pivoting: a primal-dual active-set method that counts wrong entries. On the programs of constrained
    likelihoods it takes three to eight rounds, one to three from the last active set.
    """
    p = program
    d, m = len(p.g), len(p.row_lower)
    fixed, equal = p.lower == p.upper, p.row_lower == p.row_upper
    state = np.zeros(d + m, np.int8) if guess is None else guess.copy()
    state[:d][fixed], state[d:][equal] = -1, -1
    state[:d][((state[:d] < 0) & np.isinf(p.lower)) | ((state[:d] > 0) & np.isinf(p.upper))] = 0
    state[d:][((state[d:] < 0) & np.isinf(p.row_lower)) | ((state[d:] > 0) & np.isinf(p.row_upper))] = 0
    fewest, patience = d + m + 1, PATIENCE
    for iteration in range(1, MAX_EXCHANGES + 1):
        solved = _equality_solve(p, state[:d], state[d:])
        if solved is None:
            return None
        x, bound, row, values, noise = solved
        row_noise = ROUNDING * np.abs(row).max(initial=0.0)
        wrong = np.concatenate(
            [
                _corrections(state[:d], fixed, x, p.lower, p.upper, bound, noise),
                _corrections(state[d:], equal, values, p.row_lower, p.row_upper, row, row_noise),
            ]
        )
        changes = np.flatnonzero(wrong != state)
        if changes.size == 0:
            bound, row = _right_sign(state[:d], fixed, bound), _right_sign(state[d:], equal, row)
            return ProgramResult(x, bound, row, state, OPTIMAL, iteration)
        if changes.size < fewest:
            fewest, patience = changes.size, PATIENCE
        else:
            patience -= 1
            if patience < 0:
                return None
        state = wrong.astype(np.int8)
    return None


def _right_sign(state: Any, fixed: Any, multipliers: Vector) -> Vector:
    """Multipliers without the rounding that is left on the wrong side of zero."""
    return np.where(fixed | (-state * multipliers >= 0.0), multipliers, 0.0)


def _corrections(
    state: Any, fixed: Any, values: Vector, lower: Vector, upper: Vector, multipliers: Vector, noise: float
) -> Any:
    """The states after every violated one is made active and every active one with a wrong sign is released."""
    room = ROUNDING * (1.0 + np.abs(values))
    below, above = values < lower - room, values > upper + room
    release = (state != 0) & (-state * multipliers < -noise) & ~fixed
    free = state == 0
    return np.where(free & below, -1, np.where(free & above, 1, np.where(release, 0, state)))


class _Candidate(NamedTuple):
    """The minimum with an active set as equalities: x, its multipliers, A x, and the rounding of the bounds' multipliers."""

    x: Vector
    bound_multipliers: Vector
    row_multipliers: Vector
    row_values: Vector
    noise: float


def _equality_solve(p: Program, side: Any, row_side: Any) -> _Candidate | None:
    """Minimise with the active constraints as equalities; None if their normals are dependent."""
    d = len(p.g)
    free, held = np.flatnonzero(side == 0), np.flatnonzero(side)
    x = np.where(side < 0, p.lower, p.upper)
    x[free] = 0.0
    right = -(p.g + p.C[:, held] @ x[held]) if held.size else -p.g
    rows = np.flatnonzero(row_side)
    row = np.zeros(len(row_side))
    if free.size:
        block = p.C if free.size == d else p.C[np.ix_(free, free)]
        factor, info = dpotrf(block.T, lower=1, clean=0)
        if info:
            return None
    if rows.size:
        A = p.rows[rows]
        target = np.where(row_side[rows] < 0, p.row_lower[rows], p.row_upper[rows]) - A @ x
        if rows.size > free.size:
            return None
        dense = A[:, free].toarray()
        half, _ = dtrtrs(factor, dense.T, lower=1)
        start, _ = dtrtrs(factor, right[free], lower=1)
        gram = half.T @ half
        schur, info = dpotrf(gram, lower=1, clean=1)
        if info or np.any(np.diag(schur) <= SINGULAR * np.sqrt(np.diag(gram))):
            return None
        multipliers, _ = dpotrs(schur, target - half.T @ start, lower=1)
        row[rows] = multipliers
        x[free], _ = dtrtrs(factor, start + half @ multipliers, lower=1, trans=1)
    elif free.size:
        x[free], _ = dpotrs(factor, right[free], lower=1)
    slope = p.C @ x + p.g
    if rows.size:
        slope = slope - p.rows.T @ row
    noise = ROUNDING * (float(np.abs(p.g).max(initial=0.0)) + float(np.abs(slope).max(initial=0.0)))
    bound = np.where(side != 0, slope, 0.0)
    values = p.rows @ x if p.rows is not None else np.zeros(0)
    return _Candidate(x, bound, row, values, noise)


def box_by_products(
    product: Callable[[Vector], Vector],
    g: Vector,
    lower: Vector,
    upper: Vector,
    precondition: Callable[[Vector], Vector],
    rtol: float,
    max_products: int,
    partners: Any = None,
) -> tuple[Vector, int]:
    """``min 1/2 x'Cx + g'x`` over a box that holds 0, from x = 0, with C known by products.

    Conjugate gradients on the free variables, bent at the bounds by a projected search; bounds with multipliers of the
    wrong sign are released in between. Every round lowers the quadratic. Stops when the projected gradient has shrunk by
    `rtol`. Returns x and the number of products.

    `partners` are two arrays of numbers of variables that are the two parts of one, ``x_a - x_b``: of each pair one stays at
    its lower bound, while the other is above.
    """
    x, slope = np.zeros_like(g), g.copy()
    used, first = 0, None
    while used < max_products:
        free = ~(((x <= lower) & (slope >= 0.0)) | ((x >= upper) & (slope <= 0.0)))
        if partners is not None:
            for one, other in (partners, partners[::-1]):
                free[one] &= (x[one] > lower[one]) | (x[other] <= lower[other])
        norm = float(np.linalg.norm(slope[free]))
        first = norm if first is None else first
        if norm <= rtol * first or norm == 0.0:
            break
        step, spent = _face_step(product, slope, free, precondition, rtol * first, max_products - used)
        used += spent
        x_new, moved, spent = _bent_search(product, x, slope, step, lower, upper)
        used += spent
        if x_new is None:
            break
        x, slope = x_new, slope + moved
    return x, used


def _face_step(
    product: Callable[[Vector], Vector],
    slope: Vector,
    free: Any,
    precondition: Callable[[Vector], Vector],
    target: float,
    budget: int,
) -> tuple[Vector, int]:
    """Conjugate gradients for the step that cancels `slope` on the free variables."""
    step, r = np.zeros_like(slope), np.where(free, -slope, 0.0)
    z = np.where(free, precondition(r), 0.0)
    p, rz = z.copy(), float(r @ z)
    goal = max(0.5 * target, 0.05 * float(np.linalg.norm(r)))
    for used in range(1, max(2, budget)):
        Cp = product(p)
        curvature = float(p @ Cp)
        if not curvature > 0.0:
            return (p if used == 1 else step), used
        length = rz / curvature
        step += length * p
        r -= np.where(free, length * Cp, 0.0)
        if float(np.linalg.norm(r)) <= goal:
            return step, used
        z = np.where(free, precondition(r), 0.0)
        rz, previous = float(r @ z), rz
        p = z + (rz / previous) * p
    return step, max(1, budget - 1)


def _bent_search(
    product: Callable[[Vector], Vector], x: Vector, slope: Vector, step: Vector, lower: Vector, upper: Vector
) -> tuple[Vector | None, Vector, int]:
    """The first of x + t step, bent into the box, t = 1, 1/4, ..., that lowers the quadratic; and C times the move."""
    t = 1.0
    for used in range(1, 25):
        trial = np.clip(x + t * step, lower, upper)
        move = trial - x
        bend = product(move)
        linear = float(slope @ move)
        if linear + 0.5 * float(move @ bend) <= 1e-4 * linear < 0.0:
            return trial, bend, used
        t *= 0.25
    return None, np.zeros_like(x), 24
