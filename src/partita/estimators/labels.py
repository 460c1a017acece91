"""Labels, as users give them, as integers."""

from __future__ import annotations

import itertools
import numbers
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..core.arrays.columns import Columns
from ..core.arrays.names import is_hashable
from ..core.arrays.unknown import is_unknown, refuse_ignored, refuse_spins
from ..core.results import FloatArray, IntArray

#: The code of a position about which nothing is known. Lower codes are sets of labels.
UNKNOWN = -1

NOTHING = "y holds no label at all; at least one must be known"
#: Types of labels that need no second look.
USUAL = frozenset({str, int, bool, np.str_, type(None)})
#: What to write for a label that is not known, and for a negative number that is a label.
CURE = "Write None where a label is not known; if it is a label like the others, give it another name, such as a string"


@dataclass(frozen=True)
class Labels:
    """Labels of stacked positions as integers.

    Attributes
    ----------
    classes : array
        The different labels, sorted: strings, integers or booleans.
    codes : array of int64
        ``classes[code]`` for a known label. A code below zero means that only a set is known: row ``-1 - code`` of `sets`.
        -1 is reserved for positions about which nothing is known.
    sets : array of bool of shape (k, n_labels), or None
        The labels that each set allows; the first row allows all. None if every label is known.
    """

    classes: Any
    codes: IntArray
    sets: Any = None

    def check(self, count: int) -> None:
        """Raise a ValueError unless these can be labels of `count` positions: kernels look them up by code."""
        classes, codes, sets = np.asarray(self.classes), np.asarray(self.codes), self.sets
        if classes.ndim != 1 or classes.dtype.kind not in "UOiub" or len(set(classes.tolist())) < len(classes):
            raise ValueError("classes of labels must be different strings, integers or booleans")
        if sets is not None and (sets.dtype != np.bool_ or sets.ndim != 2 or sets.shape[1] != len(classes)):
            raise ValueError(f"sets of labels must be bool with a column for each of {len(classes)} classes")
        if codes.shape != (count,) or codes.dtype != np.int64:
            raise ValueError(f"codes of labels must be {count} of int64, got shape {codes.shape} of {codes.dtype}")
        lowest = 0 if sets is None else -len(sets)
        low, high = int(codes.min(initial=0)), int(codes.max(initial=0))
        if low < lowest or (count and high >= len(classes)):
            wrong = low if low < lowest else high
            raise ValueError(f"codes of labels must be from {lowest} to {len(classes) - 1}, got {wrong}")

    def take(self, rows: Any) -> Labels:
        """Labels of some positions."""
        return replace(self, codes=self.codes[rows])

    def compact(self) -> Labels:
        """Without classes that occur nowhere, and without sets if there are none left."""
        n = len(self.classes)
        seen = np.bincount(self.codes[self.codes >= 0], minlength=n) > 0
        hidden = self.codes[self.codes < 0]
        sets = self.sets if len(hidden) else None
        if sets is not None and (hidden < UNKNOWN).any():
            seen |= sets[np.unique(-1 - hidden[hidden < UNKNOWN])].any(axis=0)
        if not seen.any():
            raise ValueError(NOTHING)
        if (
            len(hidden) == len(self.codes)
            and np.count_nonzero(seen) > 1
            and self.sets[np.unique(-1 - hidden)][:, seen].all()
        ):
            raise ValueError("y tells nothing: all labels are possible everywhere; at least one must be known better")
        if seen.all():
            return replace(self, sets=sets)
        codes = np.where(self.codes >= 0, (np.cumsum(seen) - 1)[self.codes], self.codes)
        return Labels(self.classes[seen], codes, None if sets is None else sets[:, seen])

    def lists(self, offsets: IntArray) -> list[list[Any]]:
        """A list per sequence: labels, None, or frozensets of labels."""
        return split(self.values().tolist(), offsets)

    def values(self) -> Any:
        labels = self.classes.tolist()
        rows = [] if self.sets is None else self.sets.tolist()
        table = [None, *(frozenset(itertools.compress(labels, row)) for row in rows[1:])]
        lookup = np.empty(len(labels) + len(rows), object)
        lookup[: len(labels)] = labels
        if rows:
            lookup[len(labels) :] = table[::-1]  # codes below zero count from the end
        return lookup[self.codes]

    def allowed(self) -> Any:
        """An array of bool of shape (positions, n_labels): the labels that each position may have."""
        table = np.eye(len(self.classes), dtype=bool)
        if self.sets is not None:
            table = np.vstack([table, self.sets[::-1]])  # codes below zero count from the end
        return table[self.codes]

    def share_right(self, found: Sequence[Any], weights: FloatArray) -> float:
        """The weighted share of the labels `found` that agree with these: equal, or in the set; None does not count."""
        true = self.values().tolist()
        known = np.array([label is not None for label in true], dtype=bool) & (weights > 0.0)
        if not known.any():
            raise ValueError("y holds no label at all, and a score needs one")
        right = [
            best in label if isinstance(label, frozenset) else best == label
            for label, best in zip(itertools.compress(true, known), itertools.compress(found, known), strict=True)
        ]
        return float(np.average(right, weights=weights[known]))


