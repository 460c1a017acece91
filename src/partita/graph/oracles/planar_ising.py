"""Best configurations of Ising models without fields on graphs drawn in the plane.

Around a face, an odd number of pairs that want to differ cannot all be content. Pairs that are not, as ways across edges
from face to face, join such faces two by two: the cheapest ways are a matching of them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import dijkstra

from ...core.arrays.sparse import with_narrow_indices
from ...core.memory import check_memory
from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice, check_count, check_flag
from ...inference.oracle import Answer, checked, integer_scale, scored
from ..engines.planar_layout import PlanarLayout, check_positions
from ..structure.factor_graph import FactorGraph
from ..structure.mixture import Part, each_example
from ..structure.tables import indicator

SOLVERS = ("auto", "pymatching", "rustworkx")
#: The largest weight, as an integer, that each solver takes.
_ROOM = {"pymatching": 2.0**23, "rustworkx": 2.0**40}


class PlanarIsingOracle:
    """The best configuration of variables with two states whose pairs are edges of a planar graph, without fields.

    Parameters
    ----------
    graph : FactorGraph
    positions : array of shape (variables, 2), optional
        Places of the variables in a drawing without crossings; see `engines.planar_layout.PlanarLayout`.
    solver : {"auto", "pymatching", "rustworkx"}
        ``"auto"`` is PyMatching if installed (a grid of 100 x 100 takes a second), else rustworkx, which serves some hundred
        faces that cannot be content. Weights are rounded to integers: `delta` bounds what that costs.
    symmetric : bool
        Answer with the mean of the best configuration and its reverse, which is as good. Then Frank-Wolfe from a symmetric
        start never sees a field.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import PlanarIsingOracle
    >>> from partita.structures import FactorGraph
    >>> graph = FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0)])
    >>> differ = np.array([0.0, 1.0, 1.0, 0.0])
    >>> PlanarIsingOracle(graph, [(0, 0), (1, 0), (0, 1)], "rustworkx")(np.tile(differ, 3)).value
    2.0
    """

    graph: FactorGraph
    layout: PlanarLayout
    symmetric: bool

    polytope = "exact"

    def __init__(
        self,
        graph: FactorGraph,
        positions: ArrayLike | None = None,
        solver: str = "auto",
        symmetric: bool = False,
    ) -> None:
        self.solver: str = _solver(check_choice("solver", solver, SOLVERS))
        self.graph, self.layout = graph, PlanarLayout(graph, positions)
        self.symmetric, self.delta = check_flag("symmetric", symmetric), 0.0

    def best(self, potentials: FloatArray) -> IntArray:
        """The states of a best configuration."""
        J, _ = self.layout.couplings(potentials)
        return self._states((J < 0.0) ^ self._discontent(J))

    def __call__(self, potentials: FloatArray) -> Answer:
        potentials = checked(potentials, self.graph.size)
        states = self.best(potentials)
        point = indicator(self.graph, states)
        if self.symmetric:
            point = 0.5 * (point + indicator(self.graph, 1 - states))
        return scored(point, potentials, self.polytope, self.delta)

    def _discontent(self, J: FloatArray) -> Any:
        """The edges that are not content, as a mask: of each two faces, the cheapest edge between them."""
        m, faces = self.layout.n_edges, self.layout.faces
        mask = np.zeros(m, dtype=bool)
        odd = np.bincount(faces, weights=np.tile(J < 0.0, 2)) % 2 > 0.0 if m else mask
        self.delta = 0.0
        if not odd.any():
            return mask
        scale = integer_scale(_ROOM[self.solver], float(np.abs(J).max()))
        whole = np.rint(np.abs(J) * scale)
        self.delta = m / scale
        pairs = np.sort(faces.reshape(2, m).T, axis=1)
        order = np.lexsort((whole, pairs[:, 1], pairs[:, 0]))
        pairs = pairs[order]
        first = np.concatenate(([True], (pairs[1:] != pairs[:-1]).any(1))) & (pairs[:, 0] != pairs[:, 1])
        join = _pymatching_join if self.solver == "pymatching" else _rustworkx_join
        mask[order[first]] = join(pairs[first], whole[order[first]], odd)
        return mask

    def _states(self, differ: Any) -> IntArray:
        """The states that differ across these edges."""
        layout, unequal = self.layout, differ.tolist()
        order, starts = (array.tolist() for array in layout.around)
        heads, found = layout.heads.tolist(), [-1] * self.graph.n_variables
        for root in range(len(found)):
            if found[root] >= 0:
                continue
            found[root], stack = 0, [root]
            while stack:
                v = stack.pop()
                for h in order[starts[v] : starts[v + 1]]:
                    if found[heads[h]] < 0:
                        found[heads[h]] = found[v] ^ unequal[h % layout.n_edges]
                        stack.append(heads[h])
        states = np.array(found, dtype=np.int64)
        if ((states[layout.ends[:, 0]] != states[layout.ends[:, 1]]) != differ).any():
            raise RuntimeError("the solver failed: its answer is not a configuration")
        return states


class PlanarCutOracle:
    """The best cut of a planar graph: its vertices in two parts, and the edges between them.

    Parameters
    ----------
    edges : array of int, shape (edges, 2)
        Two different vertices each; an edge may be there several times.
    positions : array of shape (vertices, 2), optional
        Places of the vertices in a drawing without crossings; see `engines.planar_layout.PlanarLayout`.
    solver : {"auto", "pymatching", "rustworkx"}
        See `PlanarIsingOracle`.
    n_vertices : int, optional
        Default: what `edges` show.

    Notes
    -----
    Potentials are one finite score for each edge, which counts if the edge is cut; of edges within the parts, give the
    reverse. Points are ones for the edges that are cut. Scores may have any sign: this is the maximum cut, which is
    NP-hard on other graphs.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import PlanarCutOracle
    >>> oracle = PlanarCutOracle([(0, 1), (1, 2), (2, 0)], [(0, 0), (1, 0), (0, 1)], "rustworkx")
    >>> oracle(np.array([1.0, 2.0, 3.0])).point
    array([0., 1., 1.])
    """

    delta: float

    polytope = "exact"

    def __init__(
        self,
        edges: ArrayLike,
        positions: ArrayLike | None = None,
        solver: str = "auto",
        n_vertices: int | None = None,
    ) -> None:
        ends = np.asarray(edges)
        if ends.ndim != 2 or ends.shape[1:] != (2,) or not len(ends) or ends.dtype.kind not in "iu" or ends.min() < 0:
            raise ValueError(f"edges must be an array of pairs of vertices, got shape {ends.shape} of {ends.dtype}")
        loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
        if len(loops):
            raise ValueError(
                f"edge {loops[0]} goes from vertex {ends[loops[0], 0]} to itself, and is never cut: leave it out"
            )
        self.ends: IntArray = ends.astype(np.int64)
        seen = int(ends.max()) + 1
        n = seen if n_vertices is None else check_count("n_vertices", n_vertices, minimum=seen)
        check_memory(f"a graph of {n} vertices", 64 * n, "Number vertices from 0 without gaps")
        self._ising, self.delta = PlanarIsingOracle(FactorGraph(np.full(n, 2), [self.ends]), positions, solver), 0.0

    def best(self, potentials: FloatArray) -> IntArray:
        """The edges of a best cut alone, as zeros and ones: a function for solvers that ask for no more."""
        return np.asarray(self(potentials).point, dtype=np.int64)

    def __call__(self, potentials: FloatArray) -> Answer:
        scores = checked(potentials, len(self.ends), "scores, one for each edge")
        if not np.isfinite(scores).all():
            raise ValueError("planar cuts take finite potentials: where an edge must not be cut, make its ends one vertex")
        tables = np.zeros((len(scores), 4))
        tables[:, 1:3] = scores[:, None]
        states = self._ising.best(tables.ravel())
        self.delta = self._ising.delta
        cut = states[self.ends[:, 0]] != states[self.ends[:, 1]]
        return scored(cut.astype(np.float64), scores, self.polytope, self.delta)


def planar_argmax(
    graph: FactorGraph, potentials: FloatArray, *, positions: ArrayLike | None = None, solver: str = "auto"
) -> tuple[IntArray, FloatArray]:
    """Best configurations of rows of potentials and their scores, of each example; see `FactorGraph.argmax`."""
    states = np.zeros((len(potentials), graph.n_variables), np.int64)
    places = None if positions is None else check_positions(positions, graph.n_variables)
    parts: list[Part | None] = [None] if graph.n_examples == 1 else list(each_example(graph))
    for part in parts:
        index, variables = (slice(None), slice(None)) if part is None else (part.index, part.variables)
        own = graph if part is None else part.graph
        oracle = PlanarIsingOracle(own, None if places is None else places[variables], solver)
        for row, u in enumerate(potentials):
            states[row, variables] = oracle.best(u[index])
    return states, graph.score(potentials, states)


def _solver(name: str) -> str:
    for module in ("pymatching", "rustworkx"):
        if name not in ("auto", module):
            continue
        try:
            __import__(module)
            return module
        except ImportError:
            continue
    missing = "PyMatching or rustworkx" if name == "auto" else name
    raise ImportError(f"best configurations of planar Ising models need {missing}: pip install 'partita[planar]'")


def _pymatching_join(pairs: IntArray, weights: FloatArray, odd: Any) -> Any:
    """Edges of least weight that have an odd number at each odd vertex, and an even one at others."""
    import pymatching

    m = len(pairs)
    incidence = sp.csc_array((np.ones(2 * m, np.uint8), (pairs.ravel(), np.repeat(np.arange(m), 2))), shape=(len(odd), m))
    return pymatching.Matching(sp.csc_matrix(incidence), weights=weights).decode(odd.astype(np.uint8)) > 0


def _rustworkx_join(pairs: IntArray, weights: FloatArray, odd: Any) -> Any:
    """The same, by shortest ways between all odd vertices."""
    import rustworkx as rx

    size, ends = len(odd), np.flatnonzero(odd)
    graph = with_narrow_indices(sp.csr_array((weights, (pairs[:, 0], pairs[:, 1])), shape=(size, size)))
    distance, before = dijkstra(graph, directed=False, indices=ends, return_predecessors=True)
    between = distance[:, ends]
    top = between[np.isfinite(between)].max()
    complete: Any = rx.PyGraph(multigraph=False)
    complete.add_nodes_from(range(len(ends)))
    i, j = np.nonzero(np.triu(np.isfinite(between), 1))
    gains = (top - between[i, j]).astype(np.int64).tolist()
    complete.add_edges_from(list(zip(i.tolist(), j.tolist(), gains, strict=True)))
    number = {(a, b): e for e, (a, b) in enumerate(pairs.tolist())}
    mask = np.zeros(len(pairs), dtype=bool)
    for a, b in rx.max_weight_matching(complete, max_cardinality=True, weight_fn=int):
        v = int(ends[b])
        while v != ends[a]:
            p = int(before[a, v])
            mask[number[min(p, v), max(p, v)]] ^= True
            v = p
    return mask
