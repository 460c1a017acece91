"""Bayesian networks as users describe them, and tables of data with unknown values."""

from __future__ import annotations

import numbers
import os
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays.names import listed
from ...core.errors import DataWarning
from ...core.memory import product
from ...core.results import FloatArray, IntArray
from ...core.validation import is_whole
from ...core.warn import warn
from ...estimators.states import doubtful_states, warn_states
from ..bif import read_bif
from ..structure.bayes_net import BayesNet, find_cycle
from ..structure.discrete_network import DiscreteNetwork
from .column_states import StateNames, check_labels, has_codes, numbers_of, shown_states, state_codes
from .tables import Column, Name, Table, write_table

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
    if is_whole(value):
        if value < 1:
            raise ValueError(f"{what}[{name!r}] must be at least 1, got {value}")
        if int(value) > MOST_ENTRIES:
            raise ValueError(f"{what}[{name!r}] must be at most {MOST_ENTRIES}, got {value}")
        return int(value)
    several = isinstance(value, Sequence | np.ndarray) and not isinstance(value, str)
    if not several or not len(value):
        raise ValueError(f"{what}[{name!r}] must be a number of states or a list of different ones, got {value!r}")
    return check_labels(f"{what}[{name!r}]", list(value))


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
        self.nodes: list[Name] = nodes
        self.parents: dict[Name, tuple[Name, ...]] = parents
        self.states: dict[Name, list[Any]] = states
        self.hidden: tuple[Name, ...] = tuple(hidden)
        self.discrete: list[Name] = [name for name in nodes if name in states]
        self.gaussian: list[Name] = [name for name in nodes if name not in states]
        self.number: dict[Name, int] = {name: v for v, name in enumerate(self.discrete)}
        for name in nodes:
            entries = product(len(states[each]) for each in (*parents[name], name) if each in states)
            if entries > MOST_ENTRIES:
                raise ValueError(
                    f"the distributions of {name!r} given {len(parents[name])} parents have {entries} entries, more than "
                    f"{MOST_ENTRIES}: give it fewer parents, or variables fewer states"
                )
        self.net: BayesNet = BayesNet(
            [len(states[name]) for name in self.discrete],
            [tuple(self.number[parent] for parent in parents[name]) for name in self.discrete],
            [tuple(self.number[parent] for parent in parents[name]) for name in self.gaussian],
        )

    @classmethod
    def learn(cls, description: Description, table: Table) -> NetworkLayout:
        """Take the states that are not given from the data, and warn of numbers of states that may not be meant."""
        columns = _find_columns(table, description.nodes, description.hidden)
        states: dict[Name, list[Any]] = {}
        doubts: list[tuple[str, str]] = []
        spins = not any(map(has_codes, columns.values()))
        for name in description.nodes:
            if name in description.gaussian:
                continue
            given = description.states.get(name)
            if isinstance(given, int):
                states[name] = list(range(given))
            elif given is not None:
                states[name] = given
            else:
                states[name], odd = shown_states(name, columns[name], spins)
                doubts.append(_doubt(name, columns[name], states[name], odd))
        cures = ", ".join(dict.fromkeys(cure for _, cure in doubts if cure))
        meant = "cardinalities={name: [states]} says that they are meant"
        warn_states([why for why, _ in doubts], f"If they are not meant, {cures}; {meant}")
        return cls(description.nodes, description.parents, states, description.hidden)

    def read(
        self,
        table: Table,
        order: Sequence[Name | None] | None = None,
        fitted: bool = True,
        known: Container[Name] = (),
    ) -> tuple[IntArray, FloatArray]:
        """Numbers of states, -1 where unknown, (rows, discrete variables), and values of Gaussian variables, NaN there.

        Parameters
        ----------
        table : Table
        order : list of names, optional
            What the columns are if they have no names; None for one that is to be ignored.
        fitted : bool
            Whether variables that are absent are unknown, as after a fit, or an error.
        known : names
            Columns that no word needs to be said about if the network does not have them.
        """
        columns = _find_columns(table, self.nodes, self.hidden, order, fitted, known)
        states = np.full((table.n_rows, len(self.discrete)), -1, np.int64)
        for v, name in enumerate(self.discrete):
            if name in columns:
                states[:, v] = state_codes(name, columns[name], self.states[name])
        values = np.full((table.n_rows, len(self.gaussian)), np.nan)
        for j, name in enumerate(self.gaussian):
            if name in columns:
                values[:, j] = numbers_of(name, columns[name])
        return states, values

    def write(self, states: IntArray, values: FloatArray, kind: str, like: Any = None, first: Sequence[Name] = ()) -> Any:
        """States and values of all variables, hidden ones too, as a table of a kind; some columns first."""
        columns: dict[Name, Any] = {}
        for name in dict.fromkeys([*(name for name in first if name in self.parents), *self.nodes]):
            if name in self.number:
                labels: Any = self.states[name]
                if kind == "numbers":
                    labels = _as_numbers(labels)
                columns[name] = _labels(labels)[states[:, self.number[name]]]
            else:
                columns[name] = values[:, self.gaussian.index(name)]
        return write_table(kind, columns, like)


