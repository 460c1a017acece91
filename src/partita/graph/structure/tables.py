"""Tables over variables with finitely many states: how they lie in one vector, and what a configuration picks of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.potentials import are_potentials, not_potential, real_array, refusal, whole_array
from ...core.enumeration import configurations
from ...core.memory import check_memory
from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...core.validation import is_whole
from .scopes import flat_scopes

#: What to do about tables that do not fit.
TABLES = "Use factors of fewer variables or states"


class FactorTables:
    """What a `FactorGraph` knows without inference: variables, factors, potentials, configurations and their scores."""

    scope_offsets: IntArray
    members: IntArray

    def __init__(
        self,
        cardinalities: ArrayLike,
        factors: Iterable[Any],
        *,
        examples: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        counts = np.asarray(cardinalities)
        if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise ValueError("cardinalities must be a vector of integers >= 1, one per variable")
        states = counts.sum(dtype=np.float64)
        check_memory(f"a graph whose variables have {states:.4g} states", 8.0 * states, "Lower the cardinalities")
        self.cardinalities: IntArray = counts.astype(np.int64)
        self.n_variables: int = len(counts)
        self.scope_offsets, self.members = flat_scopes(factors)
        self.n_factors: int = len(self.scope_offsets) - 1
        self._check(
            lambda scope: (
                ((scope < 0) | (scope >= self.n_variables)).any(1) | (np.diff(np.sort(scope, 1), axis=1) == 0).any(1)
            ),
            f"must have different variables below {self.n_variables}",
        )
        sizes = self._table_sizes()
        self.offsets: IntArray = np.concatenate(([0], np.cumsum(sizes)))
        self.size: int = int(self.offsets[-1])
        numbering = "integers, the example of every variable, from 0 up in order"
        self.examples: IntArray = (
            np.zeros(self.n_variables, np.int64)
            if examples is None
            else whole_array("examples", examples, numbering).astype(np.int64)
        )
        steps = np.diff(self.examples)
        if self.examples.shape != (self.n_variables,) or self.examples[0] != 0 or not np.isin(steps, (0, 1)).all():
            raise ValueError("examples must number the example of every variable, from 0 up in order")
        self.n_examples: int = int(self.examples[-1]) + 1
        if self.n_examples > 1:
            self._check(
                lambda scope: np.ptp(self.examples[scope], axis=1) > 0 if scope.shape[1] else np.ones(len(scope), bool),
                "must have variables, and all of one example",
            )
        self.n_jobs = n_jobs
        self.workers: Workers = Workers(n_jobs)

    def _table_sizes(self) -> IntArray:
        """Numbers of entries, compared with the memory there is before they are counted in integers, which overflow."""
        sizes = np.ones(self.n_factors)
        for which, scope in self._rows():
            with np.errstate(over="ignore"):
                sizes[which] = self.cardinalities[scope].prod(1, dtype=np.float64)
        if self.n_factors:
            k = int(sizes.argmax())
            arity = self.scope_offsets[k + 1] - self.scope_offsets[k]
            what = f"the table of factor {k}, which has {arity} variables,"
            check_memory(what if sizes[k] > 0.5 * sizes.sum() else "all tables together", 8.0 * sizes.sum(), TABLES)
        return np.asarray(sizes.astype(np.int64))

    def _check(self, wrong: Callable[[IntArray], Any], message: str) -> None:
        """Refuse factors, by number, whose variables are `wrong`."""
        bad = [int(which[flags][0]) for which, scope in self._rows() if (flags := wrong(scope)).any()]
        if bad:
            raise ValueError(f"factor {min(bad)} {message}, got {self.factors[min(bad)]}")

    def _rows(self) -> list[tuple[IntArray, IntArray]]:
        """Factors with the same number of variables: their numbers and variables."""
        lengths, out = np.diff(self.scope_offsets), []
        for arity in np.unique(lengths).tolist():
            which = np.flatnonzero(lengths == arity)
            out.append((which, self.members[self.scope_offsets[which][:, None] + np.arange(arity)]))
        return out

    @cached_property
    def by_arity(self) -> list[tuple[IntArray, IntArray, IntArray, IntArray]]:
        """Factors with the same number of variables: their numbers, variables, cardinalities, and steps within tables."""
        out = []
        for which, scope in self._rows():
            counts = self.cardinalities[scope]
            strides = np.ones_like(counts)
            strides[:, :-1] = np.cumprod(counts[:, :0:-1], axis=1)[:, ::-1]
            out.append((which, scope, counts, strides))
        return out

    @cached_property
    def factors(self) -> tuple[tuple[int, ...], ...]:
        """The variables of every factor."""
        members = self.members.tolist()
        return tuple(tuple(members[lo:hi]) for lo, hi in itertools.pairwise(self.scope_offsets.tolist()))

    @cached_property
    def factor_examples(self) -> IntArray:
        """The example of every factor."""
        out = np.zeros(self.n_factors, np.int64)
        some = np.diff(self.scope_offsets) > 0
        out[some] = self.examples[self.members[self.scope_offsets[:-1][some]]]
        return out

    def tables(self, flat: ArrayLike) -> list[FloatArray]:
        """Views of flat potentials or marginals as tables; leading axes stay."""
        flat = np.asarray(flat)
        if not flat.ndim or flat.shape[-1] != self.size:
            raise ValueError(f"there must be {self.size} entries, those of all tables; got shape {flat.shape}")
        shapes = [tuple(self.cardinalities[list(scope)]) for scope in self.factors]
        return [
            flat[..., lo:hi].reshape((*flat.shape[:-1], *shape))
            for (lo, hi), shape in zip(itertools.pairwise(self.offsets.tolist()), shapes, strict=True)
        ]

    def potentials(self, potentials: Any) -> FloatArray:
        """Checked potentials as a matrix, one row per set of potentials."""
        if isinstance(potentials, list | tuple) and len(potentials) == self.n_factors:
            for k, (scope, table) in enumerate(zip(self.factors, potentials, strict=True)):
                shape = tuple(self.cardinalities[list(scope)].tolist())
                if np.shape(table) != shape:
                    raise ValueError(f"the table of factor {k} must have shape {shape}, got {np.shape(table)}")
            potentials = np.concatenate(
                [np.zeros(0), *(np.ravel(real_array(f"table {k}", table)) for k, table in enumerate(potentials))]
            )
        flat = real_array("potentials", potentials)
        if flat.ndim not in (1, 2) or flat.shape[-1] != self.size:
            raise ValueError(f"potentials must be {self.n_factors} tables or end in {self.size} entries, got {flat.shape}")
        if not len(flat) and flat.ndim == 2:
            raise ValueError("potentials hold no example: they must have at least one row")
        if not are_potentials(flat):
            *_, place = at = np.argwhere(not_potential(flat))[0]
            k = int(np.searchsorted(self.offsets, place, side="right")) - 1
            raise refusal("potentials", float(flat[tuple(at)]), f": factor {k}")
        return np.atleast_2d(flat)

    def score(self, potentials: Any, y: ArrayLike) -> FloatArray:
        """The sum of the entries that a configuration picks, of each example; -inf if it is forbidden."""
        flat, states = self.potentials(potentials), self._states(y)
        index = np.zeros((self.n_factors, len(states)), np.int64)
        for which, scope, _, strides in self.by_arity:
            for v, step in zip(scope.T, strides.T, strict=True):
                index[which] += step[:, None] * states.T[v]
        rows = max(len(flat), len(states))
        if min(len(flat), len(states)) not in (1, rows):
            raise ValueError(f"potentials and y must have as many rows, or one row; got {len(flat)} and {len(states)}")
        picked = np.broadcast_to(flat, (rows, self.size))[np.arange(rows)[:, None], self.offsets[:-1] + index.T]
        place = self.n_examples * np.arange(rows)[:, None] + self.factor_examples
        sums = np.bincount(place.ravel(), weights=picked.ravel(), minlength=rows * self.n_examples)
        return np.asarray(sums, dtype=np.float64)

    def _states(self, y: ArrayLike) -> IntArray:
        shape = f"{self.n_variables} integers, one state per variable"
        states = np.atleast_2d(whole_array("y", y, shape))
        if states.ndim != 2 or states.shape[-1] != self.n_variables:
            raise ValueError(f"y must be {shape}; got {states.shape} of {states.dtype}")
        bad = (states < 0) | (states >= self.cardinalities)
        if bad.any():
            row, v = np.argwhere(bad)[0]
            raise ValueError(f"y has state {states[row, v]} for variable {v}, which has {self.cardinalities[v]} states")
        return states.astype(np.int64)

    def enumerate(self) -> IntArray:
        """Every configuration of a small graph, shape (configurations, variables), the last variable changing fastest.

        A TooLargeError if there are more than a million.
        """
        return configurations(self.cardinalities)

    @cached_property
    def binary_pairs(self) -> bool:
        """Whether all variables have two states, and all factors one or two variables."""
        return bool((self.cardinalities == 2).all() and np.isin(np.diff(self.scope_offsets), (1, 2)).all())

    def known_states(self, evidence: Mapping[int, int]) -> IntArray:
        """The state of every variable that has one by the evidence, a dict; -1 for the others."""
        if not isinstance(evidence, Mapping):
            raise ValueError(
                f"evidence must be a dict from numbers of variables to numbers of states, as {{0: 1}}; got {evidence!r}"
            )
        known = np.full(self.n_variables, -1, np.int64)
        for v, state in evidence.items():
            for what, number in (("variable", v), ("state", state)):
                if not is_whole(number):
                    raise ValueError(f"evidence must have integers only, as {{0: 1}}; got {what} {number!r}")
            if not 0 <= v < self.n_variables:
                raise ValueError(f"evidence names variable {v}; there are {self.n_variables}, numbered from 0")
            if not 0 <= state < self.cardinalities[v]:
                raise ValueError(f"evidence gives state {state} to variable {v}, which has {self.cardinalities[v]}")
            known[v] = state
        return known

    def variable_marginals(self, marginals: ArrayLike) -> list[FloatArray]:
        """The probability of every state of every variable, from those of tables; uniform for a variable in no factor."""
        tables = self.tables(marginals)
        lead = np.asarray(marginals).shape[:-1]
        found: list[FloatArray | None] = [None] * self.n_variables
        for scope, table in sorted(zip(self.factors, tables, strict=True), key=lambda pair: -pair[1].size):
            for axis, v in enumerate(scope):
                others = tuple(len(lead) + a for a in range(len(scope)) if a != axis)
                found[v] = table.sum(axis=others)
        return [
            np.full((*lead, count), 1.0 / count) if p is None else p
            for p, count in zip(found, self.cardinalities.tolist(), strict=True)
        ]


def is_single(potentials: Any) -> bool:
    """Whether potentials are one set, as a list of tables or a vector, and not a matrix of several."""
    return isinstance(potentials, list | tuple) or np.ndim(potentials) == 1


def indicator(graph: FactorTables, states: Any) -> FloatArray:
    """A configuration as a point: one in the entry that it picks of every table."""
    out, y = np.zeros(graph.size), np.asarray(states)
    for numbers, scope, _, strides in graph.by_arity:
        out[graph.offsets[numbers] + (y[scope] * strides).sum(1)] = 1.0
    return out
