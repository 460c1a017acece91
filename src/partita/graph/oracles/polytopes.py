"""Best configurations of factor graphs by junction trees, and best points of their local polytopes by linear programs."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import linprog

from ...core.results import FloatArray
from ...inference.oracle import Answer, checked, scored
from ..structure.factor_graph import FactorGraph
from ..structure.tables import indicator

#: Costs from which HiGHS is given them in units of the largest: it takes very large ones for infinite.
LARGE = 1e10


class JunctionTreeOracle:
    """The best configuration of a factor graph, where its junction tree fits.

    >>> import numpy as np
    >>> from partita.inference import JunctionTreeOracle
    >>> from partita.structures import FactorGraph
    >>> JunctionTreeOracle(FactorGraph([2], [(0,)]))(np.array([0.0, 1.5])).value
    1.5
    """

    graph: FactorGraph

    polytope, delta = "exact", 0.0

    def __init__(self, graph: FactorGraph, **options: float) -> None:
        self.graph, self._options = graph, options

    def __call__(self, potentials: FloatArray) -> Answer:
        potentials = checked(potentials, self.graph.size)
        states = self.graph.argmax(potentials, "exact", **self._options)[0]
        return scored(indicator(self.graph, states), potentials, self.polytope)


class LinearProgramOracle:
    """The best point of the local polytope of a factor graph, by HiGHS: marginals of factors that agree on each variable."""

    polytope, delta = "local", 0.0

    def __init__(self, graph: FactorGraph) -> None:
        self.graph = graph

    @cached_property
    def _constraints(self) -> tuple[Any, FloatArray]:
        """Rows of equations: tables sum to one, and to the same for each state of a variable."""
        graph, rows, columns, values, right = self.graph, [], [], [], []
        first: dict[int, list[Any]] = {}  # of each variable, the entries of its states in the first table that has it
        count = 0
        for k, scope in enumerate(graph.factors):
            shape = tuple(graph.cardinalities[list(scope)])
            entries = np.arange(graph.offsets[k], graph.offsets[k + 1]).reshape(shape)
            rows += [count] * entries.size
            columns += entries.ravel().tolist()
            values += [1.0] * entries.size
            right.append(1.0)
            count += 1
            for axis, v in enumerate(scope):
                groups = [np.take(entries, state, axis=axis).ravel().tolist() for state in range(shape[axis])]
                if v not in first:
                    first[v] = groups
                    continue
                for ours, theirs in zip(groups[:-1], first[v][:-1], strict=True):
                    rows += [count] * (len(ours) + len(theirs))
                    columns += ours + theirs
                    values += [1.0] * len(ours) + [-1.0] * len(theirs)
                    right.append(0.0)
                    count += 1
        return sp.csr_array((values, (rows, columns)), shape=(count, graph.size)), np.array(right)

    def __call__(self, potentials: FloatArray) -> Answer:
        potentials = checked(potentials, self.graph.size)
        A, b = self._constraints
        allowed = potentials > -np.inf
        bounds = np.column_stack([np.zeros(len(potentials)), np.where(allowed, 1.0, 0.0)])
        costs = -np.where(allowed, potentials, 0.0)
        size = float(np.abs(costs).max(initial=0.0))
        found = linprog(costs / size if size > LARGE else costs, A_eq=A, b_eq=b, bounds=bounds, method="highs")
        if found.x is None:
            raise ValueError(f"potentials forbid every configuration, or the solver failed: {found.message}")
        return scored(np.clip(found.x, 0.0, 1.0), potentials, self.polytope)
