"""The values of a column as states: one rule for each column, which depends on its states alone and never on other rows."""

from __future__ import annotations

import datetime
import decimal
import math
import numbers
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.arrays.names import is_hashable, listed, repeated
from ...core.arrays.unknown import is_unknown, refuse_ignored, refuse_spins
from ...core.results import FloatArray, IntArray
from ...estimators.data import class_codes
from ..structure.discrete_network import NUMBER
from .tables import Column, Name

#: Different values that are not whole up to which they are states.
FEW_FRACTIONS = 20
#: A code far from the others: how many times their span it is away.
FAR = 10


class StateNames:
    """How values are read as the states of one variable.

    Numbers are states that are these numbers, or text that reads so ("1" in a file is 1). If no state is a number, they
    count states from 0. True and False are states of these names, or 1 and 0. Text is itself.
    """

    def __init__(self, states: Sequence[Any]) -> None:
        self.states: list[Any] = list(states)
        self.lookup: dict[Any, int] = {label: code for code, label in enumerate(self.states)}
        self.kind: str = kind_of(type(self.states[0]))
        self.numbers: dict[Any, int] = self.lookup if self.kind != "text" else {}
        self.truths: dict[Any, int] = self.lookup if self.kind != "text" else {}
        #: Whether numbers count states.
        self.counted: bool = False
        if self.kind == "text":
            named = [(whole(float(label)), code) for label, code in self.lookup.items() if NUMBER.fullmatch(label)]
            self.numbers = dict(named)
            if len(self.numbers) < len(named):  # "1" and "01": only what is written the same way is the same
                self.numbers = {int(label): code for label, code in self.lookup.items() if _is_integer(label)}
            self.counted = not named
            if self.counted:
                self.numbers = {code: code for code in range(len(self.states))}
            truths = {label.lower(): code for label, code in self.lookup.items()}
            if set(truths) == {"false", "true"}:
                self.truths = {value == "true": code for value, code in truths.items()}

    def code(self, value: Any) -> int:
        """The number of the state that a known value is, -2 if it is none."""
        kind = kind_of(type(value))
        if kind == "text":
            return self.lookup.get(value, -2) if self.kind == "text" else -2
        if kind == "numbers":
            return self.numbers.get(value, -2)
        if kind == "truth values":
            return self.truths.get(value, -2)
        return self.lookup.get(value, -2)

    def complaint(self, name: Name, row: int, value: Any) -> ValueError:
        """An error about a value that is no state."""
        why = f"row {row} has {value!r} for {name!r}, which is none of its states: {listed(self.states, 10)}"
        kind = kind_of(type(value))
        if self.counted and kind == "numbers":
            why += f"; numbers count them, from 0 to {len(self.states) - 1}"
        elif kind == "numbers" and self.kind == "text":
            why += "; where some of these are numbers, numbers are names"
        elif kind != self.kind:
            why += f", which are {self.kind}"
        if kind == "numbers" and value == -1:
            why += ". -1 means unknown in arrays of integers only: give None or NaN"
        return ValueError(why)


def _is_integer(text: str) -> bool:
    return text.lstrip("-").isdecimal() and str(int(text)) == text


