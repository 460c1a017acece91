"""Numbers of edges in matrices of vertices, and back."""

from __future__ import annotations

from ...numerics.jit import kernel


@kernel
def take(matrix, one, other, out):
    """The entries of a matrix at pairs of a row and a column."""
    for e in range(len(one)):
        out[e] = matrix[one[e], other[e]]


@kernel
def put(values, one, other, matrix):
    """The other way round."""
    for e in range(len(one)):
        matrix[one[e], other[e]] = values[e]
