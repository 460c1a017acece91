"""What constraints on the coefficients share: comparison by value, a short text, the selection of a part of ``coef_``."""

from __future__ import annotations

import numbers
from dataclasses import MISSING, fields
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from .feasible_set import FeasibleSet


class Constraint:
    """A convex set of coefficients; those that there are, such as `Box`, are in `sets`."""

    _arrays: ClassVar[tuple[str, ...]] = ()

    def _freeze(self) -> None:
        """Turn array arguments into read-only float arrays (scalars stay scalars), selections into tuples."""
        for name in self._arrays:
            value = getattr(self, name)
            if value is not None and not isinstance(value, numbers.Real):
                try:
                    array = np.array(value, dtype=np.float64)
                except (TypeError, ValueError):
                    raise ValueError(f"{name} must be a number or an array of numbers, got {value!r}") from None
                array.flags.writeable = False
                object.__setattr__(self, name, array)
            if value is not None and np.isnan(getattr(self, name)).any():
                raise ValueError(f"{name} must not contain NaN")
        for name in ("classes", "features"):
            if getattr(self, name, None) is not None:
                object.__setattr__(self, name, _positions(name, getattr(self, name)))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(type(self))  # equal values may have different texts

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if f.default is MISSING or not _same(getattr(self, f.name), f.default)]  # type: ignore[arg-type]
        return f"{type(self).__name__}({', '.join(f'{f.name}={_short(getattr(self, f.name))}' for f in shown)})"

    def _part(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Positions in the flat vector of the selected part of ``coef_``."""
        rows, columns = positions.shape
        classes = _within(self, "classes", getattr(self, "classes", None), rows)
        features = _within(self, "features", getattr(self, "features", None), columns)
        return np.asarray(positions[np.ix_(classes, features)])

    def compile(self, positions: NDArray[np.int64], size: int) -> FeasibleSet:
        """The set of flat vectors of length `size` that satisfy it; `positions` is where ``coef_`` lies in them."""
        raise NotImplementedError


def _positions(name: str, value: Any) -> tuple[int, ...]:
    items = [value] if isinstance(value, numbers.Integral) else list(np.asarray(value).tolist())
    if not items or not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        raise ValueError(f"{name} must be positions, integers counted from 0; got {value!r}")
    return tuple(int(item) for item in items)


def _within(owner: Any, name: str, value: tuple[int, ...] | None, count: int) -> Any:
    if value is None:
        return np.arange(count)
    if min(value) < 0 or max(value) >= count or len(set(value)) < len(value):
        raise ValueError(f"{name} of {owner!r} must be distinct positions from 0 to {count - 1}; got {value}")
    return np.array(value)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.array_equal(np.asarray(a), np.asarray(b)))
    return bool(a == b)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 6 else f"<{' x '.join(map(str, value.shape))} array>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
