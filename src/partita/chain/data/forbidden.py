"""Labels that may not follow each other, or not stand first or last."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

import numpy as np

from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray
from ...core.warn import warn
from ...estimators.labels import Labels
from ..structure.chain import Chain
from ..structure.forbidden import Forbidden

#: The name of a scheme of chunks ("iob2", "iobes"), or pairs of labels that may not follow each other.
Rules: TypeAlias = str | Collection[tuple[Any, Any]] | None
#: Prefixes that continue a chunk, that leave it open, for each scheme by name.
RULES = {"iob2": ({"I"}, set()), "iobes": ({"I", "E"}, {"B", "I"})}


def check_forbidden(forbidden: Rules) -> None:
    """Raise a ValueError unless it is None, the name of a rule, or pairs of labels."""
    if forbidden is None:
        return
    if isinstance(forbidden, str):
        if forbidden not in RULES:
            raise ValueError(f"forbidden must be pairs of labels or one of 'iob2', 'iobes'; got {forbidden!r}")
        return
    if isinstance(forbidden, Iterator):
        raise ValueError("forbidden must be a list of pairs of labels; got an iterator, which can be read only once")
    try:
        bad: list[Any] = [
            pair for pair in forbidden if isinstance(pair, str) or len(pair) != 2 or not all(map(_is_label, pair))
        ]
    except TypeError:
        bad = [forbidden]
    if bad:
        raise ValueError(f"forbidden must be pairs of labels or one of 'iob2', 'iobes'; got {bad[0]!r}")


def _is_label(value: Any) -> bool:
    return isinstance(value, str | bool | np.bool_ | numbers.Integral)


def forbidden_tables(forbidden: Rules, classes: LabelArray) -> Forbidden:
    """What the rules forbid among the classes."""
    check_forbidden(forbidden)
    if forbidden is None:
        return Forbidden()
    labels = classes.tolist()
    if isinstance(forbidden, str):
        return _rule(forbidden, labels)
    table = np.zeros((len(labels), len(labels)), bool)
    codes = {label: code for code, label in enumerate(labels)}
    for first, second in np.asarray(forbidden, dtype=object).tolist():
        unknown = [label for label in (first, second) if label not in codes]
        if unknown:
            warn(f"forbidden names {unknown[0]!r}, which is not a label of the training data")
        else:
            table[codes[first], codes[second]] = True
    return Forbidden(table if table.any() else None)


def _rule(name: str, labels: list[Any]) -> Forbidden:
    if not all(isinstance(label, str) for label in labels):
        raise ValueError(f"forbidden={name!r} needs labels that are strings such as 'B-PER'; got {labels[0]!r}")
    inside, leaves_open = RULES[name]
    parts = [label.partition("-")[::2] for label in labels]
    goes_on = np.array([prefix in inside for prefix, _ in parts])
    opens = np.array([prefix in (leaves_open or {"B", "I"}) for prefix, _ in parts])
    kinds = np.array([kind for _, kind in parts])
    fits = opens[:, None] & (kinds[:, None] == kinds)
    table = goes_on & ~fits
    if leaves_open:
        table |= opens[:, None] & ~goes_on
    return Forbidden(table, goes_on, opens if leaves_open else None)


def check_possible(labels: Labels, offsets: IntArray, forbidden: Forbidden, where: Callable[[int], str]) -> None:
    """Raise a ValueError that names the first position where the labels break a rule; `where` is the name of a position."""
    if forbidden.nothing:
        return
    table, starts, ends = forbidden
    y, names = labels.codes, labels.classes.tolist()
    full = np.unique(offsets)  # without empty sequences
    first = full[:-1]
    for rule, rows, side in ((starts, first, "first"), (ends, full[1:] - 1, "last")):
        if rule is not None:
            known = rows[y[rows] >= 0]
            bad = known[rule[y[known]]]
            if len(bad):
                raise ValueError(f"forbidden: {names[y[bad[0]]]!r} stands {side}, at {where(int(bad[0]))}")
    if table is not None:
        inner = np.ones(len(y), bool)
        inner[first] = False
        here = np.flatnonzero(inner)
        here = here[(y[here] >= 0) & (y[here - 1] >= 0)]
        bad = here[table[y[here - 1], y[here]]]
        if len(bad):
            pair = f"{names[y[bad[0] - 1]]!r} is followed by {names[y[bad[0]]]!r}"
            raise ValueError(f"forbidden: {pair} at {where(int(bad[0]))}")
    if labels.sets is not None:
        n = len(names)
        unary = mask_scores(np.zeros((len(y), n)), labels)
        pairwise = np.zeros((n, n))
        forbidden.mask(unary, pairwise, full)
        # Finite penalties instead of -inf: the best score then tells which sequence is impossible.
        best = Chain(n, np.diff(full)).argmax((np.maximum(unary, -1.0), np.maximum(pairwise, -1.0)))[1]
        if best.min() < 0.0:
            begin = where(int(first[np.argmin(best)]))
            raise ValueError(f"forbidden: the sets of labels allow no labelling of the sequence that begins at {begin}")


def mask_scores(unary: FloatArray, labels: Labels) -> FloatArray:
    """A copy of the scores with -inf for labels other than those that are known or allowed."""
    allowed = np.zeros(unary.shape, bool)
    known = np.flatnonzero(labels.codes >= 0)
    allowed[known, labels.codes[known]] = True
    if labels.sets is not None:
        hidden = np.flatnonzero(labels.codes < 0)
        allowed[hidden] = labels.sets[-1 - labels.codes[hidden]]
    return np.where(allowed, unary, -np.inf)
