"""Factor graphs in which variables need no table of their own, as free energies want them: with tables of zeros added."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray
from ...inference.oracle import Answer, Oracle, answered, oracle_name
from ..structure.factor_graph import FactorGraph
from ..structure.scopes import Scopes


class OwnTables:
    """A graph with a table for every variable that has none by itself, and solvers for the graph as those of that.

    What a solver is to maximise in such a table is added to another one that has the variable: solvers never see it. A
    variable in no factor at all is left at equal shares, which are best.

    Attributes
    ----------
    whole : FactorGraph
        The graph itself if nothing was missing; else its potentials begin with those of the graph.
    """

    whole: FactorGraph

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph
        own = np.zeros(graph.n_variables, bool)
        lengths = np.diff(graph.scope_offsets)
        own[graph.members[graph.scope_offsets[:-1][lengths == 1]]] = True
        self.missing = np.flatnonzero(~own)
        self.whole = graph
        if len(self.missing):
            offsets = np.concatenate([graph.scope_offsets, graph.scope_offsets[-1] + 1 + np.arange(len(self.missing))])
            scopes = Scopes(offsets, np.concatenate([graph.members, self.missing]))
            self.whole = FactorGraph(graph.cardinalities, scopes, n_jobs=graph.n_jobs)
            self._place()

    def _place(self) -> None:
        """A 0/1 matrix from entries of added tables to those of the tables that have their variables."""
        graph, start, rows, columns = self.graph, 0, [np.zeros(0, np.int64)], [np.zeros(0, np.int64)]
        equal = [np.zeros(0)]
        first = np.full(graph.n_variables, -1)
        first[graph.members[::-1]] = np.arange(len(graph.members))[::-1]
        factors = np.searchsorted(graph.scope_offsets, first, side="right") - 1
        for v in self.missing.tolist():
            count, k = int(graph.cardinalities[v]), int(factors[v])
            equal.append(np.full(count, 0.0 if first[v] >= 0 else 1.0 / count))
            if first[v] >= 0:
                shape = graph.cardinalities[list(graph.factors[k])]
                states = np.unravel_index(np.arange(int(shape.prod())), tuple(shape))[int(first[v] - graph.scope_offsets[k])]
                rows.append(graph.offsets[k] + np.arange(len(states)))
                columns.append(start + states)
            start += count
        at = (np.concatenate(rows), np.concatenate(columns))
        self._map = sp.csr_array((np.ones(len(at[0])), at), shape=(graph.size, start))
        self._equal = np.concatenate(equal)

    def solver(self, oracle: Oracle) -> Oracle:
        """A solver for the graph as one for `whole`."""
        return _Whole(self, oracle) if len(self.missing) else oracle

    def folded(self, scores: FloatArray) -> FloatArray:
        """Scores of `whole` as those of the graph."""
        size = self.graph.size
        return np.asarray(scores[:size] + self._map @ scores[size:])

    def lifted(self, point: FloatArray) -> FloatArray:
        """A point of the graph as one of `whole`."""
        return np.concatenate([point, self._map.T @ point + self._equal])


class _Whole:
    """A solver for a graph as one for the graph with all tables."""

    def __init__(self, tables: OwnTables, oracle: Oracle) -> None:
        self._tables, self._oracle, self.name = tables, oracle, oracle_name(oracle)
        self.polytope, self.delta = oracle.polytope, oracle.delta

    def __call__(self, potentials: FloatArray) -> Answer:
        tables = self._tables
        found = answered(self._oracle(tables.folded(potentials)), f"oracle {self.name}", tables.graph.offsets)
        return Answer(tables.lifted(found.point), found.value, found.polytope, found.delta)
