"""What each parameter of a chain model means, so that weights can go from one training set to another."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from .attribute_index import AttributeIndex
from .chain import ChainFeatures


@dataclass(frozen=True)
class ChainLayout:
    """Parameters in order: weights of attributes, of transitions, of starts and of ends.

    Attributes
    ----------
    classes : array
        The labels, sorted.
    names : list of str or None
        Names of the attributes; None if they only have numbers.
    n_attributes : int
    state : array of int of shape (k, 2)
        The pairs (attribute, label) that have a weight.
    transitions : array of int of shape (m, 2)
        The pairs of labels that have a weight.
    start_end : bool
        Whether labels have weights for standing first and last.
    intercept : bool
        Whether the last attribute is the constant one. It is not among the names.
    """

    classes: Any
    names: list[str] | None
    n_attributes: int
    state: IntArray
    transitions: IntArray
    start_end: bool
    intercept: bool = False

    @classmethod
    def of(cls, features: ChainFeatures, classes: Any, names: list[str] | None, intercept: bool = False) -> ChainLayout:
        state = np.column_stack([features.attribute, features.label]).astype(np.int64)
        return cls(classes, names, features.n_attributes, state, features.transitions, features.starts, intercept)

    @property
    def n_columns(self) -> int:
        """Number of attributes, without the constant."""
        return self.n_attributes - self.intercept

    @property
    def n_labels(self) -> int:
        return len(self.classes)

    @cached_property
    def sizes(self) -> tuple[int, int, int, int]:
        """Numbers of weights of attributes, transitions, starts and ends."""
        ends = self.n_labels * self.start_end
        return len(self.state), len(self.transitions), ends, ends

    @property
    def size(self) -> int:
        return sum(self.sizes)

    def parts(self, values: Any) -> tuple[Any, Any, Any, Any]:
        """Views of the values of attributes, transitions, starts and ends."""
        a, b, c, _ = np.cumsum(self.sizes)
        return values[:a], values[a:b], values[b:c], values[c:]

    def fits(self, values: FloatArray) -> bool:
        """Whether values could be parameters of this layout, and its numbers are within their limits."""
        pairs = ((self.state, (self.n_attributes, self.n_labels)), (self.transitions, (self.n_labels, self.n_labels)))
        inside = all(
            index.ndim == 2 and index.shape[1] == 2 and index.min(initial=0) >= 0 and (index < limits).all()
            for index, limits in pairs
        )
        named = self.names is None or len(self.names) == self.n_columns
        return inside and named and values.shape == (self.size,) and values.dtype == np.float64

    def feature(self, attribute: int) -> Any:
        """The name of an attribute, or its number."""
        return self.features[attribute]

    @cached_property
    def features(self) -> list[Any]:
        """Names of all attributes, or their numbers; the constant is called "intercept", unless a column is."""
        names: list[Any] = list(range(self.n_columns)) if self.names is None else list(self.names)
        if self.intercept:
            names.append("intercept" if "intercept" not in names else "(intercept)")
        return names

    def dicts(self, values: FloatArray) -> tuple[dict[Any, float], ...]:
        """``{(attribute, label): value}``, ``{(from, to): value}``, ``{label: value}`` of starts and of ends."""
        labels = self.classes.tolist()
        state, transition, start, end = (part.tolist() for part in self.parts(values))
        names = self.features
        pairs = zip(self.state.tolist(), state, strict=True)
        moves = zip(self.transitions.tolist(), transition, strict=True)
        return (
            {(names[j], labels[k]): value for (j, k), value in pairs},
            {(labels[u], labels[v]): value for (u, v), value in moves},
            dict(zip(labels, start, strict=False)),
            dict(zip(labels, end, strict=False)),
        )

    def align(self, values: FloatArray, other: ChainLayout, fill: float = 0.0) -> FloatArray:
        """The values of the parameters that `other` has too, in its order; `fill` for the rest."""
        labels = _positions(other.classes, self.classes)
        n, m = self.n_labels, other.n_labels
        out = np.full(other.size, fill)
        for index, keys, own, new in (
            (self.state, other.state, self.parts(values)[0], other.parts(out)[0]),
            (self.transitions, other.transitions, self.parts(values)[1], other.parts(out)[1]),
        ):
            first = self._columns(other) if index is self.state else labels
            moved = np.column_stack([first[index[:, 0]], labels[index[:, 1]]])
            known = (moved >= 0).all(axis=1)
            source = moved[known] @ np.array([m, 1])
            order = np.argsort(source, kind="stable")
            source, target = source[order], keys @ np.array([m, 1])
            at = np.minimum(np.searchsorted(source, target), max(len(source) - 1, 0))
            found = source[at] == target if len(source) else np.zeros(len(target), bool)
            new[found] = own[known][order][at[found]]
        if self.start_end and other.start_end:
            for own, new in zip(self.parts(values)[2:], other.parts(out)[2:], strict=True):
                both = labels[:n] >= 0
                new[labels[both]] = own[both]
        return out

    def _columns(self, other: ChainLayout) -> IntArray:
        """Where each attribute is in another layout, -1 if nowhere."""
        if self.names is other.names or self.names is None or other.names is None:
            columns = np.arange(self.n_columns)
            columns[columns >= other.n_columns] = -1
        else:
            columns = AttributeIndex(other.names).find(self.names).astype(np.int64)
        return np.append(columns, other.n_columns if other.intercept else -1) if self.intercept else columns

    def needed(self, used: Any) -> Any:
        """Which weights a model keeps, of those that are `used`: of starts, ends and intercepts, all."""
        keep = np.array(used)
        keep[sum(self.sizes[:2]) :] = True
        keep[: len(self.state)] |= self.state[:, 0] >= self.n_columns
        return keep

    def restrict(self, keep: Any) -> ChainLayout:
        """Without some of the weights of attributes and transitions; `keep` has an entry for every parameter."""
        state, transitions, _, _ = self.parts(keep)
        return replace(self, state=self.state[state], transitions=self.transitions[transitions])

    def trim(self) -> ChainLayout:
        """Without the names of attributes that have no weight."""
        if self.names is None:
            return self
        used = np.zeros(self.n_attributes, bool)
        used[self.state[:, 0]] = True
        used[self.n_columns :] = True
        if used.all():
            return self
        names = [name for name, stays in zip(self.names, used.tolist(), strict=False) if stays]
        state = np.column_stack([(np.cumsum(used) - 1)[self.state[:, 0]], self.state[:, 1]])
        return replace(self, names=names, n_attributes=len(names) + self.intercept, state=state)

    def union(self, other: ChainLayout) -> ChainLayout:
        """All parameters of `self` that exist in the labels and attributes of `other`, and those of `other`."""
        labels, columns, m = _positions(other.classes, self.classes), self._columns(other), other.n_labels
        state = np.column_stack([columns[self.state[:, 0]], labels[self.state[:, 1]]])
        moves = labels[self.transitions]
        return replace(other, state=_merge(state, other.state, m), transitions=_merge(moves, other.transitions, m))


def _positions(classes: Any, wanted: Any) -> IntArray:
    """Where each wanted label is among sorted classes, -1 if nowhere."""
    if classes.dtype.kind != wanted.dtype.kind:
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(classes, wanted), len(classes) - 1)
    return np.where(classes[at] == wanted, at, -1)


def _merge(first: IntArray, second: IntArray, m: int) -> IntArray:
    """The different pairs of both, sorted; pairs with -1 are left out."""
    pairs = np.concatenate([first[(first >= 0).all(axis=1)], second])
    keys = np.unique(pairs @ np.array([m, 1]))
    return np.column_stack(np.divmod(keys, m))
