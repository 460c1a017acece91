"""Streaming low-rank forms of a sum of outer products: ``sum r r'`` below ``V' diag(S) V + diag(D)``, one r at a time."""

from __future__ import annotations

import numpy as np

from .jit import kernel

#: The update that is exact but for the dropped pair; paper 002's; paper 000's, which is no bound.
EXACT, CORRECTED, ORIGINAL = 0, 1, 2
#: Residuals below this part of r are rounding.
NEGLIGIBLE = 1e-12


@kernel
def stream(method, R, V, S, D):
    """Absorb the rows of R into V (k x d, rows orthonormal or zero, the zero ones first), S (k) and D (d), in place."""
    k, d = V.shape
    first = 0
    while first < k and not np.any(V[first]):
        first += 1
    B = np.zeros((k + 1, d))
    for m in range(R.shape[0]):
        r = R[m]
        p = np.ascontiguousarray(V[first:]) @ r
        g = r - p @ V[first:]
        again = V[first:] @ g  # what rounding left along V would count twice, and spoil the next rows of V
        p += again
        g -= again @ V[first:]
        largest = np.max(np.abs(g))  # squares of 1e-200 are zero
        norm = largest * np.sqrt(np.sum((g / largest) ** 2)) if largest > 0.0 else 0.0
        if norm > NEGLIGIBLE * np.max(np.abs(r)):
            B[k] = g / norm
        else:
            norm = 0.0
        B[first:k] = V[first:]
        if method == EXACT:
            first = _exact(first, p, norm, B, V, S, D)
        else:
            first = _published(method, first, p, norm, B[k], V, S, D)


@kernel
def _exact(first, p, norm, B, V, S, D):
    """Eigendecompose diag(S, 0) + [p; |g|][p; |g|]', keep the k largest pairs, bound the smallest by a diagonal.

    Rows that are zero take no part: eigenvectors of eigenvalue zero would mix them with others. Returns where the rows
    that are not zero begin.
    """
    k = V.shape[0]
    old = k - first
    count = old + 1 if norm > 0.0 else old
    M = np.zeros((count, count))
    for i in range(old):
        M[i, i] = S[first + i]
        for j in range(old):
            M[i, j] += p[i] * p[j]
        if norm > 0.0:
            M[i, old] = M[old, i] = p[i] * norm
    if norm > 0.0:
        M[old, old] = norm * norm
    values, W = np.linalg.eigh(M)
    rotated = np.ascontiguousarray(W.T) @ B[first : first + count]
    if count > k:
        absorb(max(values[0], 0.0), rotated[0], D)
    kept = min(count, k)
    for i in range(kept):
        S[k - kept + i] = max(values[count - kept + i], 0.0)  # rounding leaves some a little below zero, which have no root
        V[k - kept + i] = rotated[count - kept + i]
    return k - kept


@kernel
def _published(method, first, p, norm, b, V, S, D):
    """Algorithm 4 of paper 000, which forgets the cross term p |g|; paper 002 adds |g| |p| I for it.

    Returns where the rows that are not zero begin.
    """
    k = V.shape[0]
    M = np.zeros((k - first, k - first))
    for i in range(k - first):
        M[i, i] = S[first + i]
        for j in range(k - first):
            M[i, j] += p[i] * p[j]
    if first < k:
        values, Q = np.linalg.eigh(M)
        V[first:] = np.ascontiguousarray(Q.T) @ V[first:]
        for i in range(k - first):
            S[first + i] = max(values[i], 0.0)
    if norm == 0.0:
        return first
    if method == CORRECTED:
        D += norm * np.sqrt(p @ p)
    if first > 0:
        first -= 1
        S[first], V[first] = norm * norm, b
    elif S[0] <= norm * norm:
        absorb(S[0], V[0], D)
        S[0], V[0] = norm * norm, b
    else:
        absorb(norm * norm, b, D)
    return first


@kernel
def absorb(c, v, D):
    """Add the diagonal matrix c |v|_1 diag|v|, which is above c v v'."""
    total = 0.0
    for j in range(len(v)):
        total += abs(v[j])
    for j in range(len(v)):
        D[j] += c * total * abs(v[j])
