"""Rows and tables with names, as people have them: data frames, their rows, named tuples, records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np

from ...core.arrays.names import listed, repeated


def as_record(row: Any) -> dict[Any, Any] | None:
    """A row whose entries have names as a dict; None for anything else.

    Mappings, rows of pandas (a Series whose index are strings, ``itertuples`` without its ``Index``), named tuples,
    dataclasses, ``sqlite3.Row``, structs of pyarrow, and records of NumPy.
    """
    if isinstance(row, Mapping):
        return {name: value.as_py() if hasattr(value, "as_py") else value for name, value in row.items()}
    if isinstance(row, tuple) and hasattr(row, "_asdict"):
        values = row._asdict()
        if type(row).__name__ == "Pandas":
            values.pop("Index", None)
        return dict(values)
    if is_dataclass(row) and not isinstance(row, type):
        return {entry.name: getattr(row, entry.name) for entry in fields(row)}
    if isinstance(row, np.void) and row.dtype.names:
        return dict(zip(row.dtype.names, row.tolist(), strict=True))
    index: Any = getattr(row, "index", None)
    if hasattr(row, "iloc") and getattr(row, "ndim", 0) == 1 and hasattr(index, "tolist"):
        names = index.tolist()
        return dict(zip(names, row.tolist(), strict=True)) if names and all(isinstance(n, str) for n in names) else None
    if callable(getattr(row, "keys", None)) and hasattr(row, "__getitem__"):
        return {name: row[name] for name in row.keys()}  # noqa: SIM118 (sqlite3.Row iterates over its values)
    return None


@dataclass(frozen=True)
class Frame:
    """A data frame as named columns.

    Attributes
    ----------
    names : list of str
    columns : list of arrays
    named : bool
        Whether the names are the user's, not numbers that stand for none.
    """

    names: list[str]
    columns: list[Any]
    named: bool

    @classmethod
    def of(cls, table: Any) -> Frame | None:
        """A data frame of pandas or polars, or a table of pyarrow; None for anything else."""
        if hasattr(table, "iloc") and getattr(table, "ndim", 0) == 2:
            given = list(table.columns)
            columns = [_numbers(table.iloc[:, j]) for j in range(len(given))]
        elif hasattr(table, "get_columns") and hasattr(table, "columns"):
            given, columns = list(table.columns), [column.to_numpy() for column in table.get_columns()]
        elif hasattr(table, "column_names") and hasattr(table, "itercolumns"):
            given = list(table.column_names)
            columns = [np.asarray(column.to_numpy(zero_copy_only=False)) for column in table.itercolumns()]
        else:
            return None
        names = list(map(str, given))
        twice = repeated(names)
        if twice:
            raise ValueError(f"columns of a data frame must have different names, got {twice[0]!r} twice")
        return cls(names, columns, all(isinstance(name, str) for name in given))

    @property
    def numeric(self) -> bool:
        """Whether all columns are numbers or flags."""
        return all(column.dtype.kind in "biuf" for column in self.columns)

    def matrix(self, names: list[str] | None = None) -> Any:
        """The columns as an array of float64, in the order of `names` if given."""
        columns = self.columns
        if names is not None and names != self.names:
            check_names(self.names, names)
            columns = [columns[self.names.index(name)] for name in names]
        return np.column_stack([np.asarray(column, dtype=np.float64) for column in columns]) if columns else np.zeros((0, 0))

    def records(self) -> list[dict[str, Any]]:
        """A dict for each row."""
        rows = zip(*(column.tolist() for column in self.columns), strict=True)
        return [dict(zip(self.names, row, strict=True)) for row in rows]


def check_names(given: list[str], expected: list[str], first: str = "the model was fitted to") -> None:
    """Raise a ValueError unless both are the same names, in any order."""
    missing, more = sorted(set(expected) - set(given)), sorted(set(given) - set(expected))
    if missing or more:
        what = [f"lacks {listed(missing)}"] * bool(missing) + [f"has {listed(more)} besides"] * bool(more)
        raise ValueError(f"columns of X are found by name: {first} {listed(expected)}, and X {' and '.join(what)}")


def _numbers(column: Any) -> Any:
    """A column of pandas as an array; numbers of its own types, which have a missing value, as floats."""
    values = column.to_numpy()
    if values.dtype == object and getattr(column.dtype, "kind", "O") in "biuf":
        return column.to_numpy(dtype=np.float64, na_value=np.nan)
    return values
