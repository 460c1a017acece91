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
from ...inference.oracle import Answer, checked, integer_scale, scored
from ..structure.evidence import Evidence
from ..structure.factor_graph import FactorGraph
from ..structure.mixture import Part, each_example

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
    >>> from partita.inference import MaxFlowOracle
    >>> from partita.structures import FactorGraph
    >>> graph = FactorGraph([2, 2], [(0,), (1,), (0, 1)])
    >>> answer = MaxFlowOracle(graph, "scipy")(np.array([0.0, 3.0, 0.0, -1.0, 2.0, 0.0, 0.0, 2.0]))
    >>> answer.point[[1, 3]], round(answer.value, 4)
    (array([1., 1.]), 4.0)
    """

    graph: FactorGraph
    solver: str

    polytope = "local"

    def __init__(self, graph: FactorGraph, solver: str = "auto") -> None:
        if not graph.binary_pairs:
            raise ValueError("a maximum flow needs variables with two states and factors of one or two variables")
        self.graph, self.solver, self.delta = graph, _solver(check_choice("solver", solver, SOLVERS)), 0.0

    @cached_property
    def _layout(self) -> tuple[IntArray, IntArray, IntArray, IntArray]:
        """Variables and places of the tables of one; first and second variables, and places, of those of two."""
        groups = {scope.shape[1]: (scope, self.graph.offsets[numbers]) for numbers, scope, _, _ in self.graph.by_arity}
        none = np.zeros((0, 2), np.int64), np.zeros(0, np.int64)
        (single, places), (pairs, tables) = groups.get(1, none), groups.get(2, none)
        return single[:, 0], places[:, None] + np.arange(2), np.ascontiguousarray(pairs.T), tables[:, None] + np.arange(4)

    @cached_property
    def _repeated(self) -> bool:
        """Whether two factors have the same pair of variables."""
        low, high = np.sort(self._layout[2], axis=0)
        return len(np.unique(low * self.graph.n_variables + high)) < len(low)

    def __call__(self, potentials: FloatArray) -> Answer:
        u = checked(potentials, self.graph.size)
        shares = self.shares(u)
        variables, places, (i, j), tables = self._layout
        out = np.zeros(self.graph.size)
        out[places] = np.column_stack([1.0 - shares, shares])[variables]
        a, b = shares[i], shares[j]
        both = np.where(self._gain(u[tables]) > 0.0, np.minimum(a, b), np.maximum(a + b - 1.0, 0.0))  # the best table
        out[tables] = np.column_stack([1.0 - a - b + both, b - both, a - both, both])
        return scored(out, u, self.polytope, self.delta)

    @staticmethod
    def _gain(pair: FloatArray) -> FloatArray:
        return np.asarray(pair[:, 3] - pair[:, 2] - pair[:, 1] + pair[:, 0])

    def shares(self, u: FloatArray) -> FloatArray:
        """Of each variable the share of state 1: zero, a half, or one."""
        if not np.isfinite(u).all() or np.abs(u).max(initial=0.0) > 1e290:
            raise ValueError("a maximum flow takes finite potentials, and not too large ones")
        variables, places, (i, j), tables = self._layout
        own, pair, n = u[places], u[tables], self.graph.n_variables
        gain = self._gain(pair)
        # the score is a constant, less costs of states 1, less |gain| where a pair does not do what its gain asks for
        cost: FloatArray = np.bincount(variables, own[:, 0] - own[:, 1], n).astype(np.float64)
        cost -= np.bincount(i, pair[:, 2] - pair[:, 0] + np.maximum(gain, 0.0), n)
        cost -= np.bincount(j, pair[:, 1] - pair[:, 0], n)
        return self._flow(cost, gain)

    def _flow(self, cost: FloatArray, gain: FloatArray) -> FloatArray:
        i, j = self._layout[2].astype(np.int32)
        n = self.graph.n_variables
        nodes, weight, agree = np.arange(n, dtype=np.int32), np.abs(gain), gain >= 0.0
        on, size = cost > 0.0, np.abs(cost)
        if agree.all():  # one node for each variable: arcs from a to b cost where a is on and b is not
            source = np.int32(n)
            arcs = [(i, j, weight), (np.where(on, nodes, source), np.where(on, source + 1, nodes), size)]
            return self._cut(arcs, n)[:n]
        source, opposite = np.int32(2 * n), np.int32(n)  # node n + v is the opposite of v
        arcs = [
            (i, np.where(agree, j, opposite + j), weight),
            (np.where(agree, opposite + j, j), opposite + i, weight),
            (np.where(on, nodes, source), np.where(on, source + 1, nodes), size),
            (np.where(on, source, opposite + nodes), np.where(on, opposite + nodes, source + 1), size),
        ]
        reached = self._cut(arcs, 2 * n)
        return 0.5 * (reached[:n] + 1.0 - reached[n : 2 * n])

    def _cut(self, arcs: list[tuple[Any, Any, FloatArray]], source: int) -> FloatArray:
        """Which nodes are on the side of the source; the sink comes after it."""
        tails, heads, capacity = (np.concatenate(parts) for parts in zip(*arcs, strict=True))
        if self._repeated:  # parallel arcs are one, which must not be too large either
            merged = sp.coo_array(sp.csr_array((capacity, (tails, heads)), shape=(source + 2, source + 2)))
            tails, heads, capacity = merged.row.astype(np.int32), merged.col.astype(np.int32), merged.data
        total = max(float(capacity[tails == source].sum()), float(capacity.max(initial=0.0)))
        scale = integer_scale(_ROOM[self.solver], total)
        whole = np.rint(capacity * scale).astype(np.int64)
        self.delta = 0.5 * len(whole) / scale
        side = _ortools_cut if self.solver == "ortools" else _scipy_cut
        return side(tails, heads, whole, source, source + 1)


def flow_argmax(graph: FactorGraph, potentials: FloatArray, solver: str = "auto") -> tuple[IntArray, FloatArray]:
    """Configurations of rows of potentials and their scores, of each example; see `FactorGraph.argmax`."""
    check_choice("solver", solver, SOLVERS)
    states = np.zeros((len(potentials), graph.n_variables), np.int64)
    oracles = [(part, MaxFlowOracle(part.graph, solver)) for part in each_example(graph)]

    def work(row: int, part: Part[FactorGraph], oracle: MaxFlowOracle) -> None:
        shares = oracle.shares(potentials[row, part.index])
        states[row, part.variables] = np.where(shares == 0.5, -1, shares > 0.5)

    graph.workers.run(work, [(row, *pair) for row in range(len(potentials)) for pair in oracles])
    for row in np.flatnonzero((states < 0).any(1)).tolist():  # what flows decide is part of a best configuration
        evidence = Evidence(graph, states[row])
        rest, u = evidence.rest, potentials[row, evidence.index]
        assert rest is not None
        states[row] = evidence.filled(rest.argmax(u, "exact" if rest.choose("auto") == "exact" else "bp")[0])[0]
    return states, graph.score(potentials, states)


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


def _ortools_cut(tails: Any, heads: Any, capacity: IntArray, source: int, sink: int) -> FloatArray:
    from ortools.graph.python import max_flow

    flow: Any = max_flow.SimpleMaxFlow()
    flow.add_arcs_with_capacity(tails, heads, capacity)
    flow.add_arc_with_capacity(source, sink, 0)  # both ends exist
    status = flow.solve(source, sink)
    if status != flow.OPTIMAL:
        raise RuntimeError(f"OR-tools failed to find a maximum flow (status {status})")
    reached = np.zeros(sink + 1)
    reached[np.asarray(flow.get_source_side_min_cut(), dtype=np.int64)] = 1.0
    return reached


def _scipy_cut(tails: Any, heads: Any, capacity: IntArray, source: int, sink: int) -> FloatArray:
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
