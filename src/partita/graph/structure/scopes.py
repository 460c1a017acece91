"""The variables of many factors."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

from ...core.results import IntArray

FACTORS = "factors must be tuples of integers, or integer matrices with a factor in every row"


class Scopes(NamedTuple):
    """The variables of factors in one vector, and where those of each factor begin."""

    offsets: IntArray
    members: IntArray


def flat_scopes(factors: Iterable[Any]) -> Scopes:
    """Tuples of variables, or matrices with a factor in every row, one after another."""
    if isinstance(factors, Scopes):
        return factors
    lengths: list[IntArray] = []
    members: list[IntArray] = []
    if not isinstance(factors, Iterable) or isinstance(factors, str | bytes | Mapping):
        raise ValueError(f"{FACTORS}; got {type(factors).__name__}")
    for matrix, group in itertools.groupby(factors, lambda entry: isinstance(entry, np.ndarray) and entry.ndim == 2):
        if matrix:
            for entry in group:
                if entry.dtype.kind not in "iu":
                    raise ValueError(f"a matrix of factors must be of integers, got {entry.dtype}")
                lengths.append(np.full(len(entry), entry.shape[1], np.int64))
                members.append(entry.astype(np.int64).ravel())
        else:
            try:
                given = [tuple(scope) for scope in group]
                if bool in set(map(type, itertools.chain.from_iterable(given))):
                    raise TypeError
                scopes = [tuple(operator.index(v) for v in scope) for scope in given]
                members.append(np.array([v for scope in scopes for v in scope], dtype=np.int64))
            except (TypeError, OverflowError):
                raise ValueError(FACTORS) from None
            lengths.append(np.array([len(scope) for scope in scopes], dtype=np.int64))
    offsets = np.cumsum(np.concatenate([np.zeros(1, np.int64), *lengths]))
    return Scopes(offsets, np.concatenate([np.zeros(0, np.int64), *members]))


def ranges(first: IntArray, count: IntArray) -> IntArray:
    """Numbers from each `first` on, as many as `count` says.

    >>> import numpy as np
    >>> ranges(np.array([5, 0]), np.array([2, 3]))
    array([5, 6, 0, 1, 2])
    """
    ends = np.cumsum(count)
    return np.asarray(np.repeat(first - ends + count, count) + np.arange(ends[-1] if len(ends) else 0))
