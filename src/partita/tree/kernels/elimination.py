"""Sums over trees by Gaussian elimination of the Laplacian without a subtraction, so that every answer keeps its digits.

A vertex k with weights w(k, j) of its heads j is eliminated by ``w(i, j) += w(i, k) p(k, j)`` with
``p(k, j) = w(k, j) / d(k)``. The pivot d(k) is the sum over the heads that are left, not the diagonal less something, as in
the algorithm of Grassmann, Taksar and Heyman (GTH) for Markov chains. The product of the pivots is the weight of all trees.

In a random tree, the head of d is h with probability proportional to ``w(d, h) x(h)``, where x(h) is the probability that a
walk along heads from h comes to the root before it comes to d. (The inverse Laplacian G has ``G[d, d] - G[h, d]`` for it,
which cancels.) That takes the elimination of all vertices but d, for each d. Halves of halves of the vertices share that
work: it is cubic for all d together.

With one edge at the root only, pivots leave out the root's weights, which are carried along like a reward: the limit of
weights of the root that go to zero together. Koo et al. (2007) have another determinant for the same sum, with subtractions.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...numerics.jit import kernel, sum_kernel
from .extended import add, divide, lifted, logarithm, multiply

#: A pivot that can be divided by.
LEAST_PIVOT = 1e-290
#: The least weight of all trees, as a logarithm and where rows sum to one, that doubles can tell: what is lost below the
#: least double, 1e-308, is less than any rounding then.
LEAST_LOG = -620.0
#: Halvings of any number of vertices.
DEPTH = 64


class Numbers(NamedTuple):
    """Mantissas, their derivatives along a direction, and exponents. The last two have no entries where nobody asks."""

    m: np.ndarray
    t: np.ndarray
    e: np.ndarray


class Work(NamedTuple):
    """What the elimination of one example takes.

    Attributes
    ----------
    given, now : Numbers
        Square matrices: the weights w as given, and w or p (of a vertex that is eliminated) as they are.
    saved : Numbers
        Blocks of `now`, one after the other.
    x, pivots : Numbers
        One for each vertex.
    order : int array of shape (3, vertices)
        The vertices eliminated, and from where to where the heads go that were left then.
    single, tangent, extended : bool
        One edge at the root only; with derivatives; with exponents.
    """

    given: Numbers
    now: Numbers
    saved: Numbers
    x: Numbers
    pivots: Numbers
    order: np.ndarray
    single: bool
    tangent: bool
    extended: bool


@kernel
def _matrices(n, tangent, extended):
    t, e = n if tangent else 0, n if extended else 0
    return Numbers(np.zeros((n, n)), np.zeros((t, t)), np.zeros((e, e)))


@kernel
def workspace(n, single, tangent, extended):
    """Room for n vertices with the root. Numbers with exponents have derivatives, too."""
    tangent = tangent or extended
    size = 2 * n * n + DEPTH
    saved = Numbers(np.empty(size), np.empty(size if tangent else 0), np.empty(size if extended else 0))
    x = Numbers(np.zeros(n), np.zeros(n), np.zeros(n))
    pivots = Numbers(np.zeros(n), np.zeros(n), np.zeros(n))
    given, now = _matrices(n, tangent, extended), _matrices(n, tangent, extended)
    return Work(given, now, saved, x, pivots, np.zeros((3, n), np.int64), single, tangent, extended)


@kernel
def begin(work):
    """The weights as they are, from those given."""
    work.now.m[:] = work.given.m
    work.now.t[:] = work.given.t
    work.now.e[:] = work.given.e


@sum_kernel
def _tangent(W, T, k, lo, hi, inverse, closed):
    """The derivative of what `_eliminate` has done to the row of k, and will do to others."""
    row, slope = W[k, lo:hi], T[k, lo:hi]
    change = 0.0 if closed else T[k, 0]
    for j in range(len(row)):
        change += slope[j]
    T[k, 0] = (T[k, 0] - W[k, 0] * change) * inverse
    for j in range(len(row)):
        slope[j] = (slope[j] - row[j] * change) * inverse
    for i in range(lo, hi):
        f, g, other = W[i, k], T[i, k], T[i, lo:hi]
        T[i, 0] += f * T[k, 0] + g * W[k, 0]
        for j in range(len(row)):
            other[j] += f * slope[j] + g * row[j]


@sum_kernel
def _eliminate(W, T, pivots, order, first, last, single):
    """In doubles: see `eliminate`."""
    for c in range(first, last):
        k, lo, hi = order[0, c], order[1, c], order[2, c]
        row = W[k, lo:hi]  # loops over parts of rows from their beginning are vectorised
        closed = single and hi > lo
        d = 0.0 if closed else W[k, 0]
        for j in range(len(row)):
            d += row[j]
        pivots[k] = d
        if not d > LEAST_PIVOT:
            return False
        inverse = 1.0 / d
        W[k, 0] *= inverse
        for j in range(len(row)):
            row[j] *= inverse
        if len(T):
            _tangent(W, T, k, lo, hi, inverse, closed)
        for i in range(lo, hi):
            f, other = W[i, k], W[i, lo:hi]
            if f == 0.0:
                continue
            W[i, 0] += f * W[k, 0]
            for j in range(len(row)):
                other[j] += f * row[j]
    return True


@kernel
def _eliminate_extended(now, pivots, k, lo, hi):
    """One vertex, with exponents. Without heads it has a pivot of zero, and gives nothing to the others."""
    W, T, X = now
    d, change, e = W[k, 0], T[k, 0], X[k, 0]
    for j in range(lo, hi):
        d, change, e = add(d, change, e, W[k, j], T[k, j], X[k, j])
    pivots.m[k], pivots.t[k], pivots.e[k] = d, change, e
    if d == 0.0:
        return False
    W[k, 0], T[k, 0], X[k, 0] = divide(W[k, 0], T[k, 0], X[k, 0], d, change, e)
    for j in range(lo, hi):
        W[k, j], T[k, j], X[k, j] = divide(W[k, j], T[k, j], X[k, j], d, change, e)
    for i in range(lo, hi):
        f, g, h = W[i, k], T[i, k], X[i, k]
        if f == 0.0:
            continue
        for j in range(lo - 1, hi):
            c = j if j >= lo else 0
            if c != i:
                m, t, x = multiply(f, g, h, W[k, c], T[k, c], X[k, c])
                W[i, c], T[i, c], X[i, c] = add(W[i, c], T[i, c], X[i, c], m, t, x)
    return True


@kernel
def eliminate(work, first, last):
    """The vertices that are first..last in the order; False if a pivot is zero, or too small for doubles to divide by.

    With exponents, the others are eliminated all the same.
    """
    order = work.order
    if not work.extended:
        return _eliminate(work.now.m, work.now.t, work.pivots.m, order, first, last, work.single)
    sound = True
    for c in range(first, last):
        sound &= _eliminate_extended(work.now, work.pivots, order[0, c], order[1, c], order[2, c])
    return sound


@sum_kernel
def _substitute(W, T, x, t, order, count):
    """In doubles: see `substitute`."""
    for c in range(count - 1, -1, -1):
        k, lo, hi = order[0, c], order[1, c], order[2, c]
        row, own, total = W[k, lo:hi], x[lo:hi], W[k, 0]
        for j in range(len(row)):
            total += row[j] * own[j]
        x[k] = total
        if len(T):
            slope, change, given = T[k, lo:hi], t[lo:hi], T[k, 0]
            for j in range(len(row)):
                given += slope[j] * own[j] + row[j] * change[j]
            t[k] = given


@kernel
def substitute(work, dead, count):
    """x of the first `count` vertices in the order, backwards; that of the root is one, that of the `dead` vertex zero."""
    (W, T, X), x, order = work.now, work.x, work.order
    x.m[0], x.t[0], x.e[0] = 1.0, 0.0, 0.0
    x.m[dead], x.t[dead], x.e[dead] = 0.0, 0.0, 0.0
    if not work.extended:
        _substitute(W, T, x.m, x.t, order, count)
        return
    for c in range(count - 1, -1, -1):
        k, lo, hi = order[0, c], order[1, c], order[2, c]
        m, t, e = W[k, 0], T[k, 0], X[k, 0]
        for j in range(lo, hi):
            a, b, f = multiply(W[k, j], T[k, j], X[k, j], x.m[j], x.t[j], x.e[j])
            m, t, e = add(m, t, e, a, b, f)
        x.m[k], x.t[k], x.e[k] = m, t, e


@kernel
def _log_product(work, depth, count, last):
    """log of the product of the pivots of `count` vertices and of the weight of the root for the `last` one, as a sum of two
    numbers.

    The first is NaN if doubles cannot tell, and -inf if there is no tree; with weights of the root lower by the exponent
    `depth`, also if all trees have several of them.
    """
    m, e = work.now.m[last, 0], work.now.e[last, 0] if work.extended else 0.0
    for c in range(count):
        k = work.order[0, c]
        m, _, e = multiply(m, 0.0, e, work.pivots.m[k], 0.0, work.pivots.e[k])
    if m == 0.0 or (depth > 0.0 and e < -1.5 * depth):
        return -np.inf if work.extended else np.nan, 0.0
    high, low = logarithm(m, e + depth)
    return high if work.extended or high > LEAST_LOG else np.nan, low


@kernel
def _ordered(order, lo, hi, upper, count):
    """The vertices of the upper or the lower half of lo..hi, from the outside, behind the first `count` in the order.

    Returns how many there are then.
    """
    half = (lo + hi + 1) // 2
    for step in range(hi - half if upper else half - lo):
        k = hi - 1 - step if upper else lo + step
        order[0, count], order[1, count], order[2, count] = k, lo if upper else k + 1, k if upper else hi
        count += 1
    return count


@kernel
def log_determinant(work, depth):
    """log of the weight of all trees, see `_log_product`."""
    n = len(work.given.m)
    if n == 1:
        return 0.0, 0.0
    begin(work)
    for k in range(n - 1, 1, -1):
        c = n - 1 - k
        work.order[0, c], work.order[1, c], work.order[2, c] = k, 1, k
    if not eliminate(work, 0, n - 2):
        return -np.inf if work.extended else np.nan, 0.0
    return _log_product(work, depth, n - 2, 1)


@kernel
def _copy(part, kept, lo, hi, back):
    """Rows lo..hi of a matrix in the columns 0 and lo..hi, to what is kept, or back."""
    width = hi - lo
    for i in range(len(part[lo:hi])):
        room, row = kept[i * (width + 1) : (i + 1) * (width + 1)], part[lo + i, lo:hi]
        if back:
            part[lo + i, 0] = room[width]
            for j in range(len(row)):
                row[j] = room[j]
        else:
            room[width] = part[lo + i, 0]
            for j in range(len(row)):
                room[j] = row[j]


@kernel
def _keep(work, lo, hi, at, back):
    """Copy what there is of vertices lo..hi to what is saved from `at` on, or back; returns where that ends."""
    end = at + (hi - lo) * (hi - lo + 1)
    _copy(work.now.m, work.saved.m[at:end], lo, hi, back)
    if work.tangent:
        _copy(work.now.t, work.saved.t[at:end], lo, hi, back)
    if work.extended:
        _copy(work.now.e, work.saved.e[at:end], lo, hi, back)
    return end


@kernel
def _heads(work, d, count, M, dM):
    """Probabilities of the heads of d, and their derivatives, when the others are eliminated; False if they are none."""
    x, given = work.x, work.given
    substitute(work, d, count)
    if work.extended:
        return heads_extended(given, x, d, M[d], dM[d])
    total, change = 0.0, 0.0
    for h in range(len(M)):
        M[d, h] = given.m[d, h] * x.m[h]
        total += M[d, h]
        if work.tangent:
            dM[d, h] = given.t[d, h] * x.m[h] + given.m[d, h] * x.t[h]
            change += dM[d, h]
    if not 0.0 < total < np.inf:
        return False
    for h in range(len(M)):
        M[d, h] /= total
        if work.tangent:
            dM[d, h] = (dM[d, h] - M[d, h] * change) / total
    return True


@kernel
def heads_extended(given, x, d, share, change):
    """Shares of ``w(d, h) x(h)`` in their sum, and their derivatives; False if all are zero."""
    W, T, X = given
    total, slope, power = 0.0, 0.0, 0.0
    for h in range(len(share)):
        m, t, e = multiply(W[d, h], T[d, h], X[d, h], x.m[h], x.t[h], x.e[h])
        total, slope, power = add(total, slope, power, m, t, e)
    if total == 0.0:
        return False
    for h in range(len(share)):
        m, t, e = multiply(W[d, h], T[d, h], X[d, h], x.m[h], x.t[h], x.e[h])
        m, t, e = divide(m, t, e, total, slope, power)
        share[h] = lifted(m, e)
        change[h] = lifted(t, e)
    return True


@kernel
def head_probabilities(work, depth, M, dM):
    """M[d, h]: the probability that h is the head of d, and in dM its derivative along the direction that `work` has.

    Returns what `log_determinant` returns; without a number, M holds nothing.
    """
    n = len(work.given.m)
    M[:] = 0.0
    dM[:] = 0.0
    if n == 1:
        return 0.0, 0.0
    begin(work)
    low, high, stage = np.zeros(DEPTH, np.int64), np.zeros(DEPTH, np.int64), np.zeros(DEPTH, np.int64)
    place, before = np.zeros(DEPTH, np.int64), np.zeros(DEPTH, np.int64)
    none = -np.inf if work.extended else np.nan
    low[0], high[0], level, count, log_z, rest = 1, n, 0, 0, 0.0, 0.0
    while level >= 0:
        a, b = low[level], high[level]
        if b - a == 1:
            if a == 1:
                log_z, rest = _log_product(work, depth, count, a)
                if not log_z > -np.inf:
                    return log_z, 0.0
            if not _heads(work, a, count, M, dM):
                return none, 0.0
        if b - a == 1 or stage[level] == 2:
            level -= 1
            continue
        half, upper = (a + b + 1) // 2, stage[level] == 0
        if upper:
            before[level] = count
        place[level + 1] = _keep(work, a, b, place[level], not upper)
        count = _ordered(work.order, a, b, upper, before[level])
        if not eliminate(work, before[level], count):
            return none, 0.0
        stage[level] += 1
        level += 1
        low[level], high[level], stage[level] = a if upper else half, half if upper else b, 0
    return log_z, rest
