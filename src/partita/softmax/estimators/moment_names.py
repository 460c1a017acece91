"""Moments and states by name: what users write in frames, series and dicts, as plain arrays in one order."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

import numpy as np

from ...core.arrays.names import listed, repeated
from ...core.results import FloatArray
from ...estimators.data import refuse_times

Names = Sequence[Hashable] | None


def read_moments(name: str, value: Any) -> tuple[FloatArray, Names, Names]:
    """Features as a finite matrix (states, moments), the names of its columns and of its states; None where it has none.

    A frame has both (a plain numbering of states is no name), a series or a dict of columns has names of columns.
    """
    refuse_times(name, value)
    columns = _columns(value)
    table = {key: np.asarray(column) for key, column in value.items()} if isinstance(value, Mapping) else value
    try:
        array = np.column_stack(list(table.values())) if isinstance(table, dict) else np.asarray(table)
        array = np.asarray(array, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers of shape (states, moments){_not_a_number(value)}") from None
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2 or array.size == 0 or not np.isfinite(array).all():
        where = ""
        if array.ndim == 2 and array.size:
            bad = int(np.argmin(np.isfinite(array).all(axis=0)))
            where = f"; column {(columns[bad] if columns is not None else bad)!r} holds NaN or infinity"
        raise ValueError(f"{name} must be finite with shape (states, moments), got {np.shape(array)}{where}")
    if columns is not None:
        check_distinct(f"columns of {name}", columns)
    return array, columns, _index(value)


def read_targets(name: str, value: Any, of: str, columns: Names, count: int) -> FloatArray:
    """One finite number for each of `count` moments, in the order of the columns of `of`: by name where there are names."""
    names: Names = None
    if isinstance(value, Mapping):
        names, value = list(value), list(value.values())
    elif hasattr(value, "columns") and np.ndim(value) == 2 and 1 in np.shape(value):
        names = _columns(value) if np.shape(value)[0] == 1 else _index(value)
        value = np.ravel(np.asarray(value))
    elif np.ndim(value) == 1:
        names = _index(value)
    try:
        array = np.atleast_1d(np.asarray(value, dtype=np.float64))
    except (TypeError, ValueError):
        raise ValueError(f"{name} must be numbers, one per moment ({count})") from None
    if names is not None:
        array = array[_order(name, names, of, range(count) if columns is None else columns, columns is None)]
    if array.shape != (count,) or not np.isfinite(array).all():
        raise ValueError(
            f"{name} must be {count} finite numbers, one per moment; got {array.tolist() if array.size < 9 else array.shape}"
        )
    return array


def align_states(name: str, value: Any, of: str, states: Names) -> Any:
    """The positions in `value` of the states of `of`, by name if both have names; None for the order they have."""
    names = list(value) if isinstance(value, Mapping) else _index(value)
    if (
        names is None
        or (states is None and not isinstance(value, Mapping))
        or (states is not None and list(states) == list(names))
    ):
        return None
    if states is None:
        raise ValueError(f"{name} names its states, but {of} does not: give {of} as a frame with these names as its index")
    return _order(name, names, of, states, False)


def _order(name: str, names: Sequence[Hashable], of: str, wanted: Sequence[Hashable], numbered: bool) -> Any:
    """Where each of the names wanted stands among `names`; a ValueError says which are unknown, absent or double."""
    check_distinct(name, names)
    check_distinct(of, wanted)
    place = {key: i for i, key in enumerate(names)}
    known = set(wanted)
    unknown, absent = [key for key in names if key not in known], [key for key in wanted if key not in place]
    if unknown or absent:
        hint = ""
        if numbered:
            hint = f". {of} is an array, whose columns are 0 to {len(wanted) - 1}: give it as a frame, or {name} as a list"
        elif unknown:
            hint = f". Names of {of}: {listed(wanted)}"
        parts = [f"has {listed(unknown)}, which {of} has not"] if unknown else []
        parts += [f"lacks {listed(absent)}"] if absent else []
        raise ValueError(f"{name} {' and '.join(parts)}{hint}")
    return np.array([place[key] for key in wanted])


def check_distinct(name: str, names: Sequence[Hashable]) -> None:
    """A ValueError that tells which names occur twice."""
    twice = repeated(names)
    if twice:
        raise ValueError(f"{name}: {listed(twice)} occurs more than once; names must be different")


def _columns(value: Any) -> Names:
    """Names of the columns of a frame, a dict or a named series; None for arrays, and for frames that only number them."""
    if isinstance(value, Mapping):
        return list(value)
    if np.ndim(value) == 1:
        own = getattr(value, "name", None)
        return None if own is None or not isinstance(own, Hashable) else [own]
    columns = getattr(value, "column_names", None) or getattr(value, "columns", None)
    if columns is None:
        return None
    return None if _numbered(columns) else list(columns)


def _index(value: Any) -> Names:
    """Names of the rows of a pandas object; None for a plain numbering."""
    index = getattr(value, "index", None)
    if index is None or callable(index) or _numbered(index):
        return None
    return list(index)


def _numbered(index: Any) -> bool:
    return type(index).__name__ == "RangeIndex" and index.start == 0 and index.step == 1


def _not_a_number(value: Any) -> str:
    """Which column of a frame holds something else, for messages."""
    for key in _columns(value) or ():
        try:
            np.asarray(value[key], dtype=np.float64)
        except (TypeError, ValueError):
            return f"; column {key!r} is not. Code categories as columns of 0 and 1 (pandas.get_dummies)"
    return ""
