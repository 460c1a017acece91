"""Best points of binary pairwise graphs by a maximum flow on the graph that has every variable twice.

Where all pairs like to be equal (or can be flipped to), the answer is a configuration. Else some variables come out as
halves, and those that do not have the state of some best configuration (roof duality); it is the best point of the local
polytope.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.csgraph import breadth_first_order, maximum_flow

from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice
from ...structures import FactorGraph
from .oracle import Answer, scored

SOLVERS = ("auto", "ortools", "scipy")
#: The largest flow, as an integer, that each solver takes.
_ROOM = {"ortools": 2.0**53, "scipy": 2.0**30}


class MaxFlowOracle:
    """The best point of a graph of variables with two states and factors of at most two variables.

    Parameters
    ----------
    graph : FactorGraph
    solver : {"auto", "ortools", "scipy"}
        ``"auto"`` is OR-tools if installed, else SciPy. Capacities are rounded to integers: `delta` bounds what that costs.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference.map import MaxFlowOracle
    >>> from partita.structures import FactorGraph
    >>> graph = FactorGraph([2, 2], [(0,), (1,), (0, 1)])
    >>> answer = MaxFlowOracle(graph, "scipy")(np.array([0.0, 3.0, 0.0, -1.0, 2.0, 0.0, 0.0, 2.0]))
    >>> answer.point[[1, 3]], round(answer.value, 4)
    (array([1., 1.]), 4.0)
    """

    polytope = "local"

    def __init__(self, graph: FactorGraph, solver: str = "auto") -> None:
        if (graph.cardinalities != 2).any() or any(len(scope) not in (1, 2) for scope in graph.factors):
            raise ValueError("a maximum flow needs variables with two states and factors of one or two variables")
        self.graph, self.solver, self.delta = graph, _solver(check_choice("solver", solver, SOLVERS)), 0.0

    @cached_property
    def _layout(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Variables and places of the tables of one, and of two."""
        scopes, offsets = self.graph.factors, self.graph.offsets
        single = [k for k, scope in enumerate(scopes) if len(scope) == 1]
        double = [k for k, scope in enumerate(scopes) if len(scope) == 2]
        pairs = np.array([scopes[k] for k in double], dtype=np.int64).reshape(-1, 2)
        return np.array([scopes[k][0] for k in single], dtype=np.int64), offsets[single], pairs, offsets[double]

    def __call__(self, potentials: FloatArray) -> Answer:
        u = np.asarray(potentials, dtype=np.float64)
        if not np.isfinite(u).all():
            raise ValueError("a maximum flow takes finite potentials")
        shares = self._shares(u)
        return scored(self._point(u, shares), u, self.polytope, self.delta)

    def _shares(self, u: FloatArray) -> FloatArray:
        """Of each variable the share of state 1: zero, a half, or one."""
        n = self.graph.n_variables
        variables, places, pairs, tables = self._layout
        cost = np.zeros(n)  # of state 1
        np.add.at(cost, variables, u[places] - u[places + 1])
        i, j = pairs[:, 0], pairs[:, 1]
        e00, e01, e10, e11 = (-u[tables + k] for k in range(4))
        np.add.at(cost, i, e10 - e00)
        np.add.at(cost, j, e01 - e00)
        q = e11 - e10 - e01 + e00
        np.add.at(cost, i, np.minimum(q, 0.0))
        weight = np.abs(q)
        agree = q <= 0.0
        # Node v is variable v, node n + v its opposite; arcs from a to b cost where a is on and b is not.
        tails = np.concatenate([i, np.where(agree, n + j, j)])
        heads = np.concatenate([np.where(agree, j, n + j), n + i])
        capacity = np.concatenate([weight, weight])
        source, sink = 2 * n, 2 * n + 1
        on, off = np.flatnonzero(cost > 0.0), np.flatnonzero(cost < 0.0)
        tails = np.concatenate([tails, on, np.full(len(on), source), np.full(len(off), source), n + off])
        heads = np.concatenate([heads, np.full(len(on), sink), n + on, off, np.full(len(off), sink)])
        capacity = np.concatenate([capacity, cost[on], cost[on], -cost[off], -cost[off]])
        reached = self._cut(tails, heads, capacity, source, sink)
        return 0.5 * (reached[:n] + 1.0 - reached[n : 2 * n])

    def _cut(self, tails: IntArray, heads: IntArray, capacity: FloatArray, source: int, sink: int) -> FloatArray:
        """Which nodes are on the side of the source."""
        total = max(float(capacity[tails == source].sum()), float(capacity.max(initial=0.0)))
        scale = _ROOM[self.solver] / total if total else 1.0
        whole = np.rint(capacity * scale).astype(np.int64)
        self.delta = 0.5 * len(whole) / scale
        side = _ortools_cut if self.solver == "ortools" else _scipy_cut
        return side(tails, heads, whole, source, sink)

    def _point(self, u: FloatArray, shares: FloatArray) -> FloatArray:
        """The best tables that have these shares."""
        variables, places, pairs, tables = self._layout
        out = np.zeros(self.graph.size)
        out[places], out[places + 1] = 1.0 - shares[variables], shares[variables]
        a, b = shares[pairs[:, 0]], shares[pairs[:, 1]]
        low, high = np.maximum(a + b - 1.0, 0.0), np.minimum(a, b)
        gain = u[tables + 3] + u[tables] - u[tables + 1] - u[tables + 2]
        both = np.where(gain > 0.0, high, low)
        for k, part in enumerate((1.0 - a - b + both, b - both, a - both, both)):
            out[tables + k] = part
        return out


def _solver(name: str) -> str:
    if name == "scipy":
        return name
    try:
        import ortools.graph.python.max_flow  # noqa: F401
    except ImportError:
        if name == "ortools":
            raise ImportError("solver 'ortools' needs OR-tools: pip install 'partita[maxflow]'") from None
        return "scipy"
    return "ortools"


def _ortools_cut(tails: IntArray, heads: IntArray, capacity: IntArray, source: int, sink: int) -> FloatArray:
    from ortools.graph.python import max_flow

    flow: Any = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(tails.astype(np.int32), heads.astype(np.int32), capacity)
    status = flow.solve(source, sink)
    if status != flow.OPTIMAL:
        raise RuntimeError(f"OR-tools failed to find a maximum flow (status {status})")
    reached = np.zeros(sink + 1)
    reached[np.asarray(flow.get_source_side_min_cut(), dtype=np.int64)] = 1.0
    return reached


def _scipy_cut(tails: IntArray, heads: IntArray, capacity: IntArray, source: int, sink: int) -> FloatArray:
    kept = capacity > 0
    shape = (sink + 1, sink + 1)
    graph = sp.csr_array((capacity[kept].astype(np.int32), (tails[kept], heads[kept])), shape=shape)
    graph.sum_duplicates()
    left = graph - maximum_flow(graph, source, sink).flow
    left.data[left.data < 0] = 0
    left.eliminate_zeros()
    reached = np.zeros(sink + 1)
    reached[breadth_first_order(left, source, return_predecessors=False)] = 1.0
    return reached
