"""Columns of tables by name: names win over positions wherever there are names."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np

from ..core.arrays.names import listed, repeated
from ..core.errors import DataWarning
from ..core.results import IntArray
from ..core.warn import warn


def column_names(X: Any) -> list[Hashable] | None:
    """Names of the columns of a data frame (pandas, polars, pyarrow), or None for arrays, lists and frames without names.

    Names are strings or integers. As in scikit-learn, strings beside other names are a TypeError, and names of any other
    kind count as none. So do the numbers 0, 1, ... in order, which pandas gives columns that have no name.
    """
    found = getattr(X, "column_names", None)  # pyarrow, whose `columns` are the columns themselves
    if found is None:
        found = getattr(X, "columns", None)
    if found is None or not hasattr(X, "__getitem__") or isinstance(X, np.ndarray):
        return None
    names = [int(name) if isinstance(name, numbers.Integral) else name for name in found]
    kinds = {"text" if isinstance(name, str) else type(name).__name__ for name in names}
    if "text" in kinds and len(kinds) > 1:
        raise TypeError(f"names of columns must be all strings or all integers, got {sorted(kinds)}")
    if not kinds <= {"text"} and not kinds <= {"int"}:
        return None
    twice = repeated(names)
    if twice:
        raise ValueError(f"X has more than one column {twice[0]!r}: rename or drop all but one")
    return None if names == list(range(len(names))) else names


def match_columns(
    wanted: Sequence[Hashable], found: Sequence[Hashable], owner: str = "the model", optional: Sequence[Hashable] = ()
) -> IntArray:
    """For every wanted name its position among those found, -1 for optional ones that are absent.

    Names that are absent are a ValueError that lists them; columns that nobody asked for are ignored with one DataWarning.

    Parameters
    ----------
    wanted, found : sequences of names
        Of the model, and of the columns of X.
    owner : str
        What the names belong to, for messages, as ``"MarkovNetwork"``.
    optional : sequence of names
        Those of `wanted` that need not be there.
    """
    place = {name: j for j, name in enumerate(found)}
    absent = [name for name in wanted if name not in place and name not in optional]
    if absent:
        raise ValueError(
            f"X has no column {listed(absent)}, which {owner} needs; its columns are {listed(found)}. Add what is missing "
            "(with NaN where it is unknown), or rename the columns"
        )
    known = set(wanted)
    extra = [name for name in found if name not in known]
    if extra:
        one = len(extra) == 1
        warn(
            f"X has {len(extra)} column{'' if one else 's'} that {owner} does not have, {listed(extra)}: "
            f"{'it is' if one else 'they are'} ignored",
            DataWarning,
        )
    return np.array([place.get(name, -1) for name in wanted], dtype=np.int64)


def take_columns(X: Any, places: IntArray | None) -> Any:
    """The columns of a data frame at these positions, before anyone reads the others; X itself for None."""
    if places is None:
        return X
    if hasattr(X, "iloc"):
        return X.iloc[:, places]
    names = getattr(X, "column_names", None) or getattr(X, "columns", None)
    return np.asarray(X)[:, places] if names is None else X.select([names[j] for j in places])


def is_numbering(names: Iterable[Any], count: int) -> bool:
    """Whether names are the integers from 0 to count - 1, in any order."""
    return set(names) == set(range(count)) and not any(isinstance(name, str | float) for name in names)


def order_columns(estimator: Any, names: Sequence[Hashable] | None, n_columns: int) -> IntArray | None:
    """Positions, in new data, of the columns that an estimator was fitted with; None if they are as they were.

    Compares the names of new data (see `column_names`) with ``feature_names_in_``: by name if both have names, by position
    otherwise, with the warnings of scikit-learn.
    """
    kept = getattr(estimator, "feature_names_in_", None)
    who = type(estimator).__name__
    if names is not None and kept is not None:
        places = match_columns(kept.tolist(), names, who)
        return None if np.array_equal(places, np.arange(n_columns)) else places
    if kept is not None:
        warn(
            f"X does not have valid feature names, but {who} was fitted with feature names",
            UserWarning,
        )
    if names is None:
        return None
    if is_numbering(names, n_columns):
        return np.argsort(np.array(names, dtype=np.int64))
    warn(f"X has feature names, but {who} was fitted without feature names", UserWarning)
    return None
