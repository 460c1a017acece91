"""The dual active-set method of Goldfarb and Idnani (1983) for strictly convex quadratic programs.

``min 1/2 x'Cx + g'x`` subject to ``lower <= x <= upper`` and ``row_lower <= A x <= row_upper``, A in CSR form. Bounds are
never written as rows. Symbols are the paper's: N holds the normals of the active constraints, ``C = L L'``,
``J = L^-T Q`` with ``Q R = L^-1 N``; J is kept transposed, so that rotations run along rows of memory.

Constraint ``k`` is: ``x_i >= lower_i`` for k = i; ``x_i <= upper_i`` for k = d + i; row j from below for k = 2d + j; row j
from above for k = 2d + m + j. In every case ``normal' x >= bound`` with the normal's sign turned accordingly.
"""

from __future__ import annotations

import numpy as np

from .jit import kernel

OPTIMAL, INFEASIBLE, ITERATION_LIMIT = 0, 1, 2
#: Squared share of a normal outside the span of the active ones below which it counts as dependent.
DEPENDENT = 1e-24


@kernel
def _slack(k, x, lower, upper, indptr, indices, data, row_lower, row_upper):
    """normal' x - bound of constraint k."""
    d, m = len(x), len(row_lower)
    if k < d:
        return x[k] - lower[k]
    if k < 2 * d:
        return upper[k - d] - x[k - d]
    j = (k - 2 * d) % m
    total = 0.0
    for e in range(indptr[j], indptr[j + 1]):
        total += data[e] * x[indices[e]]
    return total - row_lower[j] if k < 2 * d + m else row_upper[j] - total


@kernel
def _project(k, JT, m, indptr, indices, data, out):
    """out = J' normal of constraint k."""
    d = len(JT)
    out[:] = 0.0
    if k < 2 * d:
        column, sign = (k, 1.0) if k < d else (k - d, -1.0)
        for i in range(d):
            out[i] = sign * JT[i, column]
        return
    j = (k - 2 * d) % m
    sign = 1.0 if k < 2 * d + m else -1.0
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
def _add(q, direction, JT, R):
    """Append a constraint whose J' normal is `direction`: rotate its free part into entry q."""
    for i in range(len(direction) - 1, q, -1):
        if direction[i] != 0.0:
            c, s, length = _rotate(direction[i - 1], direction[i])
            direction[i - 1], direction[i] = length, 0.0
            _turn_rows(JT, i - 1, i, c, s, 0)
    for i in range(q + 1):
        R[i, q] = direction[i]


@kernel
def _drop(position, q, active, u, JT, R):
    """Remove the active constraint at `position` and restore the triangle of R."""
    for k in range(position, q - 1):
        active[k], u[k] = active[k + 1], u[k + 1]
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
def _most_violated(x, lower, upper, indptr, indices, data, row_lower, row_upper, norms, busy, tol):
    """The inactive constraint with the largest violation per length of its normal, or -1."""
    d, m = len(x), len(row_lower)
    worst, found = 0.0, -1
    for i in range(d):
        low, high = lower[i] - x[i], x[i] - upper[i]
        if low > worst and low > tol * (1.0 + abs(lower[i])) and not busy[i]:
            worst, found = low, i
        if high > worst and high > tol * (1.0 + abs(upper[i])) and not busy[d + i]:
            worst, found = high, d + i
    for j in range(m):
        total = 0.0
        for e in range(indptr[j], indptr[j + 1]):
            total += data[e] * x[indices[e]]
        low, high = (row_lower[j] - total) / norms[j], (total - row_upper[j]) / norms[j]
        if low > worst and low > tol * (1.0 + abs(row_lower[j]) / norms[j]) and not busy[2 * d + j]:
            worst, found = low, 2 * d + j
        if high > worst and high > tol * (1.0 + abs(row_upper[j]) / norms[j]) and not busy[2 * d + m + j]:
            worst, found = high, 2 * d + m + j
    return found


@kernel
def _next_equality(start, x, lower, upper, indptr, indices, data, row_lower, row_upper, busy):
    """The first equality at or after `start` that is not active yet, from its violated side; -1 if there is none."""
    d, m = len(x), len(row_lower)
    for k in range(start, d + m):
        below, above = (k, d + k) if k < d else (2 * d + k - d, 2 * d + m + k - d)
        equal = lower[k] == upper[k] if k < d else row_lower[k - d] == row_upper[k - d]
        if equal and not busy[below]:
            slack = _slack(below, x, lower, upper, indptr, indices, data, row_lower, row_upper)
            return k, (below if slack <= 0.0 else above)
    return d + m, -1