def _doubt(name: Name, column: Column, states: list[Any], odd: str) -> tuple[str, str]:
    """A sentence about a number of states that may not be meant, and what to do about it; empty if all is well."""
    if odd:
        return odd, "replace codes for unknown by None or NaN"
    if column.categories is None:
        why = doubtful_states(name, len(states), states, "values")
        return why, "name quantities in gaussian=[...] or put them into groups" if why else ""
    seen = set(column.values[~column.unknown].tolist())
    why = doubtful_states(name, len(states), [state for state in states if state in seen], "categories")
    return why, "drop unused categories, by cat.remove_unused_categories() in pandas" if why else ""


def _as_numbers(labels: list[Any]) -> Any:
    """Labels in an array of numbers, as `StateNames` reads them; as they are if some are no numbers."""
    names = StateNames(labels)
    codes = {code: number for number, code in names.numbers.items()}
    return [codes[code] for code in range(len(labels))] if names.kind == "text" and len(codes) == len(labels) else labels


def _labels(labels: Any) -> Any:
    """Labels as an array that keeps them as they are."""
    kinds = {type(label) for label in labels}
    if (len(kinds) == 1 and kinds <= {int, float, bool, str}) or kinds == {int, float}:
        return np.array(labels)
    out = np.empty(len(labels), dtype=object)
    out[:] = labels
    return out


def _find_columns(
    table: Table,
    nodes: Sequence[Name],
    hidden: Sequence[Name],
    order: Sequence[Name | None] | None = None,
    fitted: bool = False,
    known: Container[Name] = (),
) -> dict[Name, Column]:
    """The columns of a table by name. Those of hidden variables may be absent, and after a fit any but all."""
    if table.n_rows == 0:
        raise ValueError("the data must have at least one row, got none")
    names = table.names
    if names is None or (
        names and names == list(range(len(names))) and not set(names) & set(nodes)
    ):  # pandas has named them itself
        return {name: table.read(j) for j, name in enumerate(_positions(table, nodes, hidden, order)) if name is not None}
    found = set(names)
    absent = [name for name in nodes if name not in found and (fitted or name not in hidden)]
    if len(absent) == len(nodes):
        raise ValueError(
            f"no column of the data is a variable of the network: they are {listed(names)}, it has {listed(nodes)}"
        )
    if absent and not fitted:
        extra = [name for name in names if name not in nodes]
        raise ValueError(
            f"the data have no column {listed(absent)}: add it (with None or NaN where unknown), or name it in hidden with "
            f"its number of states, as hidden={{{absent[0]!r}: 2}}"
            + (f". There are columns that the network does not have: {listed(extra)}" if extra else "")
        )
    place = {name: j for j, name in enumerate(names)}
    _warn_extra([name for name in names if name not in nodes and name not in known])
    return {name: table.read(place[name]) for name in nodes if name in place}


def _warn_extra(extra: list[Name]) -> None:
    if extra:
        what = "a column" if len(extra) == 1 else f"{len(extra)} columns"
        told = f"the data have {what} that the network does not have, ignored: {listed(extra)}"
        warn(told, DataWarning)


def _positions(
    table: Table, nodes: Sequence[Name], hidden: Sequence[Name], order: Sequence[Name | None] | None
) -> Sequence[Name | None]:
    """The variables of columns without names."""
    if order is not None:
        if table.n_columns != len(order):
            shown = ", ".join("(ignored)" if name is None else str(name) for name in order)
            raise ValueError(
                f"the data have no names and {table.n_columns} columns; the network was fitted to a frame of {len(order)}, "
                f"in this order: {shown}. Give these, or a data frame"
            )
        return order
    needed = [name for name in nodes if name not in hidden]
    if table.n_columns not in (len(needed), len(nodes)):
        raise ValueError(
            f"the data must be a data frame or an array with at least one row and a column for each of {len(needed)} "
            f"observed variables ({', '.join(map(str, needed))}), or of all {len(nodes)}; got shape "
            f"({table.n_rows}, {table.n_columns})"
        )
    return needed if table.n_columns == len(needed) else list(nodes)
