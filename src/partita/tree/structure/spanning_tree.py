"""Spanning trees of a graph: sets of edges that join all vertices without a cycle."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.potentials import LARGEST, are_potentials, not_potential, real_array, refusal
from ...core.errors import TooLargeError
from ...core.memory import check_memory, check_sample
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_choice, check_count, check_flag, check_no_options
from ...inference.black_box import infer_black_box
from ..kernels import checks
from ..kernels.graphs import Graphs
from . import sums
from .best import best_edges
from .black_box import tree_examples
from .layout import checked_edges, complete_edges, ends, on_one_graph

ENGINES = ("auto", "exact", "frank_wolfe")
#: Trees that `SpanningTree.enumerate` writes out.
MOST_TREES = 200_000
EdgeArray = NDArray[np.int8]


class SpanningTree:
    """Spanning trees of one graph: p(y) proportional to exp of the sum of the potentials of the edges in y.

    Parameters
    ----------
    n_vertices : int
        Vertices are numbered from 0.
    edges : array of int, shape (edges, 2), optional
        Pairs of vertices. An edge that comes again, for undirected trees also in the other direction, is the same edge;
        the attribute `edges` has each once, in the order in which they came first. Default: all pairs. If directed, all
        pairs but those into the root, by dependents, and for each dependent by heads.
    directed : bool
        Trees lead away from the root: every other vertex is the dependent of one head. Edges are pairs (head, dependent);
        those into the root are in no tree.
    root : int
        Trees that are not directed do not depend on it.
    single_root : bool
        Only trees in which the root has one dependent. Default: False, as in graph theory. For sentences, where the root is
        an artificial word and one word is said to be the head of the whole, see `DependencyTrees`.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Notes
    -----
    Potentials have shape (edges,) or (examples, edges); -inf forbids an edge. Marginals come in the same shape. y has zeros
    and ones for edges, of the same shape; of directed trees it may also be an array of the heads of all vertices, with -1
    for that of the root.

    Sums are those of the matrix-tree theorems of Kirchhoff and Tutte. Determinants and inverses are computed by an
    elimination without subtractions, in numbers with a wide range of exponents where doubles would not do: log Z and
    marginals are right to nearly all digits, whether potentials differ by one or by thousands. Time grows with the cube of
    the number of vertices, memory with its square.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.tree import SpanningTree
    >>> triangle = SpanningTree(3)
    >>> triangle.edges.tolist()
    [[0, 1], [0, 2], [1, 2]]
    >>> result = triangle.infer(np.log([1.0, 2.0, 3.0]))
    >>> np.exp(result.log_z).round(6), result.marginals.round(6)
    (array([11.]), array([0.454545, 0.727273, 0.818182]))
    >>> triangle.argmax(np.log([1.0, 2.0, 3.0]))[0]
    array([0, 1, 1], dtype=int8)
    """

    directed: bool
    single_root: bool
    n_jobs: int | None
    workers: Workers

    def __init__(
        self,
        n_vertices: int,
        edges: ArrayLike | None = None,
        directed: bool = False,
        root: int = 0,
        single_root: bool = False,
        n_jobs: int | None = None,
    ) -> None:
        self.n_vertices: int = check_count("n_vertices", n_vertices, minimum=1)
        check_memory(f"a graph of {n_vertices} vertices", 64 * self.n_vertices, "Number vertices from 0 without gaps")
        self.directed, self.single_root = check_flag("directed", directed), check_flag("single_root", single_root)
        self.root: int = check_count("root", root)
        if self.root >= self.n_vertices:
            raise ValueError(f"root must be a vertex, from 0 to {self.n_vertices - 1}; got {root}")
        if self.single_root and not (self.directed and self.n_vertices > 1):
            raise ValueError("single_root=True is for directed trees of two vertices or more")
        self.complete: bool = edges is None
        if edges is None:
            self.edges: IntArray = complete_edges(self.n_vertices, self.directed, self.root)
        else:
            self.edges = checked_edges(edges, self.n_vertices, self.directed)
        self.n_edges: int = len(self.edges)
        self.n_jobs, self.workers = n_jobs, Workers(n_jobs)
        self._ends = ends(self.edges, self.directed, self.root)

    def graphs(self, count: int) -> Graphs:
        """The arrays of `kernels.graphs` for so many examples."""
        return on_one_graph(*self._ends, self.n_vertices, count, self.directed, self.single_root)

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges."""
        given = real_array("potentials", potentials)
        flat = self._rows("potentials", given)
        if not are_potentials(flat):
            row, edge = np.argwhere(not_potential(flat))[0].tolist()
            where = f": edge {edge}, {self.edges[edge].tolist()}{_where(row, len(flat))}"
            raise refusal("potentials", float(flat[row, edge]), where, "forbids an edge")
        return flat

    def _rows(self, name: str, given: FloatArray) -> FloatArray:
        if given.ndim not in (1, 2) or given.shape[-1] != self.n_edges:
            shape = f"({self.n_edges},) or (examples, {self.n_edges}), a number for each edge"
            cure = "; see `edge_values` for matrices" if given.shape[-2:] == (self.n_vertices, self.n_vertices) else ""
            raise ValueError(f"{name} must have shape {shape}; got {given.shape}{cure}")
        if not len(np.atleast_2d(given)):
            raise ValueError(f"{name} hold no example")
        return np.atleast_2d(given)

    def trees(self, y: ArrayLike) -> EdgeArray:
        """Checked trees as a matrix of zeros and ones: examples times edges."""
        given = np.asarray(y)
        if self.directed and given.dtype.kind in "iu" and given.ndim in (1, 2) and given.shape[-1] == self.n_vertices:
            heads = np.atleast_2d(given)
            if (heads[:, self.root] == -1).all():
                return self._from_heads(heads)
        chosen = self._rows("y", real_array("y", given))
        binary = (chosen == 0.0) | (chosen == 1.0)
        if not binary.all():
            row, edge = np.argwhere(~binary)[0].tolist()
            heads_too = f", or heads of vertices with -1 for the root, {self.root}" if self.directed else ""
            raise ValueError(
                f"y must be zeros and ones, one for each edge{heads_too}; got {chosen[row, edge]:g} for edge "
                f"{edge}{_where(row, len(chosen))}"
            )
        return self._checked(chosen.astype(np.int8))

    def _checked(self, chosen: EdgeArray) -> EdgeArray:
        graphs, codes = self.graphs(len(chosen)), np.empty(len(chosen), np.int64)
        checks.edge_sets(graphs, np.ascontiguousarray(chosen).reshape(-1), 0, len(chosen), codes)
        if codes.any():
            row = int(np.argmax(codes != checks.TREE))
            fault = _fault(int(codes[row]), int(chosen[row].sum()), self.n_vertices)
            raise ValueError(f"y is not a spanning tree{_where(row, len(chosen))}: {fault}")
        return chosen

    @cached_property
    def _numbers(self) -> tuple[IntArray, IntArray]:
        """Head and dependent of each edge as one number, sorted, and the edges in that order."""
        keys = self.edges[:, 0] * self.n_vertices + self.edges[:, 1]
        order = np.argsort(keys)
        return keys[order], order

    def _from_heads(self, heads: IntArray) -> EdgeArray:
        dependents = np.delete(np.arange(self.n_vertices), self.root)
        own = heads[:, dependents].astype(np.int64)
        keys, order = self._numbers
        wanted = own * self.n_vertices + dependents
        place = np.minimum(np.searchsorted(keys, wanted), max(0, len(keys) - 1))
        missing = (own < 0) | (own >= self.n_vertices)
        missing |= keys[place] != wanted if len(keys) else True
        if missing.any():
            row, d = np.argwhere(missing)[0].tolist()
            raise ValueError(
                f"y has an edge that the graph has not{_where(row, len(heads))}: "
                f"head {own[row, d]} of vertex {dependents[d]}"
            )
        chosen = np.zeros((len(heads), self.n_edges), np.int8)
        np.put_along_axis(chosen, order[place], np.int8(1), axis=1)
        return self._checked(chosen)

    def heads(self, y: ArrayLike) -> IntArray:
        """The head of every vertex of directed trees, -1 for the root: shape (vertices,) or (examples, vertices)."""
        if not self.directed:
            raise ValueError("edges of undirected trees have no heads: build the structure with directed=True")
        chosen = self.trees(y)
        out = np.full((len(chosen), self.n_vertices), -1, np.int64)
        row, edge = np.nonzero(chosen)
        out[row, self.edges[edge, 1]] = self.edges[edge, 0]
        return out[0] if np.ndim(y) == 1 else out

    def edge_values(self, matrices: ArrayLike) -> FloatArray:
        """Numbers of edges from matrices of shape (vertices, vertices) or (examples, vertices, vertices), with heads, or the
        first vertices of `edges`, as rows."""
        given, n = real_array("matrices", matrices), self.n_vertices
        if given.ndim not in (2, 3) or given.shape[-2:] != (n, n):
            raise ValueError(f"matrices must have shape ({n}, {n}) or (examples, {n}, {n}); got {given.shape}")
        return np.ascontiguousarray(given[..., self.edges[:, 0], self.edges[:, 1]])

    def score(self, potentials: ArrayLike, y: ArrayLike) -> FloatArray:
        """The sum of the potentials of the edges in a tree, of each example; -inf if one is forbidden."""
        flat, chosen = self.weights(potentials), self.trees(y)
        rows = max(len(flat), len(chosen))
        if min(len(flat), len(chosen)) not in (1, rows):
            raise ValueError(f"potentials and y must have as many examples, or one; got {len(flat)} and {len(chosen)}")
        return np.asarray(np.where(chosen == 1, flat, 0.0).sum(1))

    def log_partition(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z of each example."""
        if check_choice("engine", engine, ENGINES) == "frank_wolfe":
            return self.infer(potentials, engine, **options).log_z
        check_no_options(engine, options)
        flat = self.weights(potentials)
        log_z = self._log_partitions(flat)
        self._possible(log_z)
        return log_z

    def _log_partitions(self, flat: FloatArray) -> FloatArray:
        """log Z of each example; -inf if it has no tree."""
        return sums.log_partitions(self.graphs(len(flat)), flat.reshape(-1), self.workers)

    def infer(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> Result:
        """log Z of each example, and the probability of every edge, in the shape of the potentials.

        Parameters
        ----------
        engine : {"auto", "exact", "frank_wolfe"}
            ``"exact"`` is the matrix-tree theorem. ``"frank_wolfe"`` asks a solver for best trees and nothing else, and is
            above log Z: a check of what black boxes cost, see `partita.inference.infer_parts`.
        options
            Of ``"frank_wolfe"``: `oracle`, a function of the potentials of one example, or an object with ``argmax``, that
            returns the best tree in the form of y (default: the structure's own); `entropy`, `variant`, `tol`, `max_iter`.
        """
        flat = self.weights(potentials)
        if check_choice("engine", engine, ENGINES) == "frank_wolfe":
            self.best(flat)  # refuses what has no tree
            marginals, result = infer_black_box(tree_examples(self, flat), **options)
            return replace(result, marginals=np.array(marginals).reshape(np.shape(potentials)))
        check_no_options(engine, options)
        found = sums.infer(self.graphs(len(flat)), flat.reshape(-1), self.workers)
        self._possible(found.log_z)
        return Result(found.log_z, found.marginals.reshape(np.shape(potentials)), lower=found.log_z, upper=found.log_z)

    def covariance_product(self, potentials: ArrayLike, direction: ArrayLike) -> FloatArray:
        """The Hessian of log Z times a direction: covariances of every edge with the sum of `direction` over the tree.

        Parameters
        ----------
        potentials : array
        direction : array
            A number for each edge, for all examples or for each.

        Returns
        -------
        product : array of shape (edges,) or (examples, edges)

        Notes
        -----
        It is the derivative of the marginals along the direction, with the arithmetic of three times the marginals. The
        transfer-current theorem gives the same by two products with the inverse Laplacian, but these lose digits where
        weights are far apart.
        """
        flat, along = self.weights(potentials), self._rows("direction", real_array("direction", direction))
        check_direction(along)
        if len(along) not in (1, len(flat)):
            raise ValueError(f"direction must be for one example or all {len(flat)}; got {len(along)}")
        rows = along if len(along) == len(flat) else np.repeat(along, len(flat), axis=0)
        found = sums.infer(self.graphs(len(flat)), flat.reshape(-1), self.workers, rows.reshape(-1))
        self._possible(found.log_z)
        return found.products.reshape(np.shape(potentials))

    def _possible(self, log_z: FloatArray) -> None:
        if not (log_z > -np.inf).all():
            row = int(np.argmin(log_z > -np.inf))
            kind = "tree with one edge at the root" if self.single_root else "spanning tree"
            raise ValueError(
                f"there is no {kind}{_where(row, len(log_z))}: potentials forbid every one, or the graph has none"
            )

    def argmax(self, potentials: ArrayLike) -> tuple[EdgeArray, FloatArray]:
        """The best tree, as zeros and ones, and its score, of each example."""
        flat = self.weights(potentials)
        chosen = self.best(flat)
        value = np.asarray(np.where(chosen == 1, flat, 0.0).sum(1))
        return (chosen[0] if np.ndim(potentials) == 1 else chosen), value

    def best(self, weights: FloatArray) -> EdgeArray:
        """The best trees, for a checked matrix of examples times edges.

        Undirected ones by SciPy, directed ones by the algorithm of Chu, Liu and Edmonds.
        """
        if not self.directed:
            chosen = best_edges(self.edges, self.n_vertices, weights)
            found = chosen.sum(1) == self.n_vertices - 1
        else:
            heads, found = sums.best_heads(self.graphs(len(weights)), weights.reshape(-1), self.workers)
            chosen = self._chosen(heads.reshape(len(weights), self.n_vertices - 1))
        self._possible(np.where(found, 0.0, -np.inf))
        return chosen

    def _chosen(self, heads: IntArray) -> EdgeArray:
        """Zeros and ones from heads of vertices, both numbered with the root as 0."""
        rows, columns = self._ends
        padded = np.concatenate([np.full((len(heads), 1), -1, np.int64), heads], axis=1)
        chosen = padded[:, rows] == columns
        if not self.directed:
            chosen |= (padded[:, columns] == rows) & (columns > 0)
        return np.asarray(chosen, np.int8)

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None) -> EdgeArray:
        """`size` independent trees as zeros and ones, shape (size, edges) or (size, examples, edges).

        By Wilson's algorithm; where weights are so far apart that its walks would take too long, by sums.
        """
        flat = self.weights(potentials)
        n = check_sample(size, len(flat) * (self.n_edges + self.n_vertices))
        graphs, values = self.graphs(len(flat)), flat.reshape(-1)
        self._possible(sums.log_partitions(graphs, values, self.workers))
        heads = sums.draw_heads(graphs, values, self.workers, n, generator(random_state))
        chosen = self._chosen(heads.reshape(n * len(flat), self.n_vertices - 1))
        return chosen.reshape(n, *np.shape(potentials))

    def enumerate(self) -> IntArray:
        """Every tree, as zeros and ones: shape (trees, edges)."""
        digits = float(self._log_partitions(np.zeros((1, self.n_edges)))[0]) / np.log(10.0)
        if digits > np.log10(MOST_TREES):
            raise TooLargeError(f"the graph has about 10^{digits:.1f} trees; at most {MOST_TREES} are written out")
        rows, columns = self._ends
        pairs = [(rows, columns)] if self.directed else [(rows, columns), (columns[columns > 0], rows[columns > 0])]
        candidates = [sorted(h for i, j in pairs for h in j[i == v].tolist()) for v in range(1, self.n_vertices)]
        found = list(_trees([0] * self.n_vertices, 1, candidates))
        heads = np.array(found, np.int64).reshape(-1, self.n_vertices)[:, 1:]
        if self.single_root:
            heads = heads[(heads == 0).sum(1) == 1]
        return self._chosen(heads).astype(np.int64)


def _trees(heads: list[int], v: int, candidates: list[list[int]]) -> Any:
    """Heads of all vertices, if those of the vertices before v are known."""
    if v == len(heads):
        yield list(heads)
        return
    for h in candidates[v - 1]:
        u = h
        while 0 < u < v:
            u = heads[u]
        if u != v:
            heads[v] = h
            yield from _trees(heads, v + 1, candidates)


def check_direction(direction: FloatArray) -> None:
    """Raise a ValueError unless derivatives along a direction stay within range."""
    if not (np.abs(direction).max(initial=0.0) <= LARGEST):  # NaN too
        raise ValueError(f"direction must be finite numbers of at most {LARGEST:g} in size")


def _where(row: int, count: int) -> str:
    """Which of several examples is meant, for messages."""
    return f" in example {row}" if count > 1 else ""


def _fault(code: int, count: int, n_vertices: int) -> str:
    """What a code of `kernels.checks` means."""
    return {
        checks.INTO_ROOT: "it has an edge into the root",
        checks.COUNT: f"it has {count} edges, and needs {n_vertices - 1} to join {n_vertices} vertices",
        checks.HEADS: "a vertex has two heads, another none",
        checks.CYCLE: "it has a cycle",
        checks.ROOT_EDGES: "single_root=True asks for one edge at the root",
    }[code]
