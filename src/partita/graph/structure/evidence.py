"""What known states leave of a factor graph: the factors that are settled, and a smaller graph of the rest."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.potentials import whole_array
from ...core.results import FloatArray, IntArray
from .factor_graph import FactorGraph
from .kbest import k_best_configurations
from .scopes import Scopes
from .tables import indicator

#: Numbers that are worked on at a time.
CELLS = 2_000_000


class Evidence:
    """A factor graph given the states of some of its variables, for many rows of such states at once.

    Parameters
    ----------
    graph : FactorGraph
    states : int array of shape (n_rows, n_variables) or (n_variables,)
        States; -1 where they are not known, ``-2 - k`` where they are in row k of `sets`.
    sets : bool array of shape (n_sets, most states), optional
        Sets of states that a variable may be in. A row may be longer than a variable has states.

    Attributes
    ----------
    rest : FactorGraph or None
        The unknown variables of all rows as one graph, an example for each row and example of `graph` that has any. Known
        variables are gone from the factors. None if everything is known.
    index : int array
        Potentials of `rest` are ``potentials[index]``. Of variables in a set, it has the states of the set only.
    rest_rows, rest_examples : int arrays
        The row, and the example of `graph`, of every example of `rest`.
    variable_rows, variables : int arrays
        The row, and the variable of `graph`, of every variable of `rest`.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import FactorGraph
    >>> from partita.graph.structure.evidence import Evidence
    >>> evidence = Evidence(FactorGraph([2, 3], [(0,), (0, 1)]), [[1, -1], [1, 2]])
    >>> evidence.index
    array([5, 6, 7])
    >>> evidence.settled(np.arange(8.0)).ravel()
    array([1., 8.])
    """

    variable_rows: IntArray
    variables: IntArray
    rest_rows: IntArray
    rest_examples: IntArray

    def __init__(self, graph: FactorGraph, states: ArrayLike, sets: NDArray[np.bool_] | None = None) -> None:
        self.graph = graph
        self.states: IntArray = check_states(graph, states, sets=sets)
        self.sets = sets
        self._lists = _allowed_states(graph, sets)
        self.n_rows: int = len(self.states)
        unknown = self.states < 0
        self.variable_rows, self.variables = (part.astype(np.int64) for part in np.nonzero(unknown))
        number = np.full(self.states.shape, -1, np.int64)
        number[unknown] = np.arange(len(self.variables))
        self._groups = graph.by_arity
        scopes, index = [], []
        partial = np.flatnonzero(unknown.any(1))
        for factors, scope, counts, strides in self._groups:
            place, mask = self._places(partial, factors, scope, strides)
            row, f = np.nonzero(mask)
            free = (mask[row, f][:, None] >> np.arange(scope.shape[1])) & 1
            kinds = np.where(free > 0, np.maximum(-1 - self.states[partial[row][:, None], scope[f]], 0), -1)
            cases, case_of = np.unique(np.hstack([np.where(free > 0, counts[f], 0), kinds]), axis=0, return_inverse=True)
            for s, case in enumerate(cases):
                shape, kind = np.split(case, 2)
                axes = np.flatnonzero(shape)
                cells = np.flatnonzero(case_of.ravel() == s)
                allowed = [self._list(kind[a], shape[a]) for a in axes]
                digits = np.array(np.meshgrid(*allowed, indexing="ij")).reshape(len(axes), -1)
                r, k = row[cells], f[cells]
                index.append((place[r, k][:, None] + strides[k][:, axes] @ digits).ravel())
                scopes.append(number[partial[r][:, None], scope[k][:, axes]])
        self.index: NDArray[Any] = np.concatenate([np.zeros(0, np.int64), *index])
        owners, examples = np.unique(
            self.variable_rows * graph.n_examples + graph.examples[self.variables], return_inverse=True
        )
        self.rest_rows, self.rest_examples = owners // graph.n_examples, owners % graph.n_examples
        self.rest: FactorGraph | None = None
        if len(self.variables):
            counts = graph.cardinalities[self.variables]
            if len(self._lists) > 1:
                kinds = -1 - self.states[unknown]
                counts = np.array([len(self._list(*pair)) for pair in zip(kinds.tolist(), counts.tolist(), strict=True)])
            self.rest = FactorGraph(counts, scopes, examples=examples.ravel(), n_jobs=graph.n_jobs)

    def _list(self, kind: int, count: int) -> IntArray:
        """The states that a variable of `count` states may be in: all, or those of a set."""
        return np.arange(count) if kind == 0 else self._lists[kind]

    def _places(self, rows: Any, factors: IntArray, scope: IntArray, strides: IntArray) -> tuple[IntArray, IntArray]:
        """For rows and factors, the entry (as if unknown states were 0), and bits that say which variables are unknown."""
        states = self.states[rows]
        place = self.graph.offsets[factors] + (np.maximum(states, 0)[:, scope] * strides).sum(2)
        return place, ((states < 0)[:, scope] << np.arange(scope.shape[1])).sum(2)

    def _cells(self) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Row, factor and entry of what is settled, some rows at a time: all at once may be more than memory holds."""
        for factors, scope, _, strides in self._groups:
            step = max(1, CELLS // max(1, scope.size))
            for lo in range(0, self.n_rows, step):
                place, mask = self._places(slice(lo, lo + step), factors, scope, strides)
                row, f = np.nonzero(mask == 0)
                yield lo + row, factors[f], place[row, f]

    @cached_property
    def settled_cells(self) -> tuple[IntArray, IntArray, IntArray]:
        """For each row and each factor without unknown variables: row, factor, and the entry that is picked."""
        parts = [np.zeros((3, 0), np.int64), *(np.array(cells) for cells in self._cells())]
        row, factor, entry = np.concatenate(parts, axis=1)
        return row, factor, entry

    def counts(self, weights: FloatArray) -> FloatArray:
        """How often each entry is picked; `weights` are those of (rows, examples)."""
        owner, out = self.graph.factor_examples, np.zeros(self.graph.size)
        for row, factor, entry in self._cells():
            out += np.bincount(entry, weights=weights[row, owner[factor]], minlength=len(out))
        return out

    def settled(self, potentials: FloatArray) -> FloatArray:
        """Sums of the picked entries, (rows, examples)."""
        n = self.graph.n_examples
        owner, out = self.graph.factor_examples, np.zeros(self.n_rows * n)
        for row, factor, entry in self._cells():
            out += np.bincount(row * n + owner[factor], weights=potentials[entry], minlength=len(out))
        return out.reshape(self.n_rows, n)

    def log_weights(self, potentials: FloatArray, engine: str = "auto", **options: Any) -> FloatArray:
        """log of the sum over all configurations that agree with what is known, (rows, examples)."""
        sums = self.settled(potentials)
        if self.rest is not None:
            log_z = self.rest.log_partition(potentials[self.index], engine, **options)
            sums[self.rest_rows, self.rest_examples] += log_z
        return sums

    def filled(self, rest_states: IntArray | None) -> IntArray:
        """The states, with those of `rest` where they were unknown."""
        states = self.states.copy()
        if rest_states is not None:
            found = np.array(rest_states, dtype=np.int64)
            kinds = -1 - states[self.variable_rows, self.variables]
            for kind in np.unique(kinds[kinds > 0]).tolist():
                found[kinds == kind] = self._lists[kind][found[kinds == kind]]
            states[self.variable_rows, self.variables] = found
        return states

    def k_best(self, potentials: FloatArray, k: int, **options: Any) -> tuple[IntArray, FloatArray]:
        """At most k configurations that agree with one row of states, and their scores, best first."""
        settled = float(self.settled(potentials).sum())
        if self.rest is None:
            return self.states[:1].copy(), np.array([settled])
        whole = FactorGraph(
            self.rest.cardinalities, Scopes(self.rest.scope_offsets, self.rest.members), n_jobs=self.graph.n_jobs
        )
        found, scores = k_best_configurations(whole, potentials[self.index], k, **options)
        return np.array([self.filled(y)[0] for y in found]), scores + settled

    def variable_marginals(self, rest_marginals: FloatArray | None) -> list[FloatArray]:
        """For every variable, probabilities of its states in every row; known ones are certain."""
        out = [np.zeros((self.n_rows, k)) for k in self.graph.cardinalities.tolist()]
        for table, states in zip(out, self.states.T, strict=True):
            known = np.flatnonzero(states >= 0)
            table[known, states[known]] = 1.0
        if self.rest is not None and rest_marginals is not None:
            parts = zip(
                self.variable_rows.tolist(),
                self.variables.tolist(),
                self.rest.variable_marginals(rest_marginals),
                strict=True,
            )
            for row, v, p in parts:
                out[v][row, self._list(-1 - self.states[row, v], len(out[v][row]))] = p
        return out


def answered_point(graph: FactorGraph, y: ArrayLike) -> FloatArray:
    """The configuration that a solver answered with, checked, as a point."""
    states = check_states(graph, y, "it")
    if len(states) != 1 or (states < 0).any():
        raise ValueError(f"it must be one configuration, all of it known; got {states.shape[0]} rows")
    return indicator(graph, states[0])


def _allowed_states(graph: FactorGraph, sets: NDArray[np.bool_] | None) -> list[IntArray]:
    """The states of each set, after the list of a variable about which nothing is known, which is not used."""
    if sets is None:
        return [np.zeros(0, np.int64)]
    return [np.zeros(0, np.int64), *(np.flatnonzero(row).astype(np.int64) for row in sets)]


def check_states(
    graph: FactorGraph, states: ArrayLike, name: str = "states", sets: NDArray[np.bool_] | None = None
) -> IntArray:
    """States as a matrix of int64, -1 where unknown, ``-2 - k`` where they are in row k of `sets`."""
    shape = f"integers, one for each of {graph.n_variables} variables"
    found = np.atleast_2d(whole_array(name, states, shape))
    if found.ndim != 2 or found.shape[1] != graph.n_variables:
        raise ValueError(f"{name} must be {shape}; got {found.shape} of {found.dtype}")
    bad = (found < (-1 if sets is None else -1 - len(sets))) | (found >= graph.cardinalities)
    if bad.any():
        row, v = np.argwhere(bad)[0]
        raise ValueError(
            f"{name} has {found[row, v]} for variable {v} in row {row}; its states are 0 to {graph.cardinalities[v] - 1}"
            " (-1 for unknown)"
        )
    found = found.astype(np.int64)
    if sets is not None:
        first = np.where(sets.any(axis=1), sets.argmax(axis=1), sets.shape[1])
        last = np.where(sets.any(axis=1), sets.shape[1] - 1 - sets[:, ::-1].argmax(axis=1), sets.shape[1])
        row, v = np.nonzero(found < -1)
        kinds = -2 - found[row, v]
        if (first[kinds] == sets.shape[1]).any() or (last[kinds] >= graph.cardinalities[v]).any():
            raise ValueError(f"{name} has a set of states that is empty, or holds a state that its variable does not have")
    return found
