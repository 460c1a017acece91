"""Proximal Newton steps on some coordinates of a softmax likelihood with l1 and l2 penalties, in one call.

Scores are held label by label (`label_scores.Scores`). They are linear in the weights, so a line search needs no pass over
the data.

Sums are taken in loops that store nothing: where a loop does both, the compiler lets the addresses of the arrays decide at
run time whether it is vectorised, and the last digits of a sum would depend on them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray
from ...numerics.jit import sum_kernel
from .columns import add, dot, gram_dense, gram_sparse, rows_of
from .coordinate import QuadraticModel, by_columns, by_gram, violation
from .label_scores import ROUNDING, loss

#: Share of the predicted decrease that a step must bring.
DECREASE = 1e-3
#: Sweeps that a Newton step takes by columns, about: what holding the Gram matrix is weighed against.
EXPECTED_SWEEPS = 30.0
#: Most coordinates, and most entries of dense columns, for which it is held.
GRAM_LIMIT = 1500
DENSE_LIMIT = 20_000_000
#: The longest step, in Newton steps, and the share of the first slope above which a full step falls short.
LONGEST = 8.0
SHORT = 0.1
#: Share of the violation to which the model is minimised: sweeps are cheap with the Gram matrix.
EXACT_GRAM = 0.01
EXACT_COLUMNS = 0.3
#: A Hessian is kept while a step with it shrinks the violation to this share.
KEEP = 0.2


class Step(NamedTuple):
    """A step of a working set of m coordinates.

    Attributes
    ----------
    x : array (m,)
        Where a full step ends.
    d : array (m,)
        The step, x - theta.
    V : array (labels, examples)
        Its image in the scores.
    slope : float
        The change of the objective that the first-order model predicts.
    """

    x: FloatArray
    d: FloatArray
    V: FloatArray
    slope: float


@sum_kernel
def penalty(working_set, x):
    """sum_a l1_a |x_a| + l2_a x_a^2 / 2"""
    l1, l2 = working_set.l1, working_set.l2
    total = 0.0
    for a in range(len(x)):
        total += l1[a] * abs(x[a]) + 0.5 * l2[a] * x[a] * x[a]
    return total


@sum_kernel
def line_search(working_set, targets, step, value, theta, scores, trial):
    """Shorten a step until the objective falls as predicted; theta and the scores move there. `trial` is scratch, as U.

    Returns the length of the step, 0 if there is none, and the objective.
    """
    U, P, R = scores
    x, _, V, slope = step
    K, n = U.shape
    at = np.empty_like(theta)
    t = 1.0
    for _ in range(40):
        for k in range(K):
            for i in range(n):
                trial[k, i] = U[k, i] + t * V[k, i]
        for a in range(len(theta)):
            at[a] = x[a] if t == 1.0 else theta[a] + t * (x[a] - theta[a])
        following = loss(trial, targets, P, R) + penalty(working_set, at)
        noise = ROUNDING * abs(value)
        if following <= value + DECREASE * t * slope or (-slope <= 1e3 * noise and following <= value + noise):
            theta[:] = at
            U[:] = trial
            return t, following
        t *= 0.5 if t > 0.1 else 0.1
    return 0.0, loss(U, targets, P, R) + penalty(working_set, theta)


@sum_kernel
def room(theta, x):
    """The longest step from theta through x before a coordinate reaches or leaves zero."""
    longest = LONGEST
    for a in range(len(theta)):
        if x[a] == 0.0 and theta[a] != 0.0:
            return 1.0
        if theta[a] * (x[a] - theta[a]) < 0.0:
            longest = min(longest, theta[a] / (theta[a] - x[a]))
    return longest


@sum_kernel
def extrapolate(working_set, targets, step, longest, value, theta, scores, trial):
    """Go on after a full step, as far as `longest` times its length, while that pays. Returns the objective.

    Far from the optimum the steps of Newton's method fall short on likelihoods, and further steps need no data.
    """
    U, P, R = scores
    _, d, V, slope = step
    l1, l2 = working_set.l1, working_set.l2
    K, n = U.shape
    at = theta.copy()
    done = 1.0
    for _ in range(3):
        end = 0.0
        for k in range(K):
            end += (R[k] * V[k]).sum()
        for a in range(len(d)):
            end += d[a] * (l1[a] * np.sign(theta[a]) + l2[a] * theta[a])
        if end >= SHORT * slope or done >= longest:
            break
        t = min(longest, done * max(1.0 / (1.0 - end / slope), 1.5) if end > slope else longest)
        for k in range(K):
            for i in range(n):
                trial[k, i] = U[k, i] + (t - done) * V[k, i]
        for a in range(len(d)):
            at[a] = theta[a] + (t - done) * d[a]
        following = loss(trial, targets, P, R) + penalty(working_set, at)
        if not following < value:
            loss(U, targets, P, R)
            break
        value = following
        theta[:] = at
        U[:] = trial
        done = t
    return value


@sum_kernel
def image(working_set, d, V):
    """V = A d"""
    columns, label, column = working_set.columns, working_set.label, working_set.column
    V[:] = 0.0
    for a in range(len(d)):
        if d[a] != 0.0:
            add(columns, column[a], d[a], V[label[a]])


@sum_kernel
def largest_violation(working_set, R, theta, g):
    """Write the gradient of the smooth part; return the largest violation of the optimality conditions."""
    columns, label, column, _, l1, l2 = working_set
    largest = 0.0
    for a in range(len(theta)):
        g[a] = dot(columns, column[a], R[label[a]]) + l2[a] * theta[a]
        largest = max(largest, violation(theta[a], g[a], l1[a]))
    return largest


@sum_kernel
def curvature_weights(w, P, majorize):
    """C and P such that S V = C_k (V_k - sum_l P_l V_l): the Hessian, or a bound above it that couples no labels."""
    K, n = P.shape
    C = np.empty((K, n))
    Q = P if not majorize and K > 1 else np.zeros((K, n))
    for k in range(K):
        for i in range(n):
            if majorize:
                C[k, i] = w[i] * (0.25 if K == 1 else 0.5)
            else:
                C[k, i] = w[i] * P[k, i] * ((1.0 - P[k, i]) if K == 1 else 1.0)
    return C, Q


@sum_kernel
def holds_gram(entries, pairs, m):
    """Whether the Gram matrix costs less than the sweeps it saves: `pairs` operations against `entries` in a sweep."""
    return m <= GRAM_LIMIT and pairs + EXPECTED_SWEEPS * m * m < EXPECTED_SWEEPS * 5.0 * entries


@sum_kernel
def gram_plan(columns, column, n):
    """Whether to hold the Gram matrix of the coordinates, and for sparse data their entries by example, as `rows_of`."""
    m = len(column)
    if len(columns) == 1:
        rows = (np.empty(0, np.uint64), np.empty(0, np.uint32), np.empty(0))
        entries = float(m) * n
        gram = entries <= DENSE_LIMIT and holds_gram(entries, 0.5 * entries * m / 4.0, m)
    else:
        rows = rows_of(columns, column, n)
        entries = float(len(rows[2]))
        pairs = 0.0
        for i in range(n):
            pairs += 0.5 * float(rows[0][i + 1] - rows[0][i]) ** 2
        gram = holds_gram(entries, pairs, m)
    return rows, gram


@sum_kernel
def hessian(columns, rows, working_set, w, P, H):
    """H = A' S A + diag(l2) over the working set, `columns` being its data, from what `gram_plan` gave."""
    if len(columns) == 1:
        gram_dense(columns[0], working_set, w, P, H)
    else:
        gram_sparse(rows, working_set.label, w, P, H)
    for a in range(len(H)):
        H[a, a] += working_set.l2[a]
        for b in range(a):
            H[b, a] = H[a, b]


