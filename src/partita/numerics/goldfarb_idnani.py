"""The dual active-set method of Goldfarb and Idnani (1983) for strictly convex quadratic programs.

``min 1/2 x'Cx + g'x`` subject to ``lower <= x <= upper`` and ``row_lower <= A x <= row_upper``, A in CSR form. Bounds are
never written as rows. Symbols are the paper's: N holds the normals of the active constraints, ``C = L L'`` is the Cholesky
factorisation, ``J = L^-T Q`` with ``Q R = L^-1 N``; Givens rotations update Q and R as constraints come and go. J is kept
transposed, so that rotations run along rows of memory.

Constraint ``k`` is: ``x_i >= lower_i`` for k = i; ``x_i <= upper_i`` for k = d + i; row j from below for k = 2d + j; row j
from above for k = 2d + m + j. In every case ``normal' x >= bound`` with the normal's sign turned accordingly.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..core.results import FloatArray, IntArray
from .jit import kernel

OPTIMAL, INFEASIBLE, ITERATION_LIMIT = 0, 1, 2
#: Squared share of a normal outside the span of the active ones below which it counts as dependent.
DEPENDENT = 1e-24


class Constraints(NamedTuple):
    """What a program of d variables and m rows demands.

    Attributes
    ----------
    lower, upper : arrays (d,)
        Bounds; infinite where there is none.
    indptr, indices : int64 arrays
        Of the CSR matrix A.
    data : array
        Its entries.
    row_lower, row_upper : arrays (m,)
        Bounds on A x.
    norms : array (m,)
        Euclidean lengths of the rows.
    """

    lower: FloatArray
    upper: FloatArray
    indptr: IntArray
    indices: IntArray
    data: FloatArray
    row_lower: FloatArray
    row_upper: FloatArray
    norms: FloatArray


class ActiveSet(NamedTuple):
    """The active constraints, q of them in the order in which they came, and the factorisation of their normals.

    Attributes
    ----------
    numbers : int64 array (d + 1,)
        The first q are the numbers of the active constraints.
    u : array (d + 1,)
        Their multipliers.
    busy : bool array (2 d + 2 m,)
        Constraints not to be looked at: the active ones, those that they imply, the other sides of equalities.
    JT : array (d, d)
        J transposed; its rows from q on span the directions that leave the active constraints as they are.
    R : array (d, d)
        The triangle R is in its first q rows and columns.
    projected, r : arrays (d,)
        Of the constraint that enters: J' times its normal, and the change of u for each unit of its own multiplier,
        turned in sign.
    """

    numbers: IntArray
    u: FloatArray
    busy: Any
    JT: FloatArray
    R: FloatArray
    projected: FloatArray
    r: FloatArray


@kernel
def _slack(k, x, constraints):
    """normal' x - bound of constraint k."""
    d, m = len(x), len(constraints.row_lower)
    if k < d:
        return x[k] - constraints.lower[k]
    if k < 2 * d:
        return constraints.upper[k - d] - x[k - d]
    j = (k - 2 * d) % m
    total = 0.0
    for e in range(constraints.indptr[j], constraints.indptr[j + 1]):
        total += constraints.data[e] * x[constraints.indices[e]]
    return total - constraints.row_lower[j] if k < 2 * d + m else constraints.row_upper[j] - total


@kernel
def _bound(k, constraints):
    """The right-hand side of constraint k, without its sign."""
    d, m = len(constraints.lower), len(constraints.row_lower)
    if k < 2 * d:
        return constraints.lower[k] if k < d else constraints.upper[k - d]
    return constraints.row_lower[k - 2 * d] if k < 2 * d + m else constraints.row_upper[k - 2 * d - m]


@kernel
def _twin(k, d, m):
    """The same constraint from the other side."""
    if k < 2 * d:
        return k + d if k < d else k - d
    return k + m if k < 2 * d + m else k - m


@kernel
def _project(k, JT, constraints, out):
    """out = J' normal of constraint k."""
    d, m = len(JT), len(constraints.row_lower)
    out[:] = 0.0
    if k < 2 * d:
        column, sign = (k, 1.0) if k < d else (k - d, -1.0)
        for i in range(d):
            out[i] = sign * JT[i, column]
        return
    j = (k - 2 * d) % m
    sign = 1.0 if k < 2 * d + m else -1.0
    indptr, indices, data = constraints.indptr, constraints.indices, constraints.data
    for i in range(d):
        total = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            total += data[e] * JT[i, indices[e]]
        out[i] = sign * total


@kernel
def _rotate(a, b):
    """Cosine, sine and length that turn (a, b) into (length, 0)."""
    length = np.hypot(a, b)
    if length == 0.0:
        return 1.0, 0.0, 0.0
    return a / length, b / length, length


