"""Labellings of chains: their scores, the best (Viterbi), the n best, random ones (forward filtering, backward sampling).

Conventions of `chain_log`.

Scores are added from left to right everywhere, so that the score of a labelling has the same bits wherever it comes from.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.results import FloatArray
from ...numerics.jit import kernel
from ...numerics.math import exp
from .forward_backward_log import log_forward, longest


@kernel
def score(E, A, offsets, y, lo, hi, out):
    """Log weight of the labellings y of sequences lo:hi."""
    for i in range(lo, hi):
        total = E[offsets[i], y[offsets[i]]]
        for t in range(offsets[i] + 1, offsets[i + 1]):
            total = (total + A[0 if A.shape[0] == 1 else t, y[t - 1], y[t]]) + E[t, y[t]]
        out[i] = total


@kernel
def _viterbi_scores(E, A, lo, hi, D):
    """D[t, v] = the score of the best labelling of the positions up to t that ends in v: Viterbi's forward recursion."""
    n = E.shape[1]
    for t in range(lo, hi):
        row = D[t - lo]
        if t == lo:
            row[:] = E[t]
            continue
        row[:] = -np.inf
        above, M = D[t - lo - 1], A[0 if A.shape[0] == 1 else t]
        for a in range(0, n, 4):  # four labels at a time halve the memory traffic; the last may come twice
            b, c, d = min(a + 1, n - 1), min(a + 2, n - 1), min(a + 3, n - 1)
            da, db, dc, dd = above[a], above[b], above[c], above[d]
            for v in range(n):
                za, zb, zc, zd = da + M[a, v], db + M[b, v], dc + M[c, v], dd + M[d, v]
                za = za if za > zb else zb
                zc = zc if zc > zd else zd
                za = za if za > zc else zc
                row[v] = za if za > row[v] else row[v]
        for v in range(n):
            row[v] += E[t, v]


@kernel
def _first_best(row):
    best = 0
    for u in range(1, len(row)):
        if row[u] > row[best]:
            best = u
    return best


@kernel
def _best_before(D, A, lo, t, v):
    """The best label at t - 1 given v at t, the smallest of equals: a back-pointer, cheaper to find than to store."""
    M = A[0 if A.shape[0] == 1 else t]
    row = D[t - lo - 1]
    best = 0
    top = row[0] + M[0, v]
    for u in range(1, len(row)):
        z = row[u] + M[u, v]
        if z > top:
            top = z
            best = u
    return best


@kernel
def viterbi(E, A, offsets, lo, hi, y, value):
    """The best labellings of sequences lo:hi and their scores; -inf, and no labelling, for an impossible one."""
    D = np.empty((longest(offsets, lo, hi), E.shape[1]))
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        _viterbi_scores(E, A, a, b, D)
        v = _first_best(D[b - a - 1])
        value[i] = D[b - a - 1, v]
        if value[i] == -np.inf:
            continue
        y[b - 1] = v
        for t in range(b - 1, a, -1):
            v = _best_before(D, A, a, t, v)
            y[t - 1] = v


class _Ranked(NamedTuple):
    """The labellings of one sequence that were found so far, by the label v that they end in at position t.

    Attributes
    ----------
    D : array of shape (length, n)
        Scores of the best ones.
    S, B : arrays of shape (length, n, k)
        ``S[t, v, j]`` is the score of the j-th best, which goes on from the one of rank r that ends in u at t - 1:
        ``B[t, v, j] = u k + r``.
    known : array of shape (length, n)
        How many are in S and B.
    path, used : arrays of shape (length,) and (n,)
        Scratch.
    """

    D: FloatArray
    S: FloatArray
    B: Any
    known: Any
    path: Any
    used: Any


