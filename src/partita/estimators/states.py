"""Tables of states as users give them, and numbers of states that may not be meant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.arrays.names import listed
from ..core.arrays.unknown import is_unknown, refuse_ignored, refuse_spins
from ..core.errors import DataWarning
from ..core.results import IntArray
from ..core.warn import warn
from .data import refuse_times

#: States from which a column looks like a quantity rather than a set of labels.
MANY = 50
#: States that nothing shows, from which one value looks like a code for something else.
GAP = 5
#: States that a set cannot hold.
MOST = 2**31
#: Numbers from which a state cannot be meant.
LARGEST = 2**53
#: What to do with labels.
NUMBERING = "Number the states 0, 1, ..., as with pandas.factorize or scikit-learn's OrdinalEncoder"


def doubtful_states(name: Any, n_states: int, values: Sequence[Any], kind: str) -> str:
    """A sentence about a column whose number of states may not be meant; empty if it is not remarkable.

    Parameters
    ----------
    name : hashable
        The column.
    n_states : int
        States that it gets.
    values : sequence
        Different values that occur, sorted.
    kind : {"numbers", "values", "categories"}
        Why it gets them: whole numbers are states from 0 to the largest; each different value is one; a categorical column
        declares them.

    Examples
    --------
    >>> from partita.estimators.states import doubtful_states
    >>> doubtful_states("smoker", 1000, [0, 1, 999], "numbers")
    "column 'smoker' has 1000 states, 0 to 999, though only 3 values occur (0, 1, 999)"
    >>> doubtful_states("smoker", 2, [0, 1], "numbers")
    ''
    """
    seen = len(values)
    if kind == "categories" and n_states > seen:
        return f"column {name!r} has {n_states} states, its categories, though only {seen} of them occur"
    if kind == "numbers" and n_states - seen >= max(GAP, seen):
        shown = ", ".join(map(str, values[:3])) + (", ..." if seen > 4 else "") + (f", {values[-1]}" if seen > 3 else "")
        return f"column {name!r} has {n_states} states, 0 to {n_states - 1}, though only {seen} values occur ({shown})"
    if n_states > MANY:
        why = {"numbers": f"one for every whole number up to {n_states - 1}", "values": "one for each different value"}
        return f"column {name!r} has {n_states} states, {why.get(kind, 'one for each category')}"
    return ""


def warn_states(sentences: Sequence[str], cure: str) -> None:
    """One DataWarning for all columns that `doubtful_states` has something to say about."""
    told = [sentence for sentence in sentences if sentence]
    if told:
        more = f"; and {len(told) - 3} more columns" if len(told) > 3 else ""
        warn(f"{'; '.join(told[:3])}{more}. {cure}", DataWarning)


def read_states(X: Any, names: Sequence[Any] | None = None, spins: bool = False) -> IntArray:
    """Rows of states as integers, -1 where they are unknown (-1, None, NaN or ``pd.NA``).

    Parameters
    ----------
    X : table
        An array, a list of rows or a data frame.
    names : sequence, optional
        Of the columns, for messages. Default: their numbers.
    spins : bool
        Take -1 and 1 alone as 1 and unknown, as one question may have them. Else they are refused.
    """
    refuse_times("X", X)
    found = np.asarray(X)
    if found.ndim != 2 or found.shape[0] == 0:
        raise ValueError(f"X must have shape (n_samples, n_variables) with at least one row, got {found.shape}")
    if found.dtype.kind == "O":
        found = _numbers(found)
    if found.dtype.kind not in "iufb":
        raise ValueError(f"X must hold integers, the state of each variable; got {found.dtype}. {NUMBERING}")
    low = np.nanmin(found, initial=0) if found.dtype.kind in "if" else 0
    if low < 0:
        refuse_ignored("X", found, "Where it stands for unknown, give -1, NaN or None")
        if not spins:
            _refuse_spins(found, names)
    if found.dtype.kind == "f":
        found = np.where(np.isnan(found), -1.0, found)
        if not (found == np.round(found)).all():
            raise ValueError("X must hold integers, the state of each variable (None, NaN or -1 for unknown)")
    if found.max(initial=0) >= LARGEST or low <= -LARGEST:
        raise ValueError(f"X must hold integers, the state of each variable; got {found.max() if low > -LARGEST else low}")
    return found.astype(np.int64)


def set_code(states: tuple[int, ...], count: int, sets: dict[tuple[int, ...], int]) -> int:
    """The code of a sorted set of some of `count` states: the state if it is one, -1 for all, else -2 and below.

    New sets are numbered, in `sets`.
    """
    if len(states) == 1:
        return states[0]
    return -1 if len(states) == count else -2 - sets.setdefault(states, len(sets))


def sets_table(sets: dict[tuple[int, ...], int], width: int) -> NDArray[np.bool_] | None:
    """Sets of states as rows of bool; None if there are none."""
    if not sets:
        return None
    table = np.zeros((len(sets), width), bool)
    for states, row in sets.items():
        table[row, list(states)] = True
    return table


class StateSets:
    """Cells of a table that hold sets of states, one of which is right: ``{0, 2}``.

    Attributes
    ----------
    table : table
        The same with None in their place.
    """

    def __init__(self, X: Any) -> None:
        found = np.asarray(X)
        self.table: Any = X
        self.cells: dict[tuple[int, int], tuple[int, ...]] = {}
        if found.dtype.kind != "O" or found.ndim != 2:
            return
        for cell, value in np.ndenumerate(found):
            if isinstance(value, set | frozenset):
                self.cells[cell] = _members(value)
        if self.cells:
            self.table = found.copy()
            for cell in self.cells:
                self.table[cell] = None

    def raised(self, states: IntArray) -> IntArray:
        """The states with the largest of each set in its place: what tells how many states there are."""
        out = states.copy()
        for cell, members in self.cells.items():
            out[cell] = members[-1]
        return out

    def codes(self, states: IntArray, counts: IntArray) -> tuple[IntArray, NDArray[np.bool_] | None]:
        """The states with codes of sets in their places, and the sets that they stand for."""
        out = states.copy()
        sets: dict[tuple[int, ...], int] = {}
        for cell, members in self.cells.items():
            if members[-1] >= counts[cell[1]]:
                raise ValueError(
                    f"X has the set {set(members)} in row {cell[0]}, but the states of variable {cell[1]} are 0 to "
                    f"{counts[cell[1]] - 1}"
                )
            out[cell] = set_code(members, int(counts[cell[1]]), sets)
        return out, sets_table(sets, int(np.max(counts)))


def _members(states: Any) -> tuple[int, ...]:
    """The states of a set, sorted."""
    if not states or not all(isinstance(s, int | np.integer) and not isinstance(s, bool) and 0 <= s < MOST for s in states):
        raise ValueError(
            f"X holds the set {set(states)}: a set holds states, numbers from 0, and at least one; None, by itself, stands "
            "for any"
        )
    return tuple(sorted(map(int, states)))


def _numbers(table: Any) -> Any:
    try:
        rows = [[np.nan if is_unknown(value) else value for value in row] for row in table]
        if any(isinstance(value, str | bytes) for row in rows for value in row):
            raise TypeError
        return np.array(rows, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"X must hold integers, the state of each variable. {NUMBERING}") from None


def _refuse_spins(found: Any, names: Sequence[Any] | None) -> None:
    """Refuse -1 and 1 alone: in all of a table, or in columns, unless -1 clearly means unknown in another one."""
    cure = "Give (X + 1) // 2{}, so that they are 0 and 1; where -1 does mean unknown, give NaN or None"
    refuse_spins("X", found, cure.format(""))
    minus = (found == -1).any(0)
    spins = minus & (found == 1).any(0) & (np.isin(found, (-1, 1)) | (found != found)).all(0)
    if spins.any() and not (minus & ~spins & (found >= 0).any(0)).any():
        columns = [j if names is None else names[j] for j in np.flatnonzero(spins).tolist()]
        refuse_spins(f"column {listed(columns)} of X", found[:, spins], cure.format(" there"))
