"""Names and labels: the first few of many for a message, those that are there twice, and what can be one."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import Any


def listed(names: Sequence[Any], most: int = 6) -> str:
    """Names for a message, the first few of many."""
    shown = ", ".join(repr(name) for name in names[:most])
    return shown if len(names) <= most else f"{shown}, ... ({len(names)} in all)"


def is_hashable(value: Any) -> bool:
    """Whether a value can be looked up, all that it holds included."""
    try:
        hash(value)
    except TypeError:
        return False
    return True


def repeated(names: Sequence[Hashable]) -> list[Hashable]:
    """Names that occur more than once."""
    if len(set(names)) == len(names):
        return []
    return [name for name, count in Counter(names).items() if count > 1]