def encode_labels(y: Any, offsets: IntArray, classes: Any = None, more: bool = False) -> Labels:
    """Labels as codes.

    Parameters
    ----------
    y : list of lists of labels, or one list for all positions
        A label may be a string, an integer, None, NaN or ``pd.NA`` (unknown), or a set of labels one of which is right.
        -1 and -100 are refused: some mean a label by them, others an unknown one.
    offsets : array of int64
        Where the sequences of X begin and end.
    classes : array, optional
        Sorted labels that may occur. Default: those that do.
    more : bool
        Whether there may be others besides the `classes`; they are added.
    """
    return encode_flat(_flat_labels(y, offsets), lambda t: position_of(t, offsets), classes, more)


def encode_flat(flat: list[Any], where: Callable[[int], str], classes: Any = None, more: bool = False) -> Labels:
    """As `encode_labels`, of one list; `where` tells the place of an entry, for messages."""
    try:
        distinct = set(flat)
    except TypeError:
        flat = [frozenset(value) if isinstance(value, set) else value for value in flat]
        try:
            distinct = set(flat)
        except TypeError:
            raise _label_error(flat, where, lambda value: not is_hashable(value)) from None
    if any(type(value) not in USUAL for value in distinct):
        flat, distinct = _usual(flat)
    sets = [value for value in distinct if isinstance(value, frozenset)]
    single = {value for value in distinct if value is not None and not isinstance(value, frozenset)}
    labels = single.union(*sets)
    check_label_text(labels)
    check_label_numbers(labels if classes is None else labels.difference(classes.tolist()))
    known: set[Any] = labels.union(classes.tolist()) if more and classes is not None else labels
    kinds = {_kind(value) for value in known}
    if None in kinds:
        bad = {value for value in labels if _kind(value) is None}
        raise _label_error(flat, where, lambda value: value in bad or (isinstance(value, frozenset) and value & bad))
    if len(kinds) > 1:
        raise ValueError(f"y must hold labels of one type; got {' and '.join(sorted(map(str, kinds)))}")
    if frozenset() in distinct:
        place = where(flat.index(frozenset()))
        raise ValueError(f"y allows no label at {place}: a set of labels must not be empty (None stands for any)")
    sets.sort(key=sorted)
    if classes is None or more:
        if not known:
            raise ValueError(NOTHING)
        classes = np.array(sorted(known))
    codes: dict[Any, int] = {label: code for code, label in enumerate(classes.tolist())}
    unknown = labels - codes.keys()
    if unknown:
        wrong = min(unknown)
        at = next(t for t, v in enumerate(flat) if v == wrong or (isinstance(v, frozenset) and wrong in v))
        raise ValueError(f"y holds {wrong!r} at {where(at)}, which is not among the classes {classes.tolist()}")
    table = None
    if sets or None in distinct:
        table = np.ones((1 + len(sets), len(classes)), bool)
        for row, allowed in enumerate(sets, 1):
            table[row] = [label in allowed for label in codes]
        codes |= {value: -1 - row for row, value in enumerate([None, *sets])}  # type: ignore[dict-item]
    return Labels(classes, np.fromiter(map(codes.__getitem__, flat), np.int64, len(flat)), table)


