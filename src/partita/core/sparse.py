"""The door for sparse matrices: compiled kernels trust their indices, and SciPy lets anyone write anything into them."""

from __future__ import annotations

from typing import Any

import numpy as np


def check_compressed(name: str, matrix: Any) -> None:
    """Raise a ValueError unless a CSR or CSC matrix is whole: indices within range, pointers that rise, as many data.

    One pass over the indices. SciPy's own `check_format` also replaces the arrays, and takes longer.
    """
    n_rows, n_columns = matrix.shape if matrix.format == "csr" else matrix.shape[::-1]
    pointers, indices, data = np.asarray(matrix.indptr), np.asarray(matrix.indices), np.asarray(matrix.data)
    if pointers.dtype.kind not in "iu" or indices.dtype.kind not in "iu":
        raise _broken(name, f"indptr and indices must be integers, got {pointers.dtype} and {indices.dtype}")
    if pointers.ndim != 1 or indices.ndim != 1 or data.ndim != 1:
        raise _broken(name, "indptr, indices and data must have one dimension each")
    if len(pointers) != n_rows + 1:
        raise _broken(name, f"indptr must have {n_rows + 1} entries, got {len(pointers)}")
    if int(pointers[0]) != 0:
        raise _broken(name, f"indptr must begin with 0, got {int(pointers[0])}")
    if (pointers[1:] < pointers[:-1]).any():
        raise _broken(name, f"indptr must not fall, but it does after entry {int(np.argmax(pointers[1:] < pointers[:-1]))}")
    count = int(pointers[-1])
    if count > len(indices) or count > len(data):
        raise _broken(name, f"indptr ends with {count}, but there are {len(indices)} indices and {len(data)} data")
    if count:
        low, high = int(indices[:count].min()), int(indices[:count].max())
        if low < 0 or high >= n_columns:
            raise _broken(name, f"indices must be from 0 to {n_columns - 1}, got {low if low < 0 else high}")


def with_narrow_indices(matrix: Any) -> Any:
    """A compressed matrix with 32-bit indices, in place: SciPy's graph routines ask for them, most until 1.14."""
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
    matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


def _broken(name: str, what: str) -> ValueError:
    return ValueError(f"{name} is a broken sparse matrix: {what}. Build it anew, for instance from its coordinates (COO)")
