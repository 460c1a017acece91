"""Bayesian networks as users describe them, and tables of data with unknown values."""

from __future__ import annotations

import math
import numbers
import os
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.results import FloatArray, IntArray
from ..io import DiscreteNetwork, read_bif
from ..structures.bayes_net import BayesNet, find_cycle
from .data import class_codes

Name = Hashable
#: Most entries of the distributions of one variable.
MOST_ENTRIES = 10**8


@dataclass(frozen=True)
class Description:
    """Names and parents of variables, and the states of those that are given.

    `states` has a list of labels, or a number of states 0, 1, ...; variables whose states are what the data show are not in
    it.
    """

    nodes: list[Name]
    parents: dict[Name, tuple[Name, ...]]
    states: dict[Name, int | list[Any]]
    hidden: tuple[Name, ...]
    gaussian: tuple[Name, ...]

    @property
    def observed(self) -> list[Name]:
        """Variables that are not hidden."""
        return [name for name in self.nodes if name not in self.hidden]


def describe(edges: Any, cardinalities: Any, hidden: Any, gaussian: Any) -> Description:
    """Check and read what a `BayesianNetwork` was given."""
    parents, states = _read_edges(edges)
    loop = find_cycle(parents)
    if loop:
        raise ValueError(f"edges must have no cycle, got {' -> '.join(map(str, loop))}")
    for what, names in (("cardinalities", cardinalities or {}), ("hidden", hidden or {}), ("gaussian", gaussian or ())):
        if isinstance(names, str) or not isinstance(names, Mapping | Sequence | set):
            raise ValueError(f"{what} must be a dict or a list of names, got {names!r}")
        for name in names:
            parents.setdefault(name, ())
    for what, given in (("cardinalities", cardinalities or {}), ("hidden", hidden or {})):
        if isinstance(given, Mapping):
            states |= {name: _states(what, name, value) for name, value in given.items()}
    unseen, leaves = tuple(hidden or ()), tuple(gaussian or ())
    for name in unseen:
        if name in leaves:
            raise ValueError(f"{name!r} is Gaussian and hidden: only variables with finitely many states can be hidden")
        if name not in states:
            raise ValueError(f"hidden variable {name!r} needs a number of states: hidden={{{name!r}: 2}}")
        if not parents[name] and all(name not in of for of in parents.values()):
            raise ValueError(f"hidden variable {name!r} has no neighbour: nothing can be learned about it")
    for name, of in parents.items():
        for parent in of:
            if parent in leaves:
                raise ValueError(f"{parent!r} is Gaussian, so that it must be a leaf, but it is a parent of {name!r}")
        if name in leaves and name in states:
            raise ValueError(f"{name!r} is Gaussian and has no number of states")
    nodes = list(parents)
    if not nodes:
        raise ValueError("edges must hold at least one pair (parent, child), got none")
    if all(isinstance(name, numbers.Integral) for name in nodes):
        nodes = sorted(nodes)  # type: ignore[type-var]
    return Description(nodes, parents, states, unseen, leaves)


def _read_edges(edges: Any) -> tuple[dict[Name, tuple[Name, ...]], dict[Name, Any]]:
    if isinstance(edges, str | os.PathLike):
        edges = read_bif(edges)
    if isinstance(edges, DiscreteNetwork):
        states: dict[Name, Any] = {name: list(of) for name, of in zip(edges.variables, edges.states, strict=True)}
        return dict(zip(edges.variables, edges.parents, strict=True)), states
    if hasattr(edges, "edges") and hasattr(edges, "nodes"):  # networkx
        if not edges.is_directed():
            raise ValueError("edges must be a directed graph, got an undirected one")
        parents: dict[Name, tuple[Name, ...]] = dict.fromkeys(edges.nodes, ())
        edges = list(edges.edges)
    else:
        parents = {}
    try:
        pairs = [tuple(pair) for pair in edges]
    except TypeError:
        pairs = [()]
    if any(len(pair) != 2 for pair in pairs) or any(isinstance(pair, str) for pair in edges):
        raise ValueError("edges must be pairs (parent, child), a BIF file, a DiscreteNetwork or a networkx graph")
    for parent, child in pairs:
        for name in (parent, child):
            if not isinstance(name, str | numbers.Integral):
                raise ValueError(f"names of variables must be strings or integers, got {name!r}")
        if parent in parents.get(child, ()):
            raise ValueError(f"edges has ({parent!r}, {child!r}) twice")
        parents.setdefault(parent, ())
        parents[child] = (*parents.get(child, ()), parent)
    return parents, {}


def _states(what: str, name: Name, value: Any) -> int | list[Any]:
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        if value < 1:
            raise ValueError(f"{what}[{name!r}] must be at least 1, got {value}")
        return int(value)
    listed = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    if not listed or not len(value) or len(set(value)) < len(value):
        raise ValueError(f"{what}[{name!r}] must be a number of states or a list of different ones, got {value!r}")
    return [item.item() if isinstance(item, np.generic) else item for item in value]


