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
    """Absorb the rows of R into V (k x d, rows orthonormal or zero), S (k) and D (d), in place."""
    k, d = V.shape
    B = np.zeros((k + 1, d))
    for m in range(R.shape[0]):
        r = R[m]
        p = V @ r
        g = r - p @ V
        again = V @ g  # what rounding left along V would count twice, and spoil the next rows of V
        p += again
        g -= again @ V
        largest = np.max(np.abs(g))  # squares of 1e-200 are zero
        norm = largest * np.sqrt(np.sum((g / largest) ** 2)) if largest > 0.0 else 0.0
        if norm > NEGLIGIBLE * np.max(np.abs(r)):
            B[k] = g / norm
        else:
            B[k] = 0.0
            norm = 0.0
        B[:k] = V
        if method == EXACT:
            _exact(p, norm, B, V, S, D)
        else:
            _published(method, p, norm, B, V, S, D)


@kernel
def _exact(p, norm, B, V, S, D):
    """Eigendecompose diag(S, 0) + [p; |g|][p; |g|]', keep the k largest pairs, bound the smallest by a diagonal."""
    k = V.shape[0]
    M = np.zeros((k + 1, k + 1))
    for i in range(k):
        M[i, i] = S[i]
        for j in range(k):
            M[i, j] += p[i] * p[j]
        M[i, k] = M[k, i] = p[i] * norm
    M[k, k] = norm * norm
    values, W = np.linalg.eigh(M)
    rotated = np.ascontiguousarray(W.T) @ B
    absorb(max(values[0], 0.0), rotated[0], D)
    for i in range(k):
        S[i] = max(values[i + 1], 0.0)
        V[i] = rotated[i + 1]


@kernel
def _published(method, p, norm, B, V, S, D):
    """Algorithm 4 of paper 000, which forgets the cross term p |g|; paper 002 adds |g| |p| I for it."""
    k = V.shape[0]
    M = np.zeros((k, k))
    for i in range(k):
        M[i, i] = S[i]
        for j in range(k):
            M[i, j] += p[i] * p[j]
    values, Q = np.linalg.eigh(M)
    V[:] = np.ascontiguousarray(Q.T) @ V
    for i in range(k):
        S[i] = max(values[i], 0.0)  # rounding leaves eigenvalues a little below zero, which have no root
    if method == CORRECTED:
        D += norm * np.sqrt(p @ p)
    if S[0] <= norm * norm:
        absorb(S[0], V[0], D)
        S[0] = norm * norm
        V[0] = B[k]
    else:
        absorb(norm * norm, B[k], D)


@kernel
def absorb(c, v, D):
    """Add the diagonal matrix c |v|_1 diag|v|, which is above c v v'."""
    total = 0.0
    for j in range(len(v)):
        total += abs(v[j])
    for j in range(len(v)):
        D[j] += c * total * abs(v[j])
