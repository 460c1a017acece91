"""Tables as people have them, frames of pandas, polars and pyarrow too, without importing these libraries."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays.names import repeated
from ...core.arrays.unknown import is_unknown

Name = Hashable
#: Frames whose values are still to be computed, and how.
LAZY = {("polars", "LazyFrame"): "X.collect()"}


@dataclass(frozen=True)
class Column:
    """Values of one variable, and where there is none.

    Attributes
    ----------
    values : array of shape (n_rows,)
    unknown : bool array
    categories : list or None
        The labels that a categorical column declares.
    array : bool
        Whether it is from an array without names.
    """

    values: Any
    unknown: Any
    categories: list[Any] | None = None
    array: bool = False

    @property
    def codes(self) -> bool:
        """Whether it is from an array of integers, in which -1 is unknown too, unless it is a state."""
        return self.array and self.values.dtype.kind in "iu"


@dataclass(frozen=True)
class Table:
    """Columns, read when they are asked for, and their names if there are any.

    `kind` is "pandas", "polars", "arrow", "frame" (another with columns), "dict", "records", "structured", "numbers" or
    "objects" (arrays).
    """

    kind: str
    names: list[Name] | None
    n_rows: int
    n_columns: int
    read: Callable[[int], Column]


def read_table(X: Any) -> Table:
    """A table, whatever it is. Columns that pandas numbered 0, 1, ... itself have these numbers as names."""
    owner = (type(X).__module__.split(".")[0], type(X).__name__)
    if owner in LAZY or owner[0].startswith("dask"):
        raise ValueError(
            f"the data are a {owner[1]} of {owner[0]}, which has no values yet: give {LAZY.get(owner, 'X.compute()')}"
        )
    if hasattr(X, "column_names") and hasattr(X, "column"):
        return _named("arrow", X.column_names, X.num_rows, lambda j: _arrow_column(X.column(j)))
    if hasattr(X, "get_columns") and hasattr(X, "columns"):
        return _named("polars", X.columns, len(X), lambda j: _series_column(X.get_columns()[j]))
    if hasattr(X, "iloc") and hasattr(X, "columns"):
        return _named("pandas", X.columns, len(X), lambda j: _series_column(X.iloc[:, j]))
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        return _other_frame(X)
    if isinstance(X, Mapping):
        return _columns_of_dict(X)
    if isinstance(X, Sequence) and len(X) and isinstance(X[0], Mapping):
        return _records(X)
    if isinstance(X, np.ndarray) and X.dtype.names:
        return _named("structured", X.dtype.names, len(X), lambda j: _array_column(X[X.dtype.names[j]]))
    return _array(X)


def _named(kind: str, names: Any, n_rows: int, read: Callable[[int], Column]) -> Table:
    found = [name.item() if isinstance(name, np.generic) else name for name in names]
    twice = repeated(found)
    if twice:
        raise ValueError(f"the data have more than one column {twice[0]!r}: rename or drop all but one")
    return Table(kind, found, n_rows, len(found), read)


def _other_frame(X: Any) -> Table:
    names = list(X.columns)
    return _named("frame", names, len(X), lambda j: _series_column(X[names[j]]))


def _columns_of_dict(X: Mapping[Name, Any]) -> Table:
    names = list(X)
    lengths = []
    for name in names:
        if isinstance(X[name], str) or not hasattr(X[name], "__len__"):
            raise ValueError(f"the data are a dict, in which {name!r} must be a list or an array, got {X[name]!r}")
        lengths.append(len(X[name]))
    if len(set(lengths)) > 1:
        other = next(j for j, n in enumerate(lengths) if n != lengths[0])
        raise ValueError(
            f"columns must be equally long, but {names[0]!r} has {lengths[0]} values, {names[other]!r} has {lengths[other]}"
        )
    return _named("dict", names, lengths[0] if lengths else 0, lambda j: _any_column(X[names[j]]))


def _records(X: Sequence[Any]) -> Table:
    """A list of dicts: a name that a row does not have is unknown there."""
    for i, row in enumerate(X):
        if not isinstance(row, Mapping):
            raise ValueError(f"row 0 is a dict, so that all rows must be, but row {i} is {row!r}")
    names = list(dict.fromkeys(name for row in X for name in row))
    return _named("records", names, len(X), lambda j: _any_column([row.get(names[j]) for row in X]))


def _array(X: Any) -> Table:
    """An array, or nested lists; what is masked is unknown."""
    masked = np.ma.getmaskarray(X) if isinstance(X, np.ma.MaskedArray) else None
    if hasattr(X, "toarray"):
        raise ValueError("the data are a sparse matrix, in which zeros are not stored: give X.toarray()")
    table = as_array(X)
    if table.ndim != 2 or table.shape[0] == 0:
        raise ValueError(f"the data must be a data frame or an array with at least one row, got shape {table.shape}")
    kind = "numbers" if table.dtype.kind in "iufb" else "objects"
    rows, columns = table.shape
    return Table(
        kind, None, rows, columns, lambda j: _array_column(table[:, j], None if masked is None else masked[:, j], True)
    )


def as_array(X: Any) -> Any:
    """An array. Lists keep their values as they are: numpy would make text of numbers and of NaN beside text."""
    try:
        table = np.asarray(X)
    except ValueError:
        raise ValueError("the data must be a data frame or an array, but their rows are not equally long") from None
    if not isinstance(X, np.ndarray) and table.dtype.kind in "US":
        table = np.array(X, dtype=object)
    return table


def _any_column(values: Any) -> Column:
    """A column of a dict: an array, a list, or a series of one of the libraries."""
    if type(values).__module__.split(".")[0] == "pyarrow":
        return _arrow_column(values)
    if hasattr(values, "to_numpy"):
        return _series_column(values)
    masked = np.ma.getmaskarray(values) if isinstance(values, np.ma.MaskedArray) else None
    array = values if isinstance(values, np.ndarray) else _objects(list(values))
    if array.ndim != 1:
        raise ValueError(f"columns must have one dimension, got shape {array.shape}")
    return _array_column(array, masked)


def _arrow_column(column: Any) -> Column:
    if hasattr(column.type, "value_type") and hasattr(column.type, "index_type"):
        column = column.cast(column.type.value_type)  # as numbers of entries, null would be the last entry
    try:
        values = _exact(column.to_numpy(zero_copy_only=False), column.to_pylist)
    except Exception:  # a type that numpy has no array for
        values = _objects(column.to_pylist())
    return _array_column(values)


def _series_column(column: Any) -> Column:
    """A column of pandas, polars or their like. Categories count if declared, which those of polars' Categorical are not."""
    dtype = getattr(column, "dtype", None)
    categories = None if str(dtype).startswith("Categorical") else getattr(dtype, "categories", None)
    if categories is not None:
        known = _array_column(np.asarray(column, dtype=object))
        listed = categories.to_list() if hasattr(categories, "to_list") else list(categories)
        return Column(known.values, known.unknown, listed)
    values = np.asarray(column.to_numpy() if hasattr(column, "to_numpy") else column)
    if hasattr(column, "to_list") and "int" in str(dtype).lower():
        values = _exact(values, column.to_list)
    if hasattr(column, "isna") and values.dtype.kind != "T":
        return Column(values, np.asarray(column.isna(), dtype=bool))
    return _array_column(values)