class NetworkLayout:
    """A network whose states are all known: what turns tables of data into numbers, and back.

    Parameters
    ----------
    nodes : list of names
    parents : dict
    states : dict
        The labels of the states of every variable that is not Gaussian.
    hidden : tuple of names
    """

    def __init__(
        self, nodes: list[Name], parents: dict[Name, tuple[Name, ...]], states: dict[Name, list[Any]], hidden: Sequence[Name]
    ) -> None:
        self.nodes, self.parents, self.states, self.hidden = nodes, parents, states, tuple(hidden)
        self.discrete = [name for name in nodes if name in states]
        self.gaussian = [name for name in nodes if name not in states]
        self.number = {name: v for v, name in enumerate(self.discrete)}
        for name in nodes:
            entries = math.prod(len(states[each]) for each in (*parents[name], name) if each in states)
            if entries > MOST_ENTRIES:
                raise ValueError(
                    f"the distributions of {name!r} given {len(parents[name])} parents have {entries} entries, more than "
                    f"{MOST_ENTRIES}: give it fewer parents, or variables fewer states"
                )
        self.net = BayesNet(
            [len(states[name]) for name in self.discrete],
            [tuple(self.number[parent] for parent in parents[name]) for name in self.discrete],
            [tuple(self.number[parent] for parent in parents[name]) for name in self.gaussian],
        )

    @classmethod
    def learn(cls, description: Description, X: Any) -> NetworkLayout:
        """Take the states that are not given from the data."""
        columns = read_table(X, description.nodes, description.hidden)
        states: dict[Name, list[Any]] = {}
        for name in description.nodes:
            if name in description.gaussian:
                continue
            given = description.states.get(name)
            if isinstance(given, int):
                states[name] = list(range(given))
            else:
                states[name] = _seen(name, columns[name]) if given is None else given
        return cls(description.nodes, description.parents, states, description.hidden)

    def read(self, X: Any) -> tuple[IntArray, FloatArray]:
        """Numbers of states, -1 where unknown, (rows, discrete variables), and values of Gaussian variables, NaN there."""
        columns = read_table(X, self.nodes, self.hidden)
        n = max(len(column.values) for column in columns.values())
        states = np.full((n, len(self.discrete)), -1, np.int64)
        for v, name in enumerate(self.discrete):
            if name in columns:
                states[:, v] = columns[name].codes(name, self.states[name])
        values = np.full((n, len(self.gaussian)), np.nan)
        for j, name in enumerate(self.gaussian):
            values[:, j] = columns[name].numbers(name)
        return states, values

    def write(self, states: IntArray, values: FloatArray, like: Any) -> Any:
        """States and values as a table like the one that was given: all variables, hidden ones too."""
        columns: dict[Name, Any] = {}
        frame = hasattr(like, "columns")
        plain = not frame and np.asarray(like).dtype.kind in "iufb"
        for name in self.nodes:
            if name in self.number:
                labels: Any = self.states[name]
                if plain and not all(isinstance(label, numbers.Real) for label in labels):
                    whole = all(isinstance(label, str) and label.lstrip("-").isdecimal() for label in labels)
                    labels = [int(label) for label in labels] if whole else range(len(labels))  # as `Column.codes` reads
                columns[name] = _labels(labels)[states[:, self.number[name]]]
            else:
                columns[name] = values[:, self.gaussian.index(name)]
        if frame:
            if set(like.columns) <= set(columns):  # keep its order, and put what is new last
                columns = {name: columns[name] for name in [*like.columns, *(n for n in columns if n not in like.columns)]}
            return type(like)(columns, **({"index": like.index} if hasattr(like, "index") else {}))
        kinds = {column.dtype.kind for column in columns.values()}
        if kinds <= set("iufb"):
            return np.column_stack(list(columns.values()))
        return np.column_stack([column.astype(object) for column in columns.values()])


def _labels(labels: Any) -> Any:
    """Labels as an array that keeps them as they are."""
    kinds = {type(label) for label in labels}
    if len(kinds) == 1 and kinds <= {int, float, bool, str}:
        return np.array(labels)
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out


@dataclass(frozen=True)
class Column:
    """Values of one variable, where there is none, and the labels of a categorical column.

    `stateless` is where there is no state: in arrays -1 is none, but it is a number.
    """

    values: Any
    unknown: Any
    categories: list[Any] | None = None
    stateless: Any = None

    def known(self, name: Name) -> IntArray:
        """Rows that have a state."""
        rows = np.flatnonzero(~(self.unknown if self.stateless is None else self.stateless))
        if self.values.dtype.kind == "f" and np.isinf(self.values[rows]).any():
            raise ValueError(f"{name!r} has an infinite value, which is no state")
        return rows

    def codes(self, name: Name, labels: list[Any]) -> IntArray:
        """The number of the state of every row, -1 where unknown. Numbers stand for states that no number names."""
        lookup = {label: code for code, label in enumerate(labels)}
        out = np.full(len(self.values), -1, np.int64)
        known = self.known(name)
        if not len(known):
            return out
        found, where = _unique(self.values[known])
        if not any(isinstance(label, numbers.Real) for label in labels):
            if all(str(value) in lookup for value in found):  # a file has "1" where data have 1
                found = [str(value) for value in found]
            else:
                lookup |= {code: code for code in range(len(labels))}
        codes = np.array([lookup.get(value, -2) for value in found])
        if (codes == -2).any():
            value = found[int(np.argmin(codes))]
            row = int(known[np.argmax(codes[where] == -2)])
            shown = ", ".join(map(repr, labels[:10])) + (", …" if len(labels) > 10 else "")
            raise ValueError(f"row {row} has {value!r} for {name!r}, which is none of its states: {shown}")
        out[known] = codes[where]
        return out

    def numbers(self, name: Name) -> FloatArray:
        """Values of a Gaussian variable, NaN where unknown."""
        out = np.full(len(self.values), np.nan)
        try:
            out[~self.unknown] = np.asarray(self.values[~self.unknown], dtype=np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"{name!r} is Gaussian and must hold numbers") from None
        if np.isinf(out).any():
            raise ValueError(f"{name!r} must hold finite numbers, got {out[np.isinf(out)][0]}")
        return out


