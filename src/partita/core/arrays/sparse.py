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


def sound_csr(name: str, matrix: Any) -> Any:
    """A sparse matrix of any format as a CSR matrix that is whole and that kernels may trust, or a ValueError.

    Checked before SciPy converts it, because SciPy's conversions trust the indices too. The arrays are shared where that is
    possible; what SciPy remembers about them ("sorted", "no duplicates") is not, because the arrays may have changed since.
    Entries behind the last pointer, which count for nothing, are left out.
    """
    import scipy.sparse as sp

    if matrix.ndim != 2:
        raise ValueError(f"{name} must be a matrix, got a sparse array of shape {matrix.shape}")
    if matrix.format in ("csr", "csc"):
        check_compressed(name, matrix)
        count = int(matrix.indptr[-1])
        kind = sp.csr_matrix if matrix.format == "csr" else sp.csc_matrix
        fresh = kind((matrix.data[:count], matrix.indices[:count], matrix.indptr), shape=matrix.shape, copy=False)
        return fresh.tocsr()
    if matrix.format == "coo":
        _check_coordinates(name, matrix)
    elif matrix.format == "bsr":
        _check_blocks(name, matrix)
    elif matrix.format == "dia":
        offsets, data = np.asarray(matrix.offsets), np.asarray(matrix.data)
        if offsets.dtype.kind not in "iu" or offsets.ndim != 1 or data.ndim != 2 or len(data) != len(offsets):
            raise _broken(name, f"offsets must be integers, one for each row of data, got {offsets.shape} and {data.shape}")
    elif matrix.format == "lil":
        _check_lists(name, matrix)
    made = matrix.tocsr()
    check_compressed(name, made)
    return sp.csr_matrix((made.data, made.indices, made.indptr), shape=made.shape, copy=False)


def _check_coordinates(name: str, matrix: Any) -> None:
    data = np.asarray(matrix.data)
    for axis, values in enumerate((np.asarray(matrix.row), np.asarray(matrix.col))):
        if values.dtype.kind not in "iu" or values.shape != data.shape or data.ndim != 1:
            raise _broken(name, f"row and col must be integers, one for each of {data.shape} data, got {values.shape}")
        if len(values) and (int(values.min()) < 0 or int(values.max()) >= matrix.shape[axis]):
            which = ("row", "col")[axis]
            raise _broken(
                name, f"{which} must be from 0 to {matrix.shape[axis] - 1}, got {int(values.min())} to {int(values.max())}"
            )


def _check_lists(name: str, matrix: Any) -> None:
    """SciPy reads as many entries of a list of data as its list of columns has."""
    if not len(matrix.rows) == len(matrix.data) == matrix.shape[0]:
        raise _broken(
            name, f"rows and data must have {matrix.shape[0]} lists, got {len(matrix.rows)} and {len(matrix.data)}"
        )
    for i, (columns, values) in enumerate(zip(matrix.rows, matrix.data, strict=True)):
        if len(columns) != len(values):
            raise _broken(name, f"row {i} has {len(columns)} columns and {len(values)} data")
        if len(columns) and not 0 <= min(columns) <= max(columns) < matrix.shape[1]:
            raise _broken(
                name, f"columns must be from 0 to {matrix.shape[1] - 1}, row {i} has {min(columns)} to {max(columns)}"
            )


def _check_blocks(name: str, matrix: Any) -> None:
    """A BSR matrix is a CSR matrix of blocks."""
    import scipy.sparse as sp

    data = np.asarray(matrix.data)
    if data.ndim != 3 or not all(data.shape[1:]) or any(n % b for n, b in zip(matrix.shape, data.shape[1:], strict=True)):
        raise _broken(name, f"its blocks have shape {data.shape[1:]}, which does not divide {matrix.shape}")
    outline = sp.csr_matrix(tuple(n // b for n, b in zip(matrix.shape, data.shape[1:], strict=True)))
    outline.data, outline.indices, outline.indptr = data[:, 0, 0], matrix.indices, matrix.indptr
    check_compressed(name, outline)


def with_narrow_indices(matrix: Any) -> Any:
    """A compressed matrix with 32-bit indices, in place: SciPy's graph routines ask for them, most until 1.14."""
    matrix.indices = matrix.indices.astype(np.int32, copy=False)
    matrix.indptr = matrix.indptr.astype(np.int32, copy=False)
    return matrix


def _broken(name: str, what: str) -> ValueError:
    return ValueError(f"{name} is a broken sparse matrix: {what}. Build it anew, for instance from its coordinates (COO)")