@kernel
def _enter(p, fixed, n_fixed, q, x, lower, upper, rows, norms, active, u, busy, JT, R, work, r, tol):
    """Make constraint p hold, dropping others as the dual demands. Returns status and the number active."""
    indptr, indices, data, row_lower, row_upper = rows
    d, m = len(x), len(row_lower)
    entering = 0.0
    for _ in range(2 * (d + m) + 10):
        _project(p, JT, m, indptr, indices, data, work)
        free, total = 0.0, 0.0
        for i in range(d):
            total += work[i] * work[i]
        for i in range(q, d):
            free += work[i] * work[i]
        for i in range(q - 1, -1, -1):
            value = work[i]
            for col in range(i + 1, q):
                value -= R[i, col] * r[col]
            r[i] = value / R[i, i]
        partial, leaving = np.inf, -1
        for k in range(n_fixed, q):
            if r[k] > 0.0 and u[k] / r[k] < partial:
                partial, leaving = u[k] / r[k], k
        slack = _slack(p, x, lower, upper, indptr, indices, data, row_lower, row_upper)
        norm = 1.0 if p < 2 * d else norms[(p - 2 * d) % m]
        full = np.inf
        if free > DEPENDENT * total:
            full = max(0.0, -slack) / free
        elif slack >= -1e3 * tol * (norm + abs(_bound(p, lower, upper, row_lower, row_upper))):
            busy[p] = True  # implied by the active ones up to rounding: nothing to add
            return OPTIMAL, q
        step = min(partial, full)
        if step == np.inf:
            return INFEASIBLE, q
        if full < np.inf:
            for i in range(q, d):
                t = step * work[i]
                if t != 0.0:
                    for col in range(d):
                        x[col] += t * JT[i, col]
        for k in range(q):
            u[k] -= step * r[k]
        entering += step
        if step == full:
            _add(q, work, JT, R)
            active[q], u[q], busy[p] = p, entering, True
            if fixed:
                busy[_twin(p, d, m)] = True
            return OPTIMAL, q + 1
        busy[active[leaving]] = False
        _drop(leaving, q, active, u, JT, R)
        q -= 1
    return ITERATION_LIMIT, q


@kernel
def _bound(k, lower, upper, row_lower, row_upper):
    d, m = len(lower), len(row_lower)
    if k < 2 * d:
        return lower[k] if k < d else upper[k - d]
    return row_lower[k - 2 * d] if k < 2 * d + m else row_upper[k - 2 * d - m]


@kernel
def _twin(k, d, m):
    """The same constraint from the other side."""
    if k < 2 * d:
        return k + d if k < d else k - d
    return k + m if k < 2 * d + m else k - m


@kernel
def solve(
    JT, x, lower, upper, indptr, indices, data, row_lower, row_upper, norms, tol, bound_multipliers, row_multipliers, sides
):
    """Run the method from the unconstrained minimum.

    Parameters
    ----------
    JT : array (d, d)
        The inverse of the Cholesky factor L of C; destroyed.
    x : array (d,)
        In: the unconstrained minimum. Out: the solution.
    norms : array (m,)
        Euclidean lengths of the rows.
    bound_multipliers, row_multipliers : arrays (d,), (m,)
        Out: ``C x + g = A' row_multipliers + bound_multipliers``; positive at a lower side, negative at an upper one.
    sides : int8 array (d + m,)
        Out: -1 where the lower side of a variable or row is active, 1 where the upper one is, else 0.

    Returns
    -------
    status, iterations
    """
    d, m = len(x), len(row_lower)
    rows = (indptr, indices, data, row_lower, row_upper)
    active, u = np.empty(d + 1, np.int64), np.zeros(d + 1)
    busy = np.zeros(2 * (d + m), np.bool_)
    R, work, r = np.zeros((d, d)), np.empty(d), np.empty(d)
    q, n_fixed, position, status, iterations = 0, 0, 0, OPTIMAL, 0
    while True:
        position, p = _next_equality(position, x, lower, upper, indptr, indices, data, row_lower, row_upper, busy)
        if p < 0:
            break
        status, q = _enter(p, True, q, q, x, lower, upper, rows, norms, active, u, busy, JT, R, work, r, tol)
        if status != OPTIMAL:
            return status, iterations
        busy[p], busy[_twin(p, d, m)] = True, True
        iterations, position, n_fixed = iterations + 1, position + 1, q
    limit = 20 * (d + m) + 100
    while status == OPTIMAL:
        p = _most_violated(x, lower, upper, indptr, indices, data, row_lower, row_upper, norms, busy, tol)
        if p < 0:
            break
        if iterations >= limit:
            status = ITERATION_LIMIT
            break
        status, q = _enter(p, False, n_fixed, q, x, lower, upper, rows, norms, active, u, busy, JT, R, work, r, tol)
        iterations += 1
    bound_multipliers[:] = 0.0
    row_multipliers[:] = 0.0
    sides[:] = 0
    for k in range(q):
        c = active[k]
        below = c < d or 2 * d <= c < 2 * d + m
        sides[c % d if c < 2 * d else d + (c - 2 * d) % m] = -1 if below else 1
        if c < d:
            bound_multipliers[c] += u[k]
            x[c] = lower[c]
        elif c < 2 * d:
            bound_multipliers[c - d] -= u[k]
            x[c - d] = upper[c - d]
        elif c < 2 * d + m:
            row_multipliers[c - 2 * d] += u[k]
        else:
            row_multipliers[c - 2 * d - m] -= u[k]
    return status, iterations