@kernel
def _next_labelling(E, A, lo, t, v, ranked):
    """Find one more labelling that ends in v at t: the best after the `known[t, v]` ones found before.

    Each comes from the best of what the labels u at t - 1 have still to offer. Only the u taken last needs a labelling more,
    and so on to the left: a way down and back up instead of a recursion.
    """
    D, S, B, known, path, used = ranked
    n, k = D.shape[1], S.shape[2]
    bottom = t
    path[t - lo] = v
    while bottom > lo:
        v, r = path[bottom - lo], bottom - lo
        if known[r, v] == 0:
            B[r, v, 0] = _best_before(D, A, lo, bottom, v) * k
            S[r, v, 0] = D[r, v]
            known[r, v] = 1
        last = B[r, v, known[r, v] - 1]
        u, rank = last // k, last % k
        if known[r - 1, u] > rank + 1:
            break
        bottom -= 1
        path[bottom - lo] = u
    for s in range(bottom, t + 1):
        v, r = path[s - lo], s - lo
        top = -np.inf
        code = -1
        if s == lo:
            known[r, v] = 1
            S[r, v, 0] = D[r, v]
        else:
            M = A[0 if A.shape[0] == 1 else s]
            used[:] = 0
            for j in range(known[r, v]):
                used[B[r, v, j] // k] += 1
            for u in range(n):
                z = (D[r - 1, u] if used[u] == 0 else S[r - 1, u, used[u]]) + M[u, v]
                if z > top:
                    top = z
                    code = u * k + used[u]
            top += E[s, v]
        S[r, v, known[r, v]] = top
        B[r, v, known[r, v]] = code
        known[r, v] += 1


@kernel
def n_best(E, A, offsets, lo, hi, Y, value):
    """The len(Y) best labellings of sequences lo:hi, best first; -1 and -inf where there are no more.

    Labellings are ranked on demand (the recursive enumeration of Jimenez and Marzal), at most k labels per position: the
    cost beyond that of Viterbi is k n per position.
    """
    n, k = E.shape[1], Y.shape[0]
    length = longest(offsets, lo, hi)
    D, S, B = np.empty((length, n)), np.empty((length, n, k)), np.empty((length, n, k), np.int64)
    known, path = np.empty((length, n), np.int64), np.empty(length, np.int64)
    used, used_last = np.empty(n, np.int64), np.empty(n, np.int64)
    ranked = _Ranked(D, S, B, known, path, used)
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        _viterbi_scores(E, A, a, b, D)
        known[: b - a] = 0
        used_last[:] = 0
        end = b - a - 1
        for j in range(k):
            top = -np.inf
            v = -1
            for u in range(n):
                z = D[end, u] if used_last[u] == 0 else S[end, u, used_last[u]]
                if z > top:
                    top = z
                    v = u
            value[j, i] = top
            if v < 0:
                Y[j, a:b] = -1
                continue
            rank = used_last[v]
            used_last[v] += 1
            if j + 1 < k and known[end, v] <= rank + 1:
                _next_labelling(E, A, a, b - 1, v, ranked)
            for t in range(b - 1, a, -1):
                Y[j, t] = v
                if rank == 0:
                    v = _best_before(D, A, a, t, v)
                else:
                    v, rank = B[t - a, v, rank] // k, B[t - a, v, rank] % k
            Y[j, a] = v


@kernel
def _cumulate(x, out):
    """Running sums of exp(x - max x)."""
    m = -np.inf
    for u in range(len(x)):
        m = max(m, x[u])
    for u in range(len(x)):
        out[u] = exp(x[u] - m)
    for u in range(1, len(x)):
        out[u] += out[u - 1]


@kernel
def _choose(cumulative, uniform):
    """The label at a level of the running sums; never one of weight zero."""
    total = cumulative[-1]
    level = uniform * total
    u = 0
    while cumulative[u] <= level and cumulative[u] < total:
        u += 1
    return u


@kernel
def sample(E, A, offsets, uniforms, lo, hi, log_z, Y):
    """Y[s, t]: random labellings of sequences lo:hi, by forward filtering and backward sampling with uniforms[s, t].

    log_z is filled too; there is no labelling of an impossible sequence.
    """
    n, size = E.shape[1], Y.shape[0]
    alpha, x = np.empty((longest(offsets, lo, hi), n)), np.empty(n)
    table, ready = np.empty((n, n)), np.empty(n, np.bool_)
    for i in range(lo, hi):
        a, b = offsets[i], offsets[i + 1]
        log_z[i] = log_forward(E, A, a, b, alpha)
        if log_z[i] == -np.inf:
            continue
        _cumulate(alpha[b - a - 1], table[0])
        for s in range(size):
            Y[s, b - 1] = _choose(table[0], uniforms[s, b - 1])
        for t in range(b - 2, a - 1, -1):
            M = A[0 if A.shape[0] == 1 else t + 1]
            ready[:] = False
            for s in range(size):
                v = Y[s, t + 1]
                if not ready[v]:
                    for u in range(n):
                        x[u] = alpha[t - a, u] + M[u, v]
                    _cumulate(x, table[v])
                    ready[v] = True
                Y[s, t] = _choose(table[v], uniforms[s, t])