def _unique(values: Any) -> tuple[list[Any], IntArray]:
    """Different values as Python objects, and which of them each is. Whole floats are integers."""
    if values.dtype.kind == "f" and (np.abs(values) < 2**53).all() and not np.mod(values, 1.0).any():
        values = values.astype(np.int64)
    if values.dtype.kind in "iufbU":
        found, where = class_codes(values)
        plain = found.tolist()
        if values.dtype.kind == "f":
            plain = [int(value) if value.is_integer() else value for value in plain]
        return plain, where.ravel()
    first: dict[Any, int] = {}
    where = np.array([first.setdefault(value, len(first)) for value in values.tolist()])
    return list(first), where


def _seen(name: Name, column: Column) -> list[Any]:
    """The states that a column shows."""
    if column.categories is not None:
        return column.categories
    found, _ = _unique(column.values[column.known(name)])
    if not found:
        raise ValueError(f"{name!r} has no known value: say how many states it has, hidden={{{name!r}: 2}}")
    if len(found) > 20 and any(isinstance(value, float) for value in found):
        raise ValueError(f"{name!r} has {len(found)} different values that are not whole: name it in gaussian=[...]")
    try:
        return sorted(found)
    except TypeError:
        return sorted(found, key=lambda value: (type(value).__name__, str(value)))


def read_table(X: Any, nodes: Sequence[Name], hidden: Sequence[Name]) -> dict[Name, Column]:
    """The columns of a data frame or a matrix by name; columns of hidden variables may be missing."""
    needed = [name for name in nodes if name not in hidden]
    if hasattr(X, "columns") and hasattr(X, "__getitem__"):
        names = list(X.columns)
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"the data have more than one column {twice!r}")
        extra = [name for name in names if name not in nodes]
        if extra:
            raise ValueError(f"the network has no variable {extra[0]!r}; it has {', '.join(map(str, nodes))}")
        lacking = [name for name in needed if name not in names]
        if lacking:
            raise ValueError(
                f"the data have no column {lacking[0]!r}: add it (with None or NaN where unknown), or name it in hidden"
            )
        if len(X) == 0:
            raise ValueError("the data must have at least one row, got none")
        return {name: _frame_column(X[name]) for name in names}
    table = np.asarray(X)
    if table.ndim != 2 or len(table) == 0 or table.shape[1] not in (len(needed), len(nodes)):
        raise ValueError(
            f"the data must be a data frame or an array with at least one row and a column for each of {len(needed)} "
            f"observed variables ({', '.join(map(str, needed))}), or of all {len(nodes)}; got shape {table.shape}"
        )
    names = needed if table.shape[1] == len(needed) else list(nodes)
    return {name: _array_column(table[:, j]) for j, name in enumerate(names)}


def _frame_column(column: Any) -> Column:
    unknown = np.asarray(column.isna()) if hasattr(column, "isna") else _unknown(np.asarray(column))
    categories = getattr(getattr(column, "dtype", None), "categories", None)
    if categories is not None:
        return Column(np.asarray(column, dtype=object), unknown, categories.tolist())
    values = column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)
    return Column(values, unknown)


def _array_column(values: Any) -> Column:
    unknown = _unknown(values)
    if values.dtype.kind in "iuf":
        return Column(values, unknown, stateless=unknown | (values == -1))
    elif values.dtype.kind == "O" and not unknown.all():
        known = values[~unknown]
        if all(isinstance(value, numbers.Real) for value in known):
            numeric = np.full(len(values), np.nan)
            numeric[~unknown] = known.astype(np.float64)
            return _array_column(numeric)
    return Column(values, unknown)


def _unknown(values: Any) -> Any:
    if values.dtype.kind == "f":
        return np.isnan(values)
    if values.dtype.kind in "mM":
        return np.isnat(values)
    if values.dtype.kind != "O":
        return np.zeros(len(values), bool)
    return np.array([value is None or _differs_from_itself(value) for value in values.tolist()], dtype=bool)


def _differs_from_itself(value: Any) -> bool:
    """Whether a value is NaN, or its like in pandas."""
    try:
        return bool(value != value)
    except TypeError:  # pandas.NA is neither equal nor different
        return True