@kernel
def _turn_rows(M, i, j, c, s, start):
    for col in range(start, M.shape[1]):
        a, b = M[i, col], M[j, col]
        M[i, col] = c * a + s * b
        M[j, col] = c * b - s * a


@kernel
def _add(q, active):
    """Append the constraint that was projected last: Givens rotations turn its free part into entry q."""
    direction, JT, R = active.projected, active.JT, active.R
    for i in range(len(direction) - 1, q, -1):
        if direction[i] != 0.0:
            c, s, length = _rotate(direction[i - 1], direction[i])
            direction[i - 1], direction[i] = length, 0.0
            _turn_rows(JT, i - 1, i, c, s, 0)
    for i in range(q + 1):
        R[i, q] = direction[i]


@kernel
def _drop(position, q, active):
    """Remove the active constraint at `position`; Givens rotations restore the triangle of R."""
    numbers, u, JT, R = active.numbers, active.u, active.JT, active.R
    for k in range(position, q - 1):
        numbers[k], u[k] = numbers[k + 1], u[k + 1]
        for i in range(k + 2):
            R[i, k] = R[i, k + 1]
    for k in range(position, q - 1):
        c, s, length = _rotate(R[k, k], R[k + 1, k])
        R[k, k], R[k + 1, k] = length, 0.0
        for col in range(k + 1, q - 1):
            a, b = R[k, col], R[k + 1, col]
            R[k, col] = c * a + s * b
            R[k + 1, col] = c * b - s * a
        _turn_rows(JT, k, k + 1, c, s, 0)


@kernel
def _most_violated(x, constraints, busy, tol):
    """The inactive constraint with the largest violation per length of its normal, or -1."""
    lower, upper, row_lower, row_upper = constraints.lower, constraints.upper, constraints.row_lower, constraints.row_upper
    d, m = len(x), len(row_lower)
    worst, found = 0.0, -1
    for i in range(d):
        low, high = lower[i] - x[i], x[i] - upper[i]
        if low > worst and low > tol * (1.0 + abs(lower[i])) and not busy[i]:
            worst, found = low, i
        if high > worst and high > tol * (1.0 + abs(upper[i])) and not busy[d + i]:
            worst, found = high, d + i
    for j in range(m):
        total, norm = 0.0, constraints.norms[j]
        for e in range(constraints.indptr[j], constraints.indptr[j + 1]):
            total += constraints.data[e] * x[constraints.indices[e]]
        low, high = (row_lower[j] - total) / norm, (total - row_upper[j]) / norm
        if low > worst and low > tol * (1.0 + abs(row_lower[j]) / norm) and not busy[2 * d + j]:
            worst, found = low, 2 * d + j
        if high > worst and high > tol * (1.0 + abs(row_upper[j]) / norm) and not busy[2 * d + m + j]:
            worst, found = high, 2 * d + m + j
    return found


@kernel
def _next_equality(start, x, constraints, busy):
    """The first equality at or after `start` that is not active yet, from its violated side; -1 if there is none."""
    lower, upper, row_lower, row_upper = constraints.lower, constraints.upper, constraints.row_lower, constraints.row_upper
    d, m = len(x), len(row_lower)
    for k in range(start, d + m):
        below, above = (k, d + k) if k < d else (2 * d + k - d, 2 * d + m + k - d)
        equal = lower[k] == upper[k] if k < d else row_lower[k - d] == row_upper[k - d]
        if equal and not busy[below]:
            return k, (below if _slack(below, x, constraints) <= 0.0 else above)
    return d + m, -1


@kernel
def _directions(p, q, constraints, active):
    """Project the normal of constraint p and solve R r = its first q entries.

    Returns the squared lengths of the projection and of its part outside the span of the active normals.
    """
    projected, r, R = active.projected, active.r, active.R
    _project(p, active.JT, constraints, projected)
    free, total = 0.0, 0.0
    for i in range(len(projected)):
        total += projected[i] * projected[i]
    for i in range(q, len(projected)):
        free += projected[i] * projected[i]
    for i in range(q - 1, -1, -1):
        value = projected[i]
        for col in range(i + 1, q):
            value -= R[i, col] * r[col]
        r[i] = value / R[i, i]
    return total, free


@kernel
def _longest_dual_step(n_fixed, q, active):
    """The step at which the first multiplier of an inequality reaches zero, and its position; inf and -1 if none does."""
    u, r = active.u, active.r
    partial, leaving = np.inf, -1
    for k in range(n_fixed, q):
        if r[k] > 0.0 and u[k] / r[k] < partial:
            partial, leaving = u[k] / r[k], k
    return partial, leaving


