"""The weights of a model by name: what constraints refer to."""

from __future__ import annotations

import difflib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

#: What `NamedWeights.groups` calls its kinds, as constraints name them, and what one of a kind is called.
TRANSITIONS, FACTORS = "transitions", "factors"
SINGULAR = {"labels": "label", "features": "feature", TRANSITIONS: "transition", FACTORS: "factor"}
#: The most names that a message lists.
LISTED = 8


class Selection(Protocol):
    """What a constraint says about the weights that it is about; None for all."""

    @property
    def labels(self) -> Any: ...
    @property
    def transitions(self) -> Any: ...
    @property
    def factors(self) -> Any: ...


class HasColumns(Protocol):
    """A feature map with a weight for each output and column."""

    @property
    def size(self) -> int: ...
    @property
    def n_columns(self) -> int: ...
    def columns(self) -> Any:
        """The places of the weights of each output in the flat vector."""
        ...


@dataclass(frozen=True)
class NamedWeights:
    """Where which weight lies in a flat vector.

    Attributes
    ----------
    size : int
        Of the vector.
    shape : (int, int)
        How many labels and features there are.
    entries : int array of shape (3, weights)
        Label, feature and place of the weights of features for labels.
    labels, features : sequences
        Names of labels and features; None: they have none, only positions. A name may stand for several labels, and a label
        called (name, h) is one of those of the name too.
    groups : dict of dicts
        ``"transitions"`` by pairs of labels, ``"factors"`` by scope or name: places of their weights.
    whole : array, optional
        Places of the weights that a constraint is about which selects nothing. None: those of features for labels, as a
        matrix.
    """

    size: int
    shape: tuple[int, int]
    entries: NDArray[np.int64]
    labels: Sequence[Hashable] | None = None
    features: Sequence[Hashable] | None = None
    groups: Mapping[str, Mapping[Any, Any]] = field(default_factory=dict)
    whole: NDArray[np.int64] | None = None

    @staticmethod
    def of_table(size: int, table: NDArray[np.int64], **more: Any) -> NamedWeights:
        """Of a matrix of places, (labels, features)."""
        rows, columns = np.indices(table.shape)
        return NamedWeights(size, table.shape, np.stack([rows.ravel(), columns.ravel(), table.ravel()]), **more)

    @staticmethod
    def of_columns(linear: HasColumns, **more: Any) -> NamedWeights:
        """The coefficients of a map with a weight for each output and column."""
        return NamedWeights.of_table(linear.size, np.asarray(linear.columns())[:, : linear.n_columns], **more)

    @staticmethod
    def of_features(size: int, names: Sequence[Hashable] | None = None, **more: Any) -> NamedWeights:
        """A weight for each feature, and no labels."""
        return NamedWeights.of_table(size, np.arange(size)[None], features=names, whole=np.arange(size), **more)

    def part(self, owner: Selection) -> NDArray[np.int64]:
        """Places of the weights that a constraint selects, as a matrix; -1 where there is none."""
        for kind, names in ((TRANSITIONS, owner.transitions), (FACTORS, owner.factors)):
            if names is not None:
                return self._of_groups(kind, names, owner)
        classes, features = getattr(owner, "classes", None), getattr(owner, "features", None)
        if classes is None and features is None and owner.labels is None and self.whole is not None:
            return self._known(self.whole[None], owner)
        rows = self._rows(owner) if owner.labels is not None else self._within("classes", classes, 0, owner)
        return self._known(self._table(rows, self._columns(features, owner)), owner)

    def place(self, pair: tuple[Any, Any], owner: Any) -> int:
        """The place of the weight of a (class, feature), each by position or by name."""
        row = self._position(pair[0], self.labels, 0, "labels", owner)
        column = self._position(pair[1], self.features, 1, "features", owner)
        place = int(self._table(np.array([row]), np.array([column]))[0, 0])
        if place < 0:
            raise ValueError(f"{owner!r} names {pair!r}, which has no weight in the model")
        return place

    def _table(self, rows: NDArray[np.int64], columns: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places of some weights; -1 where there is none."""
        row, column = (np.full(count, -1) for count in self.shape)
        row[rows], column[columns] = np.arange(len(rows)), np.arange(len(columns))
        there = (row[self.entries[0]] >= 0) & (column[self.entries[1]] >= 0)
        table = np.full((len(rows), len(columns)), -1)
        table[row[self.entries[0, there]], column[self.entries[1, there]]] = self.entries[2, there]
        return table

    def _known(self, part: NDArray[np.int64], owner: Any) -> NDArray[np.int64]:
        """The places themselves, unless there is none."""
        if not (part >= 0).any():
            raise ValueError(f"{owner!r} selects nothing that has a weight in the model")
        return np.asarray(part)

    def _position(self, item: Any, names: Sequence[Hashable] | None, axis: int, kind: str, owner: Any) -> int:
        if isinstance(item, int) and not isinstance(item, bool):
            if not 0 <= item < self.shape[axis]:
                raise ValueError(f"groups of {owner!r} must lie within coef_, {self.shape[0]} x {self.shape[1]}")
            return item
        return int(_find(kind, item, {name: i for i, name in enumerate(names or ())}, owner))

    def _rows(self, owner: Selection) -> NDArray[np.int64]:
        """The labels that are named."""
        known: dict[Any, list[int]] = {}
        for i, name in enumerate(() if self.labels is None else self.labels):
            known.setdefault(name, []).append(i)
            if isinstance(name, tuple) and name:
                known.setdefault(name[0], []).append(i)
        return np.concatenate([np.array(_find("labels", label, known, owner)) for label in owner.labels])

    def _columns(self, features: Any, owner: Any) -> NDArray[np.int64]:
        if features is None or isinstance(features[0], int):
            return self._within("features", features, 1, owner)
        known = {name: j for j, name in enumerate(() if self.features is None else self.features)}
        return np.array([_find("features", name, known, owner) for name in features])

    def _within(self, name: str, value: tuple[int, ...] | None, axis: int, owner: Any) -> NDArray[np.int64]:
        count = self.shape[axis]
        if value is None:
            return np.arange(count)
        if min(value) < 0 or max(value) >= count or len(set(value)) < len(value):
            raise ValueError(f"{name} of {owner!r} must be distinct positions from 0 to {count - 1}; got {value}")
        return np.array(value)

    def _of_groups(self, kind: str, names: Any, owner: Any) -> NDArray[np.int64]:
        """A row for each factor if all have as many weights; else, and for single weights, one row."""
        known = self.groups.get(kind, {})
        if not known:
            raise ValueError(f"{owner!r} selects {kind}, but the weights of this model belong to none")
        places = [np.atleast_1d(_find(kind, name, known, owner)) for name in names]
        alike = len({len(place) for place in places}) == 1 and len(places[0]) > 1
        return self._known(np.stack(places) if alike else np.concatenate(places)[None], owner)


def _find(kind: str, name: Any, known: Mapping[Any, Any], owner: Any) -> Any:
    """What goes by a name; a ValueError lists names that are like it."""
    if name in known:
        return known[name]
    texts = {str(other): other for other in known}
    near = [repr(texts[text]) for text in difflib.get_close_matches(str(name), texts, LISTED)]
    some = [repr(other) for other in list(known)[:LISTED]]
    hint = f"near it are {', '.join(near)}" if near else f"there are {', '.join(some)}" if some else "there are no names"
    raise ValueError(f"{owner!r} names the {SINGULAR[kind]} {name!r}, which the model does not have; {hint}")