@sum_kernel
def move(working_set, targets, step, value, theta, scores, trial):
    """A line search, and further where a full step falls short. Returns the length of the step, and the objective."""
    if not step.slope < 0.0:
        return 0.0, value
    longest = room(theta, step.x)
    length, value = line_search(working_set, targets, step, value, theta, scores, trial)
    if length == 1.0 and longest > 1.0:
        value = extrapolate(working_set, targets, step, longest, value, theta, scores, trial)
    return length, value


@sum_kernel
def descend(working_set, targets, tolerance, limit, loss_value, theta, scores):
    """Proximal Newton steps on a working set until no violation exceeds `tolerance`, at most `limit` of them.

    theta (m) and the scores move in place. Takes and returns the loss.
    """
    U, P, R = scores
    l1, m = working_set.l1, len(theta)
    g, x, z = np.empty(m), np.empty(m), np.empty(m)
    V, trial = np.empty_like(U), np.empty_like(U)
    rows, gram = gram_plan(working_set.columns, working_set.column, U.shape[1])
    H = np.empty((m, m)) if gram else np.empty((0, 0))
    value = loss_value + penalty(working_set, theta)
    worst = largest_violation(working_set, R, theta, g)
    kept, majorize = False, False
    for _ in range(limit):
        if worst <= tolerance:
            break
        x[:] = theta
        target = max(0.3 * tolerance, (EXACT_GRAM if gram else EXACT_COLUMNS) * worst)
        if gram and not majorize:
            if not kept:
                hessian(working_set.columns, rows, working_set, targets.w, P, H)
            z[:] = g
            by_gram(H, z, l1, target, 200, x)
        else:
            C, Q = curvature_weights(targets.w, P, majorize)
            by_columns(working_set, QuadraticModel(theta, g, C, Q), target, 100, x)
        slope = 0.0
        for a in range(m):
            z[a] = x[a] - theta[a]
            slope += g[a] * z[a] + l1[a] * (abs(x[a]) - abs(theta[a]))
        image(working_set, z, V)
        length, value = move(working_set, targets, Step(x, z, V, slope), value, theta, scores, trial)
        if length == 0.0:
            if not gram or not kept:
                if majorize:
                    break
                majorize = True
            kept = False
            continue
        majorize = False
        before = worst
        worst = largest_violation(working_set, R, theta, g)
        kept = length == 1.0 and worst <= KEEP * before
    return value - penalty(working_set, theta)
