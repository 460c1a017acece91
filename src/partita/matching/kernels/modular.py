"""Matrices of integers modulo a prime."""

from __future__ import annotations

import numpy as np

from ...numerics.jit import kernel

PRIME = 2147483647


@kernel
def _reciprocal(x):
    """By Fermat: x^(p - 2)."""
    out, power = 1, PRIME - 2
    while power:
        if power & 1:
            out = out * x % PRIME
        x = x * x % PRIME
        power >>= 1
    return out


@kernel
def inverse(matrix):
    """The inverse, of shape (0, 0) if there is none."""
    n = len(matrix)
    A = np.zeros((n, 2 * n), np.int64)
    A[:, :n] = matrix
    for i in range(n):
        A[i, n + i] = 1
    for c in range(n):
        pivot = c
        while pivot < n and A[pivot, c] == 0:
            pivot += 1
        if pivot == n:
            return np.zeros((0, 0), np.int64)
        if pivot != c:
            for k in range(2 * n):
                A[c, k], A[pivot, k] = A[pivot, k], A[c, k]
        factor = _reciprocal(A[c, c])
        for k in range(2 * n):
            A[c, k] = A[c, k] * factor % PRIME
        for i in range(n):
            f = A[i, c]
            if i != c and f:
                for k in range(c, 2 * n):
                    A[i, k] = (A[i, k] + (PRIME - f) * A[c, k]) % PRIME
    return A[:, n:].copy()
