"""What a user knows about single weights of a chain: bounds, and weights that are equal."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from ...core.results import IntArray
from ...core.stored import stored
from ...core.validation import check_real
from ...objectives.constraints.constraint import Constraint
from ...objectives.constraints.feasibility import intersected
from ...objectives.constraints.feasible_set import FeasibleSet, merged_groups
from ...objectives.constraints.named import TRANSITIONS, NamedWeights
from ..features.layout import ChainLayout


@stored
@dataclass(frozen=True)
class WeightBounds:
    """Bounds on weights of a `ChainCRF`.

    Parameters
    ----------
    lower, upper : float
        -inf and inf for no bound.
    attributes : list of attributes, optional
        Only weights of these attributes; of transitions, none.
    labels : list of labels, optional
        Only weights for these labels; of transitions, into them.
    transitions : list of pairs of labels, optional
        Only these transitions.

    Examples
    --------
    >>> from partita.constraints import WeightBounds
    >>> WeightBounds(lower=0.0, attributes=["word:street"], labels=["B-STREET"])
    WeightBounds(lower=0.0, upper=inf, attributes=('word:street',), labels=('B-STREET',), transitions=None)
    """

    lower: float = -np.inf
    upper: float = np.inf
    attributes: Sequence[Any] | None = None
    labels: Sequence[Any] | None = None
    transitions: Sequence[tuple[Any, Any]] | None = None

    def __post_init__(self) -> None:
        for name in ("attributes", "labels", "transitions"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        low, high = check_real("lower", self.lower, finite=False), check_real("upper", self.upper, finite=False)
        if not low <= high or low == np.inf or high == -np.inf:
            raise ValueError(f"lower must be at most upper, got {self.lower} and {self.upper}")
        if self.transitions is not None and (self.attributes is not None or self.labels is not None):
            raise ValueError("give either transitions, or attributes and labels")

    def where(self, layout: ChainLayout) -> IntArray:
        """Positions of the weights in the layout."""
        n_state = layout.sizes[0]
        if self.transitions is not None:
            return _transitions(layout, self.transitions, self)
        wanted = np.ones(layout.size, bool)
        if self.attributes is not None:
            wanted[n_state:] = False
            wanted[:n_state] &= np.isin(layout.state[:, 0], _attributes(layout, self.attributes, self))
        if self.labels is not None:
            codes = _labels(layout, self.labels, self)
            into = np.concatenate([layout.state[:, 1], layout.transitions[:, 1], *2 * [np.arange(layout.n_labels)]])
            wanted &= np.isin(into[: layout.size], codes)
        return np.flatnonzero(wanted)

    def feasible(self, layout: ChainLayout) -> FeasibleSet:
        """The weights that satisfy it."""
        whole, where = FeasibleSet.everything(layout.size), self.where(layout)
        whole.lower[where], whole.upper[where] = self.lower, self.upper
        return whole


@stored
@dataclass(frozen=True)
class WeightTies:
    """Weights of a `ChainCRF` that are equal, group by group.

    Parameters
    ----------
    state : list of groups, optional
        A group is a list of pairs (attribute, label).
    transitions : list of groups, optional
        A group is a list of pairs of labels.

    Examples
    --------
    >>> from partita.constraints import WeightTies
    >>> WeightTies(transitions=[[("B-X", "I-X"), ("B-Y", "I-Y")]])
    WeightTies(state=None, transitions=((('B-X', 'I-X'), ('B-Y', 'I-Y')),))
    """

    state: Sequence[Sequence[tuple[Any, Any]]] | None = None
    transitions: Sequence[Sequence[tuple[Any, Any]]] | None = None

    def __post_init__(self) -> None:
        for name in ("state", "transitions"):
            object.__setattr__(self, name, _frozen(getattr(self, name)))
        if not self.state and not self.transitions:
            raise ValueError("WeightTies needs a group of state weights or of transitions")

    def feasible(self, layout: ChainLayout) -> FeasibleSet:
        """The weights that satisfy it."""
        whole = FeasibleSet.everything(layout.size)
        return FeasibleSet(whole.lower, whole.upper, ties=tuple(merged_groups(self.groups(layout))))

    def groups(self, layout: ChainLayout) -> list[IntArray]:
        """Positions of the weights of each group."""
        found = [_transitions(layout, group, self) for group in self.transitions or ()]
        for group in self.state or ():
            attributes = _attributes(layout, [attribute for attribute, _ in group], self)
            labels = _labels(layout, [label for _, label in group], self)
            found.append(_rows(layout.state, np.column_stack([attributes, labels]), group, self))
        return found


#: What a chain may be constrained by.
AnyConstraint: TypeAlias = WeightBounds | WeightTies | Constraint


def _frozen(value: Any) -> Any:
    """Lists and arrays as tuples, all the way down."""
    if isinstance(value, np.ndarray):
        value = value.tolist()
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def check_weight_constraints(constraints: Any) -> list[AnyConstraint]:
    """A list of constraints on weights; None is none."""
    if constraints is None:
        return []
    items = list(constraints) if isinstance(constraints, Iterable) else [constraints]
    for item in items:
        if not isinstance(item, WeightBounds | WeightTies | Constraint):
            raise ValueError(f"constraints of a chain must be WeightBounds, WeightTies or sets such as Box, got {item!r}")
    return items


def weight_set(constraints: Sequence[AnyConstraint], layout: ChainLayout) -> FeasibleSet | None:
    """The set of weights that satisfy all constraints; None without any."""
    if not constraints:
        return None
    named = named_weights(layout)
    parts = [item.compile(named) if isinstance(item, Constraint) else item.feasible(layout) for item in constraints]
    return intersected(constraints, parts, layout.size)


def named_weights(layout: ChainLayout) -> NamedWeights:
    """The weights of a chain by name. Intercepts are in no constraint that does not name them."""
    attribute, label = layout.state.T
    inner = attribute < layout.n_columns
    entries = np.stack([label, attribute, np.arange(len(label))])[:, inner]
    classes, first = layout.classes.tolist(), layout.sizes[0]
    pairs: dict[Any, list[int]] = {}
    for k, (a, b) in enumerate(layout.transitions.tolist()):
        pairs.setdefault((classes[a], classes[b]), []).append(first + k)
        if isinstance(classes[a], tuple):  # states (label, h): also by their labels
            pairs.setdefault((classes[a][0], classes[b][0]), []).append(first + k)
    return NamedWeights(
        layout.size,
        (layout.n_labels, layout.n_columns),
        entries,
        labels=classes,
        features=layout.names,
        groups={TRANSITIONS: pairs},
        whole=np.concatenate([np.flatnonzero(inner), np.arange(first, layout.size)]),
    )


def _attributes(layout: ChainLayout, names: Any, owner: Any) -> IntArray:
    known = {name: j for j, name in enumerate(layout.names if layout.names is not None else range(layout.n_attributes))}
    return _codes(known, names, "an attribute", owner)


def _labels(layout: ChainLayout, names: Any, owner: Any) -> IntArray:
    return _codes({label: k for k, label in enumerate(layout.classes.tolist())}, names, "a label", owner)


def _codes(known: dict[Any, int], names: Any, what: str, owner: Any) -> IntArray:
    missing = [name for name in names if name not in known]
    if missing:
        raise ValueError(f"{owner!r} names {missing[0]!r}, which is not {what} of the training data")
    return np.array([known[name] for name in names], dtype=np.int64)


def _transitions(layout: ChainLayout, pairs: Any, owner: Any) -> IntArray:
    codes = np.column_stack([_labels(layout, [pair[side] for pair in pairs], owner) for side in (0, 1)])
    return layout.sizes[0] + _rows(layout.transitions, codes, pairs, owner)


def _rows(table: IntArray, wanted: IntArray, names: Any, owner: Any) -> IntArray:
    """Where rows of two columns stand in a table."""
    place = {tuple(row): i for i, row in enumerate(table.tolist())}
    missing = [name for row, name in zip(wanted.tolist(), names, strict=True) if tuple(row) not in place]
    if missing:
        raise ValueError(f"{owner!r} names {missing[0]!r}, which has no weight in the model (see features and transitions)")
    return np.array([place[tuple(row)] for row in wanted.tolist()], dtype=np.int64)