def column_labels(columns: Columns, label: int) -> Labels:
    """The labels in a column of a file."""
    c = columns.index(label)
    order = np.argsort(columns.vocabularies[c])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Labels(columns.vocabularies[c][order].astype(str), rank[columns.codes[:, c]])


def _flat_labels(y: Any, offsets: IntArray) -> list[Any]:
    lengths = np.diff(offsets)
    if isinstance(y, str | bytes | dict | set) or not hasattr(y, "__len__"):
        raise ValueError(f"y must be a list with one list of labels per sequence, got {type(y).__name__}")
    rows = list(y)
    if len(rows) == offsets[-1] and not any(map(_is_row, rows)):
        return rows
    if len(rows) != len(lengths):
        raise ValueError(f"X and y must have as many sequences; got {len(lengths)} and {len(rows)}")
    for i, row in enumerate(rows):
        if not _is_row(row):
            raise ValueError(f"y must be a list with one list of labels per sequence; sequence {i} of y is {row!r}")
        if len(row) != lengths[i]:
            raise ValueError(f"sequence {i} has {lengths[i]} positions in X but {len(row)} labels in y")
    return list(itertools.chain.from_iterable(rows))


def _is_row(row: Any) -> bool:
    return hasattr(row, "__len__") and not isinstance(row, str | bytes | dict | set | frozenset)


def check_label_text(labels: Any) -> None:
    """Raise a ValueError for labels that would lose their end in NumPy's strings, which drop NUL characters there."""
    bad = [label for label in labels if isinstance(label, str) and label.endswith("\0")]
    if bad:
        raise ValueError(f"labels must not end with a NUL character, got {min(bad)!r}")


def check_label_numbers(labels: Iterable[Any]) -> None:
    """Raise a ValueError for -1 and -100 among integer labels.

    To some -1 is a label, to others one that is not known, and -100 is what other libraries ignore. In a list or in an
    array, nothing tells which is meant, so neither is taken.
    """
    within: list[int] = [int(label) for label in labels if _kind(label) == "integers" and abs(label) < 2**62]
    if not within or min(within) >= 0:
        return
    refuse_ignored("y", within, CURE)
    refuse_spins("y", within, "Give (y + 1) // 2, or strings")
    if -1 in within:
        raise ValueError(f"y holds -1 among integers, which is a label to some and an unknown one to others. {CURE}")


def _usual(flat: list[Any]) -> tuple[list[Any], set[Any]]:
    """Labels with None for what stands for unknown, and integers for whole floats (what missing ones make of integers)."""

    def usual(value: Any) -> Any:
        if isinstance(value, frozenset):
            return frozenset(map(usual, value))
        value = value.as_py() if hasattr(value, "as_py") else value  # an entry of an array of pyarrow
        if is_unknown(value):
            return None
        if isinstance(value, float | np.floating) and abs(float(value)) < 2**53 and float(value).is_integer():
            return int(value)
        return value

    flat = [value if type(value) in USUAL else usual(value) for value in flat]
    return flat, set(flat)


def _kind(value: Any) -> str | None:
    if isinstance(value, str):
        return "strings"
    if isinstance(value, bool | np.bool_):
        return "booleans"
    return "integers" if isinstance(value, numbers.Integral) else None


def position_of(t: int, offsets: IntArray, numbers: Any = None) -> str:
    i = int(np.searchsorted(offsets, t, side="right")) - 1
    return f"position {t - offsets[i]} of sequence {i if numbers is None else numbers[i]}"


def _label_error(flat: list[Any], where: Callable[[int], str], bad: Any) -> ValueError:
    t = next(t for t, value in enumerate(flat) if bad(value))
    hint = "; decode bytes to strings, as with y.astype(str)" if isinstance(flat[t], bytes) else ""
    return ValueError(
        f"labels must be strings or integers, None for unknown, or a set of labels; got {flat[t]!r} at {where(t)}{hint}"
    )


def split(flat: Any, offsets: IntArray) -> list[Any]:
    """A flat list or array cut into sequences."""
    return [flat[lo:hi] for lo, hi in itertools.pairwise(offsets.tolist())]