def _exact(values: Any, listed: Callable[[], list[Any]]) -> Any:
    """Values, from a list if they are integers that became floats beside nulls and are too large for these."""
    if values.dtype.kind == "f" and np.nanmax(np.abs(values), initial=0.0) >= 2**53:
        exact = listed()
        if any(isinstance(value, int) for value in exact):
            return _objects(exact)
    return values


def _objects(values: list[Any]) -> Any:
    return np.fromiter(values, dtype=object, count=len(values))  # np.array would take lists among them for rows


def _array_column(values: Any, masked: Any = None, array: bool = False) -> Column:
    if values.dtype.kind == "T":  # text of numpy 2
        values = values.astype(object)
    unknown = _unknown(values)
    if masked is not None:
        unknown = unknown | masked
    return Column(values, unknown, None, array)


def _unknown(values: Any) -> Any:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    return np.array([is_unknown(value) for value in values.tolist()], dtype=bool)


def write_table(kind: str, columns: dict[Name, Any], like: Any = None) -> Any:
    """Columns as a table of a kind, with the class and the index of a frame that is given."""
    if kind == "pandas":
        import pandas  # type: ignore[import-untyped]

        return pandas.DataFrame(columns) if like is None else type(like)(columns, index=like.index)
    if kind == "polars":
        import polars  # type: ignore[import-not-found,unused-ignore]

        return polars.DataFrame({str(name): values.tolist() for name, values in columns.items()})
    if kind == "arrow":
        import pyarrow  # type: ignore[import-not-found,import-untyped,unused-ignore]

        return pyarrow.table({str(name): values.tolist() for name, values in columns.items()})
    if kind == "frame" and like is not None:
        return type(like)(columns)
    if kind == "dict":
        return columns
    if kind == "records":
        rows = zip(*(values.tolist() for values in columns.values()), strict=True)
        return [dict(zip(columns, row, strict=True)) for row in rows]
    if kind == "structured":
        return np.rec.fromarrays(list(columns.values()), names=[str(name) for name in columns])  # type: ignore[call-overload]
    plain = {values.dtype.kind for values in columns.values()} <= set("iufb")
    return np.column_stack([values if plain else values.astype(object) for values in columns.values()])
