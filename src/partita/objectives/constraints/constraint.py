"""What constraints on weights share: comparison by value, a short text, and how they say which weights they are about."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Iterable
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar

import numpy as np

from .feasible_set import FeasibleSet
from .named import NamedWeights


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Constraint:
    """A convex set of weights; those that there are, such as `Box`, are in `sets`.

    Parameters
    ----------
    labels : list of labels, optional
        Only weights for these labels, by name (`classes` has positions).
    transitions : list of pairs of labels, optional
        Only the weights of these pairs: labels that follow each other in a chain, or stand at the ends of an edge.
    factors : list, optional
        Only the weights of these factors: tuples of variables of a `MarkovNetwork`, names of factors of a `GraphCRF`.
    """

    labels: Any = None
    transitions: Any = None
    factors: Any = None
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
                object.__setattr__(self, name, _places(name, getattr(self, name)))
        for name in ("labels", "transitions", "factors"):
            if getattr(self, name) is not None:
                object.__setattr__(self, name, _names(name, getattr(self, name)))
        chosen = [self.transitions, self.factors]
        inside = [self.labels, getattr(self, "classes", None), getattr(self, "features", None)]
        given = sum(choice is not None for choice in chosen)
        if given > 1 or (given and any(choice is not None for choice in inside)):
            raise ValueError("give either transitions, or factors, or features and labels (or classes)")
        if self.labels is not None and getattr(self, "classes", None) is not None:
            raise ValueError("give either labels, by name, or classes, by position")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(_same(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))  # type: ignore[arg-type]

    def __hash__(self) -> int:
        return hash(type(self))  # equal values may have different texts

    def __repr__(self) -> str:
        shown = [f for f in fields(self) if f.default is MISSING or not _same(getattr(self, f.name), f.default)]
        return f"{type(self).__name__}({', '.join(f'{f.name}={_short(getattr(self, f.name))}' for f in shown)})"

    def compile(self, weights: NamedWeights) -> FeasibleSet:
        """The set of flat vectors that satisfy it; `weights` says where which weight lies in them."""
        raise NotImplementedError


def _places(name: str, value: Any) -> tuple[Any, ...]:
    """Positions, or names of features."""
    items = [value] if isinstance(value, numbers.Integral | str) else list(value)
    named = name == "features" and all(isinstance(item, str | tuple) for item in items)
    if items and named:
        return tuple(items)
    items = list(np.asarray(items).tolist())
    if not items or not all(isinstance(item, int) and not isinstance(item, bool) for item in items):
        raise ValueError(
            f"{name} must be positions, integers counted from 0{' or names' if name == 'features' else ''}; got {value!r}"
        )
    return tuple(int(item) for item in items)


def _names(name: str, value: Any) -> tuple[Hashable, ...]:
    """Names as a tuple, lists within them as tuples."""
    if isinstance(value, str) or not isinstance(value, Iterable) or not len(items := list(value)):
        raise ValueError(f"{name} must be a list of names, got {value!r}")
    plain = [item.item() if isinstance(item, np.generic) else item for item in items]
    return tuple(tuple(item) if isinstance(item, list | np.ndarray) else item for item in plain)


def _same(a: Any, b: Any) -> bool:
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.shape(a) == np.shape(b) and bool(np.array_equal(np.asarray(a), np.asarray(b)))
    return bool(a == b)


def _short(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return repr(value.tolist()) if value.size <= 6 else f"<{' x '.join(map(str, value.shape))} array>"
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