def whole(value: Any) -> Any:
    """A number as Python has it, an integer if it is whole; anything else as it is."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float | decimal.Decimal) and math.isfinite(value):
        return int(value) if value == int(value) else float(value)
    return value


def kind_of(cls: type) -> str:
    """What values of a class are, in words: states of one variable are of one kind."""
    if issubclass(cls, bool | np.bool_):
        return "truth values"
    if issubclass(cls, numbers.Real | decimal.Decimal):
        return "numbers"
    if issubclass(cls, str):
        return "text"
    if issubclass(cls, datetime.date | datetime.time | datetime.timedelta | np.datetime64 | np.timedelta64):
        return "dates or times"
    return "dates or times" if cls.__name__ == "Period" else f"values of type {cls.__name__}"


def check_labels(what: str, labels: Sequence[Any]) -> list[Any]:
    """States as Python values, if they are different, known and of one kind; `what` begins the message."""
    found = [whole(label) if isinstance(label, np.generic | float) and not is_unknown(label) else label for label in labels]
    bad = next((label for label in found if is_unknown(label) or not is_hashable(label)), _GOOD)
    if bad is not _GOOD:
        raise ValueError(f"{what} has {bad!r}, which cannot be a state")
    if isinstance(next((label for label in found if label in (float("inf"), -float("inf"))), None), float):
        raise ValueError(f"{what} has an infinite value, which is no state")
    kinds = sorted({kind_of(type(label)) for label in found})
    if len(kinds) > 1:
        raise ValueError(f"{what} mixes {' and '.join(kinds)}: make them one kind, for instance text")
    twice = repeated(found)
    if twice:
        raise ValueError(f"{what} has {twice[0]!r} twice")
    return found


_GOOD = object()


def known_rows(name: Name, column: Column, minus_one: bool = False) -> IntArray:
    """Rows that have a state, if all of their values can be. `minus_one`: -1 is a state, also where integers are codes."""
    unknown = column.unknown
    if column.codes and not minus_one:
        unknown = unknown | (column.values == -1)
    rows = np.flatnonzero(~unknown)
    values, dtype = column.values[rows], column.values.dtype
    if dtype.kind in "mM":
        raise _dates(name)
    if dtype.kind not in "iufbUO":
        raise ValueError(f"{name!r} holds values of type {dtype}; states are numbers or text")
    if dtype.kind == "f" and np.isinf(values).any():
        raise ValueError(f"{name!r} has an infinite value, which is no state")
    if dtype.kind == "O":
        _check_objects(name, values, rows)
    return rows


def _check_objects(name: Name, values: Any, rows: IntArray) -> None:
    """Refuse values that cannot be states."""
    for cls in set(map(type, values.tolist())):
        kind = kind_of(cls)
        if kind == "dates or times":
            raise _dates(name)
        odd = issubclass(cls, numbers.Complex) and not issubclass(cls, numbers.Real)
        if odd or cls.__hash__ is None or issubclass(cls, bytes | tuple):
            value = next(value for value in values.tolist() if type(value) is cls)
            if cls is tuple and is_hashable(value):
                continue
            row = int(rows[[type(other) is cls for other in values.tolist()].index(True)])
            raise ValueError(f"row {row} has {value!r} for {name!r}, which cannot be a state; states are numbers or text")
        if issubclass(cls, float | np.floating) and any(
            math.isinf(value) for value in values.tolist() if type(value) is cls
        ):
            raise ValueError(f"{name!r} has an infinite value, which is no state")


def _dates(name: Name) -> ValueError:
    return ValueError(
        f"{name!r} holds dates or times, which are no states: give numbers or text, for instance the month, or leave it out"
    )


def distinct(values: Any) -> tuple[list[Any], IntArray]:
    """Different values as Python objects, and which of them each is. Whole floats are integers."""
    if values.dtype.kind == "f" and (np.abs(values) < 2**53).all() and not np.mod(values, 1.0).any():
        values = values.astype(np.int64)
    if values.dtype.kind in "iufbU":
        found, where = class_codes(values)
        return [whole(value) for value in found.tolist()], where.ravel()
    first: dict[Any, int] = {}
    where = np.array([first.setdefault((type(value), value), len(first)) for value in values.tolist()], dtype=np.int64)
    plain = [whole(value) for _, value in first]
    once: dict[Any, int] = {}  # 1 and 1.0 are one; 1 and True are not
    merged = np.array([once.setdefault((kind_of(type(value)), value), len(once)) for value in plain], dtype=np.int64)
    return [value for _, value in once], merged[where] if len(where) else where


def state_codes(name: Name, column: Column, states: Sequence[Any]) -> IntArray:
    """The number of the state of every row, -1 where unknown."""
    names = StateNames(states)
    out = np.full(len(column.values), -1, np.int64)
    rows = known_rows(name, column, minus_one=names.kind == "numbers" and -1 in names.lookup)
    if not len(rows):
        return out
    found, where = distinct(column.values[rows])
    codes = np.array([names.code(value) for value in found])
    if (codes == -2).any():
        at = int(np.argmax(codes[where] == -2))
        raise names.complaint(name, int(rows[at]), found[int(where[at])])
    out[rows] = codes[where]
    return out


def has_codes(column: Column) -> bool:
    """Whether -1 clearly means unknown: in an array of integers, with states that are not 1."""
    values = column.values
    return column.codes and bool((values == -1).any()) and bool(((values >= 0) & (values != 1)).any())


def shown_states(name: Name, column: Column, spins: bool = True) -> tuple[list[Any], str]:
    """The states that a column shows or declares, and a sentence if one of them looks like a code for unknown.

    `spins`: -1 and 1 alone are refused, as they may be the two states.
    """
    if column.categories is not None:
        return check_labels(f"categories of {name!r}", column.categories), ""
    if spins and column.array and column.values.dtype.kind in "if":
        cure = f"Give (X + 1) // 2, a data frame, or cardinalities={{{name!r}: [-1, 1]}}"
        refuse_spins(f"the column {name!r}", np.unique(column.values[~column.unknown]), cure)
    rows = known_rows(name, column)
    found, where = distinct(column.values[rows])
    if not found:
        raise ValueError(f"{name!r} has no known value: say how many states it has, hidden={{{name!r}: 2}}")
    kinds = [kind_of(type(value)) for value in found]
    if len(set(kinds)) > 1:
        other = next(i for i, kind in enumerate(kinds) if kind != kinds[0])
        places = [int(rows[np.argmax(where == i)]) for i in (0, other)]
        raise ValueError(
            f"{name!r} mixes {kinds[0]} and {kinds[other]}: row {places[0]} has {found[0]!r}, row {places[1]} has "
            f"{found[other]!r}. Make the column one kind, for instance text, by astype(str)"
        )
    if kinds[0] == "numbers":
        _refuse_numbers(name, column, found)
    states = sorted(found) if kinds[0] in ("numbers", "text", "truth values") else _sorted(found)
    return states, _odd_one(name, states, found, where) if kinds[0] == "numbers" else ""


def _refuse_numbers(name: Name, column: Column, found: list[Any]) -> None:
    """Refuse numbers that are quantities, and those that mean something else elsewhere."""
    fractions = any(isinstance(value, float) for value in found)
    if fractions and len(found) > FEW_FRACTIONS:
        raise ValueError(f"{name!r} has {len(found)} different values that are not whole: name it in gaussian=[...]")
    if fractions:
        return
    cure = f"Give None or NaN for unknown, or name its states in cardinalities={{{name!r}: [...]}}"
    if column.array and -1 in found:  # integers are codes, of which -1 is none
        raise ValueError(f"the column {name!r} holds -1, which means unknown in arrays of integers only. {cure}")
    refuse_ignored(f"the column {name!r}", np.array(found, dtype=np.float64), cure)


def _sorted(values: list[Any]) -> list[Any]:
    try:
        return sorted(values)
    except TypeError:
        return sorted(values, key=str)


def _odd_one(name: Name, states: list[Any], found: list[Any], where: IntArray) -> str:
    """A sentence about a number that looks like a code for unknown: -1, or one of nines far from the others."""
    if len(states) < 3:
        return ""
    for code, rest in ((states[0], states[1:]), (states[-1], states[:-1])):
        away = min(abs(code - rest[0]), abs(code - rest[-1])) > FAR * max(1, rest[-1] - rest[0])
        nines = isinstance(code, int) and set(str(abs(code))) == {"9"} and abs(code) > 9
        if (code == -1 and rest[0] == 0) or (away and (nines or code < 0)):
            what = f"a code for unknown ({int(np.sum(where == found.index(code)))} rows)"
            return f"column {name!r} has {len(states)} states, one of them {code}, which looks like {what}"
    return ""


def numbers_of(name: Name, column: Column) -> FloatArray:
    """Values of a Gaussian variable, NaN where unknown."""
    known = ~column.unknown
    values = column.values[known]
    out = np.full(len(column.values), np.nan)
    kinds = {values.dtype.kind} if values.dtype.kind != "O" else {kind_of(type(value)) for value in values.tolist()}
    if len(values) and not kinds <= {"i", "u", "f", "b", "numbers", "truth values"}:
        shown = next((v for v in values.tolist() if kind_of(type(v)) not in ("numbers", "truth values")), values[0])
        row = int(np.flatnonzero(known)[values.tolist().index(shown)])
        raise ValueError(f"{name!r} is Gaussian and must hold numbers, but row {row} has {shown!r}")
    out[known] = values.astype(np.float64)
    if np.isinf(out).any():
        raise ValueError(f"{name!r} must hold finite numbers, got {out[np.isinf(out)][0]}")
    return out
