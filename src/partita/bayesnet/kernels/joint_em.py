"""One equivalence relation M = VV' of a relaxed EM objective: value and gradient.

Rows of data are distinct, with weights w. Row i of X has any length and v_i is its direction. Parameters are flat:
first Q, one vector for every configuration of the hidden variable's observed parents, then for each child term
vectors for every configuration and value, at `starts`. Work is cut into ranges of rows; sums of ranges are added in
order.

    own term     sum_b n_b log(sum_j w_j exp(v_j.Q_b) / s_j) - sum_i w_i v_i.Q_b(i),  s_j = v_j.sum_k w_k v_k
    child term   sum_i w_i (log sum_a exp(v_i.W_b(i)a) - v_i.W_b(i)y_i),  or  sum_i w_i (x_i - v_i.W_b(i))^2 / 2 sigma^2

Relations without negative entries have s_j >= w_j. Below half of that, log s goes on as the parabola that touches it
there, so that the objective is finite and convex everywhere, and nowhere above the true one.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from ...numerics.jit import inlined, kernel, sum_kernel
from ...numerics.math import exp, log

DOMAIN = 0.5


class Rows(NamedTuple):
    """Distinct rows of data and their vectors, of r entries.

    Attributes
    ----------
    w : array (rows,)
        Weights.
    V : array (rows, r)
        Directions v_i = x_i / |x_i|.
    norms : array (rows,)
        The lengths |x_i|.
    """

    w: FloatArray
    V: FloatArray
    norms: FloatArray


class OwnTerm(NamedTuple):
    """The hidden variable given its observed parents, which have B configurations; 0 if there is no such term.

    Attributes
    ----------
    given : int64 array (rows,)
        b(i), the configuration of each row.
    counts : array (B,)
        n_b, the weight of the rows of each configuration.
    mass : array (r,)
        sum_k w_k v_k.
    U : array (rows, B)
        Scores v_j.Q_b + log w_j - log s_j.
    slope : array (rows,)
        Slopes of log s_j in s_j.
    log_z : array (B,)
        The log of the sum of exp U_b.
    pull : array (r,)
        sum_j q_j v_j, where -q_j is the slope of the term in s_j.
    """

    given: IntArray
    counts: FloatArray
    mass: FloatArray
    U: FloatArray
    slope: FloatArray
    log_z: FloatArray
    pull: FloatArray


class OwnSums(NamedTuple):
    """Sums over a range of rows for every configuration of an own term, relative to its largest score.

    Attributes
    ----------
    top, total : arrays (B,)
        The largest score, and the sum of e = exp(score - top).
    pull : array (B, r)
        The sum of slope e v.
    """

    top: FloatArray
    total: FloatArray
    pull: FloatArray


class ChildTerms(NamedTuple):
    """Observed children of the hidden variable.

    Attributes
    ----------
    codes : int64 array (terms, rows)
        Values of discrete children.
    reals : array (terms, rows)
        Values of Gaussian children.
    given : int64 array (terms, rows)
        The configuration of the child's observed parents.
    n_values : int64 array (terms,)
        0 for a Gaussian child.
    starts : int64 array (terms,)
        Where the weights of each term begin in the flat vector.
    precisions : array (terms,)
        1 / sigma^2 of Gaussian children.
    """

    codes: IntArray
    reals: FloatArray
    given: IntArray
    n_values: IntArray
    starts: IntArray
    precisions: FloatArray


@sum_kernel
def _dot(a, b):
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@kernel
def _add(factor, a, out):
    for k in range(len(a)):
        out[k] += factor * a[k]


@inlined
def _score(V, i, theta, start):
    """v_i times the weights that begin at `start`."""
    total = 0.0
    for k in range(V.shape[1]):
        total += V[i, k] * theta[start + k]
    return total


@inlined
def _spread(residual, V, i, theta, start, g, gW):
    """The gradient of a score, to v_i and to the weights."""
    for k in range(V.shape[1]):
        g[k] += residual * theta[start + k]
    for k in range(V.shape[1]):
        gW[start + k] += residual * V[i, k]


@kernel
def directions(X, lo, hi, rows, mass):
    """Write v_i = x_i / |x_i| and |x_i| to the rows, and the weighted sum of v_i to `mass`."""
    w, V, norms = rows
    mass[:] = 0.0
    for i in range(lo, hi):
        norms[i] = np.sqrt(_dot(X[i], X[i]))
        for k in range(X.shape[1]):
            V[i, k] = X[i, k] / norms[i]
        _add(w[i], V[i], mass)


@kernel
def own_scores(rows, Q, lo, hi, own, sums):
    """Write scores and slopes of the own term, and sums over rows lo..hi."""
    V, w, mass, U, slope = rows.V, rows.w, own.mass, own.U, own.slope
    top, total, pull = sums
    top[:] = -np.inf
    total[:] = 0.0
    pull[:] = 0.0
    for j in range(lo, hi):
        s, edge = _dot(V[j], mass), DOMAIN * w[j]
        d = min(0.0, s / edge - 1.0)
        at = max(s, edge)
        slope[j] = (1.0 - d) / at
        base = log(w[j] / at) - d + 0.5 * d * d
        for b in range(len(Q)):
            U[j, b] = _dot(V[j], Q[b]) + base
            top[b] = max(top[b], U[j, b])
    for j in range(lo, hi):
        for b in range(len(Q)):
            e = exp(U[j, b] - top[b])
            total[b] += e
            _add(e * slope[j], V[j], pull[b])


@kernel
def own_totals(sums, own):
    """Put ranges together: `sums` has one more axis, the ranges. Writes `log_z` and `pull`; returns sum n_b log Z_b."""
    tops, totals, pulls = sums
    counts, log_z, pull = own.counts, own.log_z, own.pull
    value = 0.0
    pull[:] = 0.0
    for b in range(len(counts)):
        top = tops[:, b].max()
        z = 0.0
        for c in range(len(tops)):
            z += totals[c, b] * np.exp(tops[c, b] - top)
        log_z[b] = top + np.log(z)
        for c in range(len(tops)):
            _add(counts[b] * np.exp(tops[c, b] - log_z[b]), pulls[c, b], pull)
        value += counts[b] * log_z[b]
    return value


@kernel
def penalty(values, multipliers, roots, rho, out):
    """Of constraints values_ij >= 0: the sum of rho/2 root_i root_j max(0, z_ij - c_ij)^2, and minus its slopes in c."""
    total = 0.0
    for i in range(len(roots)):
        row = 0.0
        for j in range(len(roots)):
            active = max(0.0, multipliers[i, j] - values[i, j])
            out[i, j] = rho * roots[i] * roots[j] * active
            row += out[i, j] * active
        total += 0.5 * row
    return total


@sum_kernel
def terms(rows, theta, own, children, lo, hi, gX, gW):
    """Values of rows, all but the log Z of own terms; gradients in x_i, and of theta as a sum over the rows."""
    w, V, norms = rows
    own_given, counts, mass, U, slope, log_z, pull = own
    codes, reals, given, n_values, starts, precisions = children
    r = V.shape[1]
    gW[:] = 0.0
    g = np.empty(r)
    widest = 1
    for term in range(len(n_values)):
        widest = max(widest, n_values[term])
    scores = np.empty(widest)
    value = 0.0
    for i in range(lo, hi):
        g[:] = 0.0
        if len(counts):
            q = 0.0
            for b in range(len(counts)):
                p = counts[b] * exp(U[i, b] - log_z[b])
                q += p
                if own_given[i] == b:
                    p -= w[i]
                    value -= w[i] * _score(V, i, theta, b * r)
                _spread(p, V, i, theta, b * r, g, gW)
            for k in range(r):
                g[k] -= q * slope[i] * mass[k] + w[i] * pull[k]
        for term in range(len(n_values)):
            n = n_values[term]
            start = starts[term] + given[term, i] * max(1, n) * r
            if n == 0:
                residual = _score(V, i, theta, start) - reals[term, i]
                value += 0.5 * w[i] * precisions[term] * residual * residual
                _spread(w[i] * precisions[term] * residual, V, i, theta, start, g, gW)
                continue
            top = -np.inf
            for a in range(n):
                scores[a] = _score(V, i, theta, start + a * r)
                top = max(top, scores[a])
            y, z = codes[term, i], 0.0
            value += w[i] * (top - scores[y])
            for a in range(n):
                scores[a] = exp(scores[a] - top)
                z += scores[a]
            value += w[i] * log(z)
            scores[y] -= z
            for a in range(n):
                _spread(w[i] * scores[a] / z, V, i, theta, start + a * r, g, gW)
        along = 0.0
        for k in range(r):
            along += g[k] * V[i, k]
        for k in range(r):
            gX[i, k] = (g[k] - along * V[i, k]) / norms[i]
    return value
