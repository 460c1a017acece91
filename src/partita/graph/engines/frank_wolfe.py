"""Reweighted free energies of factor graphs through solvers for the best configuration only."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.results import FloatArray, IntArray, Result, Status
from ...inference.covering import covering
from ...inference.entropies import TableEntropy
from ...inference.frank_wolfe import FreeEnergy, maximize
from ...inference.oracle import SHARES, Oracle, answered, oracle_name, solver_of
from ..kernels.conditional import iterated_conditional_modes
from ..kernels.factor_layout import Entries
from ..registry import find_engine
from ..structure.evidence import answered_point
from ..structure.factor_graph import FactorGraph
from ..structure.mixture import each_example
from ..structure.scopes import ranges
from ..structure.trivial_bounds import trivial_bounds
from .counting_numbers import factor_numbers, tree_numbers
from .layout import given, layout
from .own_tables import OwnTables


class GraphEnergy(FreeEnergy):
    """Potentials plus ``sum_i H_i - sum_a rho_a (sum_{i in a} H_i - H_a)``, where H are entropies of tables.

    Parameters
    ----------
    graph : FactorGraph
        Every variable has a factor of its own.
    potentials : array of shape (graph.size,)
        -inf forbids an entry of a table.
    rho : array
        A number for each factor; those of factors of one variable do not matter.
    oracle : Oracle
    """

    graph: FactorGraph
    potentials: FloatArray
    oracle: Oracle

    def __init__(self, graph: FactorGraph, potentials: FloatArray, rho: FloatArray, oracle: Oracle) -> None:
        self._forbidden = np.isneginf(potentials)
        self.graph, self.oracle = graph, oracle
        self.potentials = np.where(self._forbidden, 0.0, potentials) if self._forbidden.any() else potentials
        self.solver: str = f"oracle {oracle_name(oracle)}"
        self.delta: float = 0.0  # the largest error of an answer so far
        count = np.where(np.diff(graph.scope_offsets) > 1, rho, 0.0)
        own = np.full(graph.n_variables, -1)
        owner = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_offsets))
        single = np.flatnonzero(np.diff(graph.scope_offsets) == 1)[::-1]  # of several, the first one is a variable's own
        own[graph.members[graph.scope_offsets[single]]] = single
        if (own < 0).any():
            raise ValueError(f"variable {int(np.argmin(own))} needs a factor of its own, which may be zero")
        count[own] = 1.0 - np.bincount(graph.members, count[owner], minlength=graph.n_variables)
        self._own = own
        self._entropy = TableEntropy(np.repeat(count, np.diff(graph.offsets)))
        self._sizes = np.repeat(np.diff(graph.offsets), np.diff(graph.offsets))

    def value(self, tau: FloatArray) -> float:
        return float(self.potentials @ tau) + self._entropy.value(tau)

    def gradient(self, tau: FloatArray) -> FloatArray:
        return np.asarray(self.potentials + self._entropy.gradient(tau))

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        fixed, entropy = float(self.potentials @ direction), self._entropy.along(tau, direction)
        return lambda step: fixed + entropy(step)

    def best(self, scores: FloatArray) -> FloatArray:
        allowed = np.where(self._forbidden, -np.inf, scores)
        answer = answered(self.oracle(allowed), self.solver, self.graph.offsets)
        self.delta = max(self.delta, answer.delta)
        self._check(answer.point)
        if (answer.point[self._forbidden] > SHARES).any():
            raise ValueError(f"{self.solver} must not answer with a configuration that is forbidden (-inf)")
        return np.where(self._forbidden, 0.0, answer.point)

    def _check(self, point: FloatArray) -> None:
        """Refuse an answer in which tables do not agree on a variable."""
        graph = self.graph
        entries, keys, own = self._agreement
        apart = np.abs(np.bincount(keys, point[entries], len(own)) - point[own])
        if apart.size and apart.max() > SHARES:
            k = int(np.searchsorted(graph.offsets, own[int(apart.argmax())], side="right")) - 1
            v = graph.factors[k][0]
            raise ValueError(f"{self.solver} must answer with a configuration: its tables disagree on variable {v}")

    @cached_property
    def _agreement(self) -> tuple[Any, Any, Any]:
        """Entries of tables of several variables, the member and state that each counts for, and the entries of factors of
        one variable that members and states are compared with."""
        graph, at = self.graph, 0
        entries, keys, own = [np.zeros(0, np.int64)], [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        for numbers, scope, counts, strides in graph.by_arity:
            if scope.shape[1] < 2:
                continue
            sizes = np.diff(graph.offsets)[numbers]
            inside = ranges(np.zeros_like(sizes), sizes)
            for v, count, stride in zip(scope.T, counts.T, strides.T, strict=True):
                starts = at + np.cumsum(count) - count
                entries.append(ranges(graph.offsets[numbers], sizes))
                keys.append(np.repeat(starts, sizes) + (inside // np.repeat(stride, sizes)) % np.repeat(count, sizes))
                own.append(ranges(graph.offsets[self._own[v]], count))
                at += int(count.sum())
        return np.concatenate(entries), np.concatenate(keys), np.concatenate(own)

    def rival(self, scores: FloatArray, vertex: FloatArray) -> float:
        """What an answer becomes when single variables change as long as that helps."""
        graph, inner = self.graph, layout(self.graph, merge=False)
        scores = np.where(self._forbidden, -np.inf, scores)
        y = np.empty(graph.n_variables, np.int64)
        for v, k in enumerate(self._own.tolist()):
            y[v] = int(np.argmax(vertex[graph.offsets[k] : graph.offsets[k + 1]]))
        states, tables = inner.scores(scores[None])
        iterated_conditional_modes(inner.arrays, Entries(states[0], tables[0]), y)
        return float(graph.score(scores, y)[0])

    def start(self) -> FloatArray:
        """The uniform point; where something is forbidden, points that have all of the rest."""
        if self._forbidden.any():
            return covering(self.best, len(self._sizes))
        return np.asarray(1.0 / self._sizes)[None]


def graph_frank_wolfe(
    graph: FactorGraph,
    potentials: FloatArray,
    rho: ArrayLike | None = None,
    oracle: Any = None,
    variant: str = "blended",
    tol: float = 1e-4,
    max_iter: int = 2000,
) -> Result:
    """The largest negative free energy with counting numbers `rho`, over what the oracle maximises over. Examples of a union
    are taken one at a time.

    Parameters
    ----------
    potentials : array of shape (rows, graph.size)
    rho : number or array, optional
        Of the factors. Default: shares of spanning trees, which make the answer an upper bound on log Z.
    oracle : Oracle, object with ``argmax(potentials)`` or function, optional
        For the potentials of one example; the last two return a row of states. Default: see `find_oracle`.
    variant, tol, max_iter
        See `frank_wolfe.maximize`.
    """
    potentials = given(graph, potentials)
    inner = layout(graph, merge=False)
    numbers = np.ones(graph.n_factors)
    if rho is not None:
        numbers[inner.host_factors] = factor_numbers(graph, inner, rho)
    shape = len(potentials), graph.n_examples
    value, gap, marginals, calls = np.empty(shape), np.empty(shape), np.zeros_like(potentials), 0
    for e, (one, factors, index) in enumerate(_examples(graph)):
        own = None if rho is None else numbers[factors]
        energies = _energies(one, potentials[:, index], own, oracle)
        for row, energy in enumerate(energies):
            tau, value[row, e], reach, asked = maximize(energy, variant, tol, max_iter)
            marginals[row, index], gap[row, e], calls = tau[: len(index)], reach + energy.delta, max(calls, asked)
    status = Status.CONVERGED if (gap <= 2.0 * tol).all() else Status.UNSETTLED
    result = Result(
        value.ravel(),
        marginals,
        status,
        exact=False,
        upper=(value + gap).ravel() if rho is None else None,
        n_iter=calls,
        engine="frank_wolfe",
        certificate=gap.ravel(),
        residual=float(gap.max()),
        tol=2.0 * tol,
    )
    return result.within(*trivial_bounds(graph, potentials))


def _examples(graph: FactorGraph) -> list[tuple[FactorGraph, IntArray, IntArray]]:
    """Each example as a graph, with its factors and entries of potentials."""
    if graph.n_examples == 1:
        return [(graph, np.arange(graph.n_factors), np.arange(graph.size))]
    return [(part.graph, part.factors, part.index) for part in each_example(graph)]


def _energies(graph: FactorGraph, potentials: FloatArray, rho: FloatArray | None, oracle: Any) -> list[GraphEnergy]:
    """Of one example, for rows of its potentials."""
    inner, tables = layout(graph, merge=False), OwnTables(graph)
    numbers = np.ones(tables.whole.n_factors)
    numbers[inner.host_factors] = tree_numbers(inner) if rho is None else rho[inner.host_factors]
    if oracle is None:
        solver = find_engine("oracle")(graph, bool(np.isfinite(potentials).all()))
    else:
        solver = solver_of(oracle, lambda y: answered_point(graph, y))
    solver = tables.solver(solver)
    more = np.zeros(tables.whole.size - graph.size)
    return [GraphEnergy(tables.whole, np.concatenate([row, more]), numbers, solver) for row in potentials]
