"""Sets of edges of largest weight in which every vertex has its number of edges, or at most that.

A linear program says how edges are best shared out. On bipartite graphs its answer has no shares; where it has none, it is
the best set. Else the graph is replaced by one whose matchings are such sets (Tutte), which goes to rustworkx.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.optimize import linprog

from ...core.results import FloatArray, IntArray
from ...core.validation import check_count, check_flag
from ...inference.oracle import Answer, checked, integer_scale, scored

#: Weights are integers for rustworkx: the largest is so many.
_SCALE = 2.0**44


class BMatchingOracle:
    """The best set of edges that has `b` edges at every vertex, each edge at most once.

    Parameters
    ----------
    edges : array of int, shape (edges, 2)
        Two different vertices each; an edge may be there several times.
    b : int or array of int
        How many edges each vertex has, one number for all or one for each.
    perfect : bool
        Vertices have exactly so many edges. Else at most.
    n_vertices : int, optional
        Default: as many as `b` has entries, or as `edges` shows.

    Notes
    -----
    Potentials are weights of edges; -inf forbids one. `delta` of an answer is what duality of linear programs, or rounding
    weights to integers, leaves open. Graphs that are not bipartite may need rustworkx (``partita[matching]``).

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import BMatchingOracle
    >>> square = [(0, 1), (1, 2), (2, 3), (3, 0), (0, 2)]
    >>> answer = BMatchingOracle(square, [2, 1, 2, 1])(np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    >>> answer.point, answer.value
    (array([0., 1., 0., 1., 1.]), 11.0)
    """

    perfect: bool
    delta: float

    polytope = "exact"

    def __init__(self, edges: ArrayLike, b: int | ArrayLike, perfect: bool = True, n_vertices: int | None = None) -> None:
        ends = np.asarray(edges)
        if ends.ndim != 2 or ends.shape[1:] != (2,) or not len(ends) or ends.dtype.kind not in "iu" or ends.min() < 0:
            raise ValueError(f"edges must be an array of pairs of vertices, got shape {ends.shape} of {ends.dtype}")
        loops = np.flatnonzero(ends[:, 0] == ends[:, 1])
        if len(loops):
            raise ValueError(f"edge {loops[0]} goes from vertex {ends[loops[0], 0]} to itself")
        self.ends: IntArray = ends.astype(np.int64)
        seen = int(ends.max()) + 1
        shown = seen if np.ndim(b) == 0 else max(seen, len(np.asarray(b)))
        self.n_vertices: int = shown if n_vertices is None else check_count("n_vertices", n_vertices, minimum=seen)
        self.b: IntArray = self._numbers(b)
        self.perfect, self.delta = check_flag("perfect", perfect), 0.0
        if perfect and self.b.sum() % 2:
            raise ValueError(
                f"b must have an even sum for perfect matchings, because edges have two ends; got {self.b.sum()}"
            )

    def _numbers(self, b: int | ArrayLike) -> IntArray:
        n, numbers = self.n_vertices, np.asarray(b)
        if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (n,)):
            raise ValueError(
                f"b must be an integer or {n} of them, one for each vertex; got {numbers.shape} of {numbers.dtype}"
            )
        if numbers.min() < 0:
            raise ValueError(f"b must not be negative, got {numbers.min()} for vertex {int(np.argmin(numbers))}")
        return np.broadcast_to(numbers, n).astype(np.int64)

    def __call__(self, potentials: FloatArray) -> Answer:
        w = checked(potentials, len(self.ends), "weights, one for each edge")
        usable = (w > -np.inf) if self.perfect else (w > 0.0)
        kept = np.flatnonzero(usable & (self.b[self.ends] > 0).all(1))
        point = np.zeros(len(w))
        point[kept], self.delta = self._best(w[kept], self.ends[kept])
        degrees = _degrees(self.ends, point, self.n_vertices)
        if (degrees != self.b if self.perfect else degrees > self.b).any():
            raise RuntimeError("the solver failed: its answer has too many or too few edges at a vertex")
        return scored(point, w, self.polytope, self.delta)

    def _best(self, w: FloatArray, ends: IntArray) -> tuple[FloatArray, float]:
        """Which edges are in the best set, and how much better the best can be."""
        missing = np.flatnonzero(_degrees(ends, np.ones(len(ends)), self.n_vertices) < self.b)
        if self.perfect and len(missing):
            raise ValueError(f"there is no perfect b-matching: vertex {missing[0]} has too few edges that are not forbidden")
        if not len(ends):
            return np.zeros(0), 0.0
        shares, bound = self._shares(w, ends)
        whole = np.abs(np.rint(shares))
        if np.abs(shares - whole).max() <= 1e-6:
            return whole, max(0.0, bound - float(w @ whole))
        return self._tutte(w, ends)

    def _shares(self, w: FloatArray, ends: IntArray) -> tuple[FloatArray, float]:
        """Shares of edges by the simplex method, and a number that no set of edges can exceed."""
        m, size = len(w), float(np.abs(w).max()) or 1.0
        incidence = sp.csr_array((np.ones(2 * m), (ends.ravel(), np.repeat(np.arange(m), 2))), shape=(self.n_vertices, m))
        rows = {"A_eq": incidence, "b_eq": self.b} if self.perfect else {"A_ub": incidence, "b_ub": self.b}
        tight = {"primal_feasibility_tolerance": 1e-9, "dual_feasibility_tolerance": 1e-9}
        found: Any = linprog(-w / size, bounds=(0.0, 1.0), method="highs-ds", options=tight, **rows)
        if found.status == 2:
            raise ValueError("there is no perfect b-matching: too many edges are missing or forbidden")
        if found.x is None:
            raise RuntimeError(f"HiGHS failed: {found.message}")
        prices = -size * (found.eqlin if self.perfect else found.ineqlin).marginals
        if not self.perfect:
            prices = np.maximum(prices, 0.0)
        return found.x, float(prices @ self.b + np.maximum(w - prices[ends].sum(1), 0.0).sum())

    def _tutte(self, w: FloatArray, ends: IntArray) -> tuple[FloatArray, float]:
        """Vertices become as many as they have edges, edges two that are joined to each other and to those of their ends.

        An edge is in the set if both its vertices are matched to others. In perfect matchings there is no half of that; else
        all three kinds of pairs weigh w, so that a half is worth as much as nothing.
        """
        try:
            import rustworkx as rx
        except ImportError:
            raise ImportError("b-matchings on general graphs need rustworkx: pip install 'partita[matching]'") from None
        m, b = len(w), np.minimum(self.b, _degrees(ends, np.ones(len(w)), self.n_vertices)).astype(np.int64)
        low = float(w.min()) if self.perfect else 0.0
        scale = integer_scale(_SCALE, float((w - low).max()))
        whole = np.rint((w - low) * scale).astype(np.int64).tolist()
        first = 2 * m + np.concatenate(([0], np.cumsum(b)))
        graph: Any = rx.PyGraph(multigraph=False)
        graph.add_nodes_from(range(int(first[-1])))
        graph.add_edges_from([(2 * e, 2 * e + 1, 0 if self.perfect else whole[e]) for e in range(m)])
        halves = enumerate(ends.ravel().tolist())
        graph.add_edges_from([(h, c, whole[h // 2]) for h, v in halves for c in range(first[v], first[v + 1])])
        used = np.zeros(2 * m)
        for i, j in rx.max_weight_matching(graph, max_cardinality=self.perfect, weight_fn=int):
            if max(i, j) >= 2 * m:
                used[min(i, j)] = 1.0
        both = used[0::2] * used[1::2]
        if self.perfect and (_degrees(ends, both, self.n_vertices) != self.b).any():
            raise ValueError("there is no perfect b-matching: too many edges are missing or forbidden")
        return both, 0.5 * float(np.minimum(b.sum(), m)) / scale


def best_edges(ends: IntArray, b: IntArray, perfect: bool, weights: FloatArray) -> FloatArray:
    """The edges of the best b-matching, as zeros and ones."""
    return BMatchingOracle(ends, b, perfect)(weights).point


def b_matchings(structure: Any, weights: FloatArray) -> IntArray:
    """The best b-matchings of a `BMatching`, as zeros and ones, for a checked matrix of examples times edges."""

    listed = structure.listed
    if listed is not None:
        return np.array([_best_listed(listed, row) for row in weights])

    def best(row: FloatArray) -> FloatArray:
        return best_edges(structure.ends, structure.b, structure.perfect, row)

    return np.array(structure.workers.run(best, [(row,) for row in weights])).astype(np.int64)


def _best_listed(listed: IntArray, weights: FloatArray) -> IntArray:
    """The best of a list of all."""
    forbidden = np.isneginf(weights)
    scores = listed @ np.where(forbidden, 0.0, weights)
    if forbidden.any():
        scores[listed[:, forbidden].any(1)] = -np.inf
    if not scores.max(initial=-np.inf) > -np.inf:
        raise ValueError("there is no perfect b-matching: too many edges are missing or forbidden")
    return np.asarray(listed[int(np.argmax(scores))])


def _degrees(ends: IntArray, point: FloatArray, n_vertices: int) -> FloatArray:
    return np.asarray(np.bincount(ends.ravel(), weights=np.repeat(point, 2), minlength=n_vertices), dtype=np.float64)