@kernel
def _move(step, q, active, x):
    """x along the free part of the projected normal."""
    projected, JT = active.projected, active.JT
    for i in range(q, len(x)):
        t = step * projected[i]
        if t != 0.0:
            for col in range(len(x)):
                x[col] += t * JT[i, col]


@kernel
def _enter(p, fixed, n_fixed, q, constraints, tol, active, x):
    """Make constraint p hold, dropping others as the dual demands. Returns status and the number active.

    The first `n_fixed` active constraints are equalities and stay; `fixed` says that p is one.
    """
    d, m = len(x), len(constraints.row_lower)
    entering = 0.0
    for _ in range(2 * (d + m) + 10):
        total, free = _directions(p, q, constraints, active)
        partial, leaving = _longest_dual_step(n_fixed, q, active)
        slack = _slack(p, x, constraints)
        norm = 1.0 if p < 2 * d else constraints.norms[(p - 2 * d) % m]
        full = np.inf
        if free > DEPENDENT * total:
            full = max(0.0, -slack) / free
        elif slack >= -1e3 * tol * (norm + abs(_bound(p, constraints))):
            active.busy[p] = True  # implied by the active ones up to rounding: nothing to add
            return OPTIMAL, q
        step = min(partial, full)
        if step == np.inf:
            return INFEASIBLE, q
        if full < np.inf:
            _move(step, q, active, x)
        for k in range(q):
            active.u[k] -= step * active.r[k]
        entering += step
        if step == full:
            _add(q, active)
            active.numbers[q], active.u[q], active.busy[p] = p, entering, True
            if fixed:
                active.busy[_twin(p, d, m)] = True
            return OPTIMAL, q + 1
        active.busy[active.numbers[leaving]] = False
        _drop(leaving, q, active)
        q -= 1
    return ITERATION_LIMIT, q


@kernel
def _conclude(q, constraints, active, x, bound_multipliers, row_multipliers, sides):
    """Put x on its active bounds and write multipliers and sides."""
    numbers, u = active.numbers, active.u
    d, m = len(x), len(constraints.row_lower)
    bound_multipliers[:] = 0.0
    row_multipliers[:] = 0.0
    sides[:] = 0
    for k in range(q):
        c = numbers[k]
        below = c < d or 2 * d <= c < 2 * d + m
        sides[c % d if c < 2 * d else d + (c - 2 * d) % m] = -1 if below else 1
        if c < d:
            bound_multipliers[c] += u[k]
            x[c] = constraints.lower[c]
        elif c < 2 * d:
            bound_multipliers[c - d] -= u[k]
            x[c - d] = constraints.upper[c - d]
        elif c < 2 * d + m:
            row_multipliers[c - 2 * d] += u[k]
        else:
            row_multipliers[c - 2 * d - m] -= u[k]


@kernel
def solve(constraints, tol, JT, x, bound_multipliers, row_multipliers, sides):
    """Run the method from the unconstrained minimum.

    Parameters
    ----------
    constraints : Constraints
    tol : float
        Violations up to so much, relative to the numbers compared, count as rounding.
    JT : array (d, d)
        The inverse of the Cholesky factor L of C; destroyed.
    x : array (d,)
        In: the unconstrained minimum. Out: the solution.
    bound_multipliers, row_multipliers : arrays (d,), (m,)
        Out: ``C x + g = A' row_multipliers + bound_multipliers``; positive at a lower side, negative at an upper one.
    sides : int8 array (d + m,)
        Out: -1 where the lower side of a variable or row is active, 1 where the upper one is, else 0.

    Returns
    -------
    status, iterations
    """
    d, m = len(x), len(constraints.row_lower)
    busy = np.zeros(2 * (d + m), np.bool_)
    active = ActiveSet(np.empty(d + 1, np.int64), np.zeros(d + 1), busy, JT, np.zeros((d, d)), np.empty(d), np.empty(d))
    q, n_fixed, position, status, iterations = 0, 0, 0, OPTIMAL, 0
    while True:
        position, p = _next_equality(position, x, constraints, busy)
        if p < 0:
            break
        status, q = _enter(p, True, q, q, constraints, tol, active, x)
        if status != OPTIMAL:
            return status, iterations
        busy[p], busy[_twin(p, d, m)] = True, True
        iterations, position, n_fixed = iterations + 1, position + 1, q
    limit = 20 * (d + m) + 100
    while status == OPTIMAL:
        p = _most_violated(x, constraints, busy, tol)
        if p < 0:
            break
        if iterations >= limit:
            status = ITERATION_LIMIT
            break
        status, q = _enter(p, False, n_fixed, q, constraints, tol, active, x)
        iterations += 1
    _conclude(q, constraints, active, x, bound_multipliers, row_multipliers, sides)
    return status, iterations
