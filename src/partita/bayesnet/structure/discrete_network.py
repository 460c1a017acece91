"""Bayesian networks of discrete variables, by name: states, parents and tables."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...core.stored import stored
from ...graph import FactorGraph
from .bayes_net import find_cycle

#: How far the sum of a distribution may be from one.
FAR_SUM = 1e-2
SUM_CURE = "if these are weights, divide them by their sum"
#: Text that is a number.
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


@stored
@dataclass(frozen=True, eq=False)
class DiscreteNetwork:
    """A Bayesian network of variables with finitely many states, by name.

    Attributes
    ----------
    variables : tuple of str
        In the order of the file, which is that of the factor graph.
    states : tuple of tuples of str
        The states of every variable.
    parents : tuple of tuples of str
        The parents of every variable, by name.
    tables : tuple of arrays
        The distribution of every variable: one axis for each parent, in order, and the last for the variable.
    name : str
        Of the network.
    """

    variables: tuple[str, ...]
    states: tuple[tuple[str, ...], ...]
    parents: tuple[tuple[str, ...], ...]
    tables: tuple[FloatArray, ...]
    name: str = "unknown"

    def __post_init__(self) -> None:
        for what in ("variables", "states", "parents", "tables"):
            object.__setattr__(self, what, _entries(what, getattr(self, what)))
        n = len(self.variables)
        if not n or len(set(self.variables)) < n:
            raise ValueError("variables must be different names, at least one")
        for what, values in (("states", self.states), ("parents", self.parents), ("tables", self.tables)):
            if len(values) != n:
                raise ValueError(f"{what} must have an entry for each of {n} variables, got {len(values)}")
        for name, states, parents, table in zip(self.variables, self.states, self.parents, self.tables, strict=True):
            if not states or len(set(states)) < len(states):
                raise ValueError(f"the states of {name} must be different names, at least one; got {shown_names(states)}")
            if name in parents or len(set(parents)) < len(parents) or not set(parents) <= set(self.variables):
                raise ValueError(f"the parents of {name} must be different other variables, got {parents}")
            shape = tuple(len(self.states[self.index[parent]]) for parent in (*parents, name))
            if table.shape != shape:
                raise ValueError(f"the table of {name} must have shape {shape}, got {table.shape}")
            if not (table >= 0.0).all() or not np.isfinite(table).all():
                raise ValueError(f"the table of {name} must hold finite probabilities")
        loop = find_cycle(dict(zip(self.variables, self.parents, strict=True)))
        if loop:
            raise ValueError(f"the network must have no cycle, got {' -> '.join(loop)}")
        for name, table in zip(self.variables, self.tables, strict=True):
            wrong = far_sum(table)
            if wrong is not None:
                raise ValueError(f"the table of {name} must sum to one along its last axis, got {wrong[1]:.9g}; {SUM_CURE}")

    @cached_property
    def index(self) -> dict[str, int]:
        """The number of every variable."""
        return {name: v for v, name in enumerate(self.variables)}

    def factor_graph(self, *, normalize: bool = True, n_jobs: int | None = None) -> tuple[FactorGraph, FloatArray]:
        """The graph, with factor v over the parents of variable v and then v itself, and its potentials.

        Files round: ``0.3333333`` three times. `normalize` divides every distribution by its sum, so that log Z is 0 without
        evidence and the log-probability of the evidence with it; False takes the tables as they are.
        """
        scopes = [(*(self.index[parent] for parent in parents), v) for v, parents in enumerate(self.parents)]
        graph = FactorGraph(np.array([len(states) for states in self.states]), scopes, n_jobs=n_jobs)
        tables = [table / table.sum(-1, keepdims=True) if normalize else table for table in self.tables]
        with np.errstate(divide="ignore"):
            return graph, np.log(np.concatenate([np.ravel(table) for table in tables]))

    def evidence(self, observed: Mapping[str | int, str | int]) -> dict[int, int]:
        """Evidence as `FactorGraph.condition` takes it, from names.

        Where no name is a number, numbers count variables, or states, from 0; else numbers are names as well: where states
        are "1" and "2", 1 is the first of them, and 0 is none.
        """
        if not isinstance(observed, Mapping):
            raise ValueError(f"observed must be a dict of variables and their states, got {type(observed).__name__}")
        known: dict[int, int] = {}
        for name, state in observed.items():
            v = _named(name, self.variables, "the network has no variable")
            s = _named(state, self.states[v], f"variable {self.variables[v]} has no state")
            if known.setdefault(v, s) != s:
                raise ValueError(f"variable {self.variables[v]} is observed in two states")
        return known


def _entries(what: str, values: Any) -> tuple[Any, ...]:
    """An attribute of a network: names, tuples of names, or tables."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"{what} must be a tuple with an entry for each variable, got {values!r}")
    if what == "variables":
        return _strings("variables", values)
    if what != "tables":
        return tuple(_strings(what, each) for each in values)
    found = []
    for table in values:
        array = np.asarray(table)
        if array.dtype.kind not in "iufb":
            raise ValueError(f"tables must hold numbers, got an array of {array.dtype}")
        found.append(array.astype(np.float64))
    return tuple(found)


def _strings(what: str, names: Any) -> tuple[str, ...]:
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise ValueError(f"{what} must be tuples of names, got {names!r}")
    found = tuple(names)
    wrong = next((name for name in found if not isinstance(name, str)), None)
    if wrong is not None or None in found:
        raise ValueError(f"names in {what} must be strings, got {wrong!r}")
    return found


def far_sum(table: FloatArray) -> tuple[int, float] | None:
    """The distribution of a table, by number, that is furthest from summing to one, and its sum, if that is far."""
    sums = np.ravel(row_sums(table))
    worst = int(np.abs(sums - 1.0).argmax())
    return None if abs(sums[worst] - 1.0) <= FAR_SUM else (worst, float(sums[worst]))


def row_sums(table: FloatArray) -> FloatArray:
    """Sums of the distributions of a table; inf where they are too large."""
    with np.errstate(over="ignore"):
        return np.asarray(table.sum(-1))


def _named(name: str | int, names: tuple[str, ...], complaint: str) -> int:
    text = str(int(name)) if isinstance(name, float | np.floating) and name == name // 1 else str(name)
    if text in names:
        return names.index(text)
    counted = not any(map(NUMBER.fullmatch, names))
    if counted and text.isascii() and text.isdigit() and int(text) < len(names):
        return int(text)
    raise ValueError(f"{complaint} {text!r}; there are {shown_names(names)}")


def shown_names(names: Iterable[str]) -> str:
    """Names in a message: the first ten."""
    listed = list(names)
    return ", ".join(listed[:10]) + (", …" if len(listed) > 10 else "")
