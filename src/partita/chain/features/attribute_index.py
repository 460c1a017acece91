"""Columns for attributes: names or integers, numbered in the order in which they come, and the matrix of their rows."""

from __future__ import annotations

import zlib
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import count, repeat
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from sklearn.exceptions import NotFittedError

from ...core.arrays.strings import pack_strings, unpack_strings
from ...core.validation import check_count
from ..kernels.keys import number_keys

Codes = NDArray[np.int32]


class AttributeIndex:
    """Columns for names: a table that grows, or a hash that needs no table.

    Parameters
    ----------
    names : iterable of str
        Names of the first columns; without meaning if names are hashed.
    hashing : int or None
        None keeps a table. A number hashes names into so many columns by the CRC-32 of their UTF-8 bytes, which is the same
        everywhere; names that share a column are added up.
    """

    def __init__(self, names: Iterable[str] = (), hashing: int | None = None) -> None:
        self.hashing: int | None = None if hashing is None else check_count("hashing", hashing, minimum=1)
        if self.hashing is not None and self.hashing > 2**31:
            raise ValueError(f"hashing must be at most 2**31 columns, got {hashing}")
        self._names: list[str] | None = list(names)
        self._table: defaultdict[str, int] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {"hashing": self.hashing, "_names": self.names, "_table": None}  # the table holds a method of its own

    @property
    def names(self) -> list[str]:
        """Names of the columns; none if they are hashed."""
        if self._names is None:
            self._names = list(self._lookup())
        return self._names

    @property
    def size(self) -> int:
        """Number of columns."""
        if self.hashing is not None:
            return self.hashing
        return len(self._lookup() if self._names is None else self._names)

    def number(self, names: Sequence[str]) -> Codes:
        """Columns of names; new ones get the next."""
        if self.hashing is not None:
            return self._hash(names)
        codes = np.fromiter(map(self._lookup().__getitem__, names), np.int32, len(names))
        self._names = None
        return codes

    def find(self, names: Sequence[str]) -> Codes:
        """Columns of names, -1 for unknown ones."""
        if self.hashing is not None:
            return self._hash(names)
        return np.fromiter(map(self._lookup().get, names, repeat(-1)), np.int32, len(names))

    def trim(self, X: sp.csr_matrix, minimum: int) -> sp.csr_matrix:
        """Drop the names that have fewer than `minimum` entries in X, and their columns."""
        if minimum <= 1 or self.hashing is not None:
            return X
        keep = np.bincount(X.indices, minlength=self.size) >= minimum
        self._names = [name for name, stays in zip(self.names, keep.tolist(), strict=True) if stays]
        self._table = None
        return X[:, np.flatnonzero(keep)]

    def to_state(self) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        """Plain values and arrays from which `from_state` makes the same index."""
        content, offsets = pack_strings(self.names)
        return {"hashing": self.hashing}, {"names": content, "offsets": offsets}

    @classmethod
    def from_state(cls, values: Mapping[str, Any], arrays: Mapping[str, np.ndarray]) -> AttributeIndex:
        return cls(unpack_strings(arrays["names"], arrays["offsets"]), values["hashing"])

    def _lookup(self) -> defaultdict[str, int]:
        if self._table is None:
            table: defaultdict[str, int] = defaultdict()
            table.default_factory = table.__len__  # looking up by [] numbers new names, `get` does not
            table.update(zip(self._names or (), count()))
            self._table = table
        return self._table

    def _hash(self, names: Sequence[str]) -> Codes:
        size = self.hashing
        hashed = (zlib.crc32(name.encode("utf-8", "surrogatepass")) % size for name in names)  # type: ignore[operator]
        return np.fromiter(hashed, np.int32, len(names))


class Indexed:
    """What makers of attributes share: options, and the index of names once they are fitted."""

    def __init__(self, min_frequency: int, hashing: int | None) -> None:
        self.min_frequency: int = check_count("min_frequency", min_frequency)
        if hashing is not None and min_frequency > 1:
            raise ValueError("min_frequency needs a table of names, which hashing does not keep; set one of them")
        self.hashing = hashing
        self._index = None if hashing is None else AttributeIndex(hashing=hashing)

    def number_as(self, names: Iterable[str]) -> None:
        """Let attributes have the columns that they have in a list of names; with `hashing` there is nothing to do."""
        if self.hashing is None:
            self._index = AttributeIndex(names)

    @property
    def attributes_(self) -> list[str]:
        """Names of the columns of the matrix; empty with `hashing`."""
        return self._fitted().names

    def _fitted(self) -> AttributeIndex:
        if self._index is None:
            raise NotFittedError(f"this {type(self).__name__} has no attributes yet: fit it first, or set hashing")
        return self._index


class KeyTable:
    """Codes for integers, in the order in which they first come."""

    count: int

    def __init__(self) -> None:
        self.count = 0
        self._slots = np.full(2, -1, np.int32)
        self._known = np.zeros(0, np.int64)

    def number(self, keys: NDArray[np.int64]) -> tuple[Codes, NDArray[np.int64]]:
        """Codes of keys, -1 for negative ones, and the rows at which new keys first came."""
        total = self.count + len(keys)
        if total > len(self._known):
            old, self._known = self._known[: self.count], np.empty(max(total, 2 * self.count), np.int64)
            self._slots = np.full(1 << (2 * len(self._known)).bit_length(), -1, np.int32)
            self._insert(old, 0)
        codes, first, count = self._insert(keys, self.count)
        first, self.count = first[: count - self.count], count
        return codes, first

    def _insert(self, keys: NDArray[np.int64], count: int) -> tuple[Codes, NDArray[np.int64], int]:
        codes, first = np.empty(len(keys), np.int32), np.empty(len(keys), np.int64)
        return codes, first, number_keys(keys, count, self._slots, self._known, codes, first)


def assemble(indices: Codes, data: NDArray[np.float64], lengths: Any, size: int) -> sp.csr_matrix:
    """Rows of the given lengths, without entries of column -1; sorted, and repeated entries added up."""
    indptr = np.zeros(len(lengths) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    known = indices >= 0
    if not known.all():
        indptr = np.concatenate(([0], np.cumsum(known)))[indptr]
        indices, data = indices[known], data[known]
    if len(indices) < 2**31:
        indptr = indptr.astype(np.int32)
    matrix = sp.csr_matrix((data, indices, indptr), shape=(len(lengths), size), copy=False)
    matrix.sum_duplicates()
    return matrix
