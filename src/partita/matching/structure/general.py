"""Sets of edges of any graph in which no two share a vertex."""

from __future__ import annotations

from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components

from ...core.arrays.potentials import real_array, whole_array
from ...core.arrays.sparse import with_narrow_indices
from ...core.enumeration import check_few
from ...core.memory import check_memory, product
from ...core.results import FloatArray, IntArray
from ...core.validation import check_count, check_flag
from ..kernels import covariances, many, permanent
from ..registry import find_engine
from .common import Matchings, which_example
from .duals import RANGE, partial_duals

#: The partner of a vertex that `enumerate` has not come to.
_OPEN = -2


class Matching(Matchings):
    """Matchings of any graph: p(y) proportional to exp of the sum of the weights of the edges in y.

    Parameters
    ----------
    graph : int or array of shape (edges, 2)
        The number of vertices of a complete graph, or pairs of vertices.
    perfect : bool
        Every vertex is in an edge. Else vertices may stay alone.
    n_vertices : int, optional
        Default: what `graph` shows.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Notes
    -----
    Potentials are weights of edges, of shape (edges,) or (examples, edges); those of a complete graph may also be symmetric
    matrices, of shape (n, n) or (examples, n, n), whose diagonals do not matter. -inf forbids an edge. y is an array with
    the partner of every vertex, -1 for none.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import Matching
    >>> np.exp(Matching(4).log_partition(np.zeros((4, 4)))).round(6)
    array([3.])
    >>> np.exp(Matching([(0, 1), (1, 2)], perfect=False).log_partition([0.0, 0.0])).round(6)
    array([3.])
    """

    left = 0

    def __init__(
        self, graph: int | ArrayLike, perfect: bool = True, n_vertices: int | None = None, n_jobs: int | None = None
    ) -> None:
        self.perfect: bool = check_flag("perfect", perfect)
        self.complete: bool = np.ndim(graph) == 0
        if self.complete:
            n = check_count("graph", graph, minimum=2)
            check_memory(f"a complete graph of {n} vertices", 40 * product((n, n)), "Give the edges there are")
            self.ends = np.column_stack(np.triu_indices(n, 1)).astype(np.int64)
        else:
            self.ends: IntArray = checked_edges(graph)
            n = int(self.ends.max()) + 1
        self.n_vertices: int = n if n_vertices is None else check_count("n_vertices", n_vertices, minimum=n)
        check_memory(f"a graph of {self.n_vertices} vertices", 64 * self.n_vertices, "Number vertices from 0 without gaps")
        if perfect and self.n_vertices % 2:
            raise ValueError(f"a perfect matching needs an even number of vertices, got {self.n_vertices}")
        super().__init__(n_jobs)

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges."""
        W = real_array("potentials", potentials)
        n = self.n_vertices
        if self.complete and W.ndim in (2, 3) and W.shape[-2:] == (n, n):
            flat = np.ascontiguousarray(W.reshape(-1, n, n)[:, self.ends[:, 0], self.ends[:, 1]])
            below = W.reshape(-1, n, n)[:, self.ends[:, 1], self.ends[:, 0]]
            if not np.allclose(flat, below, rtol=1e-9, atol=1e-9, equal_nan=True):
                raise ValueError("potentials must be symmetric matrices")
            return self.checked(flat, (n, n), W)
        return self.checked(np.atleast_2d(W), (self.n_edges,), W)

    def is_single(self, potentials: ArrayLike) -> bool:
        n = self.n_vertices
        return np.ndim(potentials) == 1 or (self.complete and np.shape(potentials) == (n, n))

    def shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        shape = np.shape(potentials)
        if shape[-2:] != (self.n_vertices, self.n_vertices) or not self.complete:
            return values.reshape(shape)
        return self.matrices(values).reshape(shape)

    def matrices(self, values: FloatArray) -> FloatArray:
        """Numbers of edges as symmetric matrices."""
        return symmetric(values, self.ends, self.n_vertices)

    def partners(self, y: ArrayLike) -> IntArray:
        """Checked partners of all vertices, a row for each example."""
        n = self.n_vertices
        shape = f"{n} integers, the partner of each vertex"
        found = np.atleast_2d(whole_array("y", y, shape))
        if found.ndim != 2 or found.shape[1] != n or not len(found):
            raise ValueError(f"y must be {shape}; got {found.shape} of {found.dtype}")
        alone = found < 0
        if self.perfect and alone.any():
            raise ValueError("y leaves a vertex without a partner, but matchings are perfect")
        bad = (found >= n) | (found < -1) | (found == np.arange(n))
        back = np.take_along_axis(found, np.where(alone | bad, 0, found), axis=1)
        bad |= ~alone & ~bad & (back != np.arange(n))
        if bad.any():
            row, v = np.argwhere(bad)[0]
            partner, where = found[row, v], which_example(int(row), len(found))
            raise ValueError(f"y must be a matching: vertex {v} has partner {partner}, not the reverse{where}")
        return found.astype(np.int64)

    def indicators(self, y: ArrayLike) -> FloatArray:
        found = self.partners(y)
        out = np.zeros((len(found), self.n_edges))
        i, j = self.ends[:, 0], self.ends[:, 1]
        out[:] = found[:, i] == j
        missing = (found >= 0).sum(1) != 2 * out.sum(1)
        if missing.any():
            raise ValueError(f"y has an edge that the graph has not{which_example(int(np.argmax(missing)), len(found))}")
        return out

    def exact_sums(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        A, alone, shift = self._scaled(flat)
        log_z = np.empty(len(flat))
        tau = np.zeros((0, 1, 1)) if marginals is None else np.zeros_like(A)
        self.for_each(many.pairings, flat, A, alone, log_z, tau)
        if marginals is not None:
            marginals[:] = tau[:, self.ends[:, 0], self.ends[:, 1]]
        self._check_range(flat, log_z)
        return self.check_possible(log_z + shift)

    def covariances(self, flat: FloatArray, directions: FloatArray) -> FloatArray:
        A, alone, _ = self._scaled(flat)
        size = np.abs(directions).max(axis=1, keepdims=True)
        D = self.matrices(directions / np.where(size > 0.0, size, 1.0))
        out = np.empty_like(A)
        self.for_each(covariances.pairings, flat, A, alone, D, out)
        return np.asarray(out[:, self.ends[:, 0], self.ends[:, 1]] * size)

    @cached_property
    def two_sided(self) -> bool:
        """Whether the graph is bipartite: whether every vertex, taken twice, is in two parts of the doubled graph."""
        V, (i, j) = self.n_vertices, self.ends.T
        if self.complete:
            return V == 2
        doubled = sp.csr_array(
            (np.ones(2 * len(i)), (np.concatenate([i, j]), V + np.concatenate([j, i]))), shape=(2 * V, 2 * V)
        )
        part = connected_components(with_narrow_indices(doubled), directed=False)[1]
        return bool((part[:V] != part[V:]).all())

    def _check_range(self, flat: FloatArray, log_z: FloatArray) -> None:
        """Products of scaled weights may vanish; what is forbidden is something else."""
        for b in np.flatnonzero(log_z == -np.inf).tolist():
            try:
                self.best(flat[b : b + 1])
            except ValueError:
                continue
            raise ValueError(f"the weights of example {b} are too far apart for exact sums: choose engine='bethe'")

    def _scaled(self, flat: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Symmetric matrices with entries up to one, what staying alone costs, and the logarithms of their divisors: half of
        the largest weights of vertices, or where sums would be out of range, half of the duals on the doubled graph."""
        W = self.matrices(flat)
        W[:, self.matrices(np.ones((1, self.n_edges)))[0] == 0.0] = -np.inf
        top = W.max(axis=1)
        halves = 0.5 * np.where(top > -np.inf, top, 0.0)
        if not self.perfect:
            halves = np.maximum(halves, 0.0)
        A, alone = self._divided(W, halves)
        safe = 0.5 * self.n_vertices * np.log(A[:, self.ends[:, 0], self.ends[:, 1]].min(1) + 1e-300) > -RANGE
        doubtful = np.flatnonzero(~(safe & self.complete) if self.perfect else halves.sum(1) > RANGE)
        if len(doubtful):
            log_z = np.empty(len(doubtful))
            self.for_each(many.pairings, flat[doubtful], A[doubtful], alone[doubtful], log_z, np.zeros((0, 1, 1)))
            far = doubtful[log_z < -RANGE]
            for b in far.tolist():
                halves[b] = self._halves(W[b])
            A[far], alone[far] = self._divided(W[far], halves[far])
        return A, alone, halves.sum(1)

    def _divided(self, W: FloatArray, halves: FloatArray) -> tuple[FloatArray, FloatArray]:
        A = np.exp(np.minimum(W - (halves[:, :, None] + halves[:, None, :]), 0.0))
        return A, np.zeros_like(halves) if self.perfect else np.exp(-halves)

    def _halves(self, W: FloatArray) -> FloatArray:
        """Numbers of vertices whose sums are at least the weights of edges, and together nearly as small as can be."""
        finite = np.isfinite(W)
        if not finite.any():
            return np.zeros(len(W))
        if not self.perfect:
            u, v, _ = partial_duals(W, False, self.workers)
            return np.asarray(0.5 * (u + v))
        low = -1e6 - 2.0 * np.abs(W[finite]).sum()
        filled = np.where(finite, W, low)
        columns = find_engine("assignment")(filled[None], self.workers)[0]
        u, v = find_engine("assignment_duals")(filled, columns)
        return np.asarray(0.5 * (u + v))

    def best(self, weights: FloatArray) -> IntArray:
        """Partners in the best matchings, for a checked matrix of examples times edges."""
        found: IntArray = find_engine("general_matching")(self, self.rows(weights))
        return found

    def as_given(self, values: FloatArray) -> FloatArray:
        """A matrix of examples times edges; on complete graphs, as an array of symmetric matrices."""
        return self.matrices(values) if self.complete else values

    def draws(self, flat: FloatArray, size: int, random: np.random.Generator) -> IntArray:
        """Independent matchings of one example as partners, shape (size, vertices)."""
        A, alone, _ = self._scaled(flat)
        sums = np.empty(1 << self.n_vertices)
        permanent.pairings(A[0], alone[0], sums)
        with np.errstate(divide="ignore"):
            log_z = np.log(sums[-1:])
        self._check_range(flat, log_z)
        self.check_possible(log_z)
        draws = np.empty((size, self.n_vertices), np.int64)
        many.draw_pairings(A[0], alone[0], sums, random.random((size, self.n_vertices)), draws)
        return draws

    def enumerate(self) -> IntArray:
        """Every matching of a small graph as partners, shape (matchings, vertices).

        A TooLargeError if there are more than a million, or more than a million ways to begin one.
        """
        rows = np.full((1, self.n_vertices), _OPEN)
        for v in range(self.n_vertices):
            undecided, parts = rows[rows[:, v] == _OPEN], [rows[rows[:, v] != _OPEN]]
            partners = [] if self.perfect else [-1]
            partners += self.ends[self.ends[:, 0] == v, 1].tolist()
            able = [undecided[:, w] == _OPEN if w >= 0 else np.ones(len(undecided), bool) for w in partners]
            count = len(parts[0]) + sum(int(some.sum()) for some in able)
            check_few(float(count), self.n_vertices, "matchings, or ways to begin one,")
            for w, some in zip(partners, able, strict=True):
                chosen = undecided[some]
                chosen[:, v] = w
                if w >= 0:
                    chosen[:, w] = v
                parts.append(chosen)
            rows = np.concatenate(parts)
        return rows[np.lexsort(rows.T[::-1])]


def symmetric(values: FloatArray, ends: IntArray, n: int) -> FloatArray:
    """Numbers of edges as symmetric matrices."""
    out = np.zeros((len(values), n, n))
    out[:, ends[:, 0], ends[:, 1]] = values
    out[:, ends[:, 1], ends[:, 0]] = values
    return out


def checked_edges(graph: ArrayLike) -> IntArray:
    """Different pairs of different vertices, each in order."""
    pairs = np.asarray(graph)
    if pairs.ndim != 2 or pairs.shape[1:] != (2,) or not len(pairs) or pairs.dtype.kind not in "iu" or pairs.min() < 0:
        raise ValueError(f"graph must be a number of vertices or an array of pairs of them, got shape {pairs.shape}")
    check_memory(f"a graph with vertex {pairs.max()}", 64 * int(pairs.max()), "Number vertices from 0 without gaps")
    ends = np.sort(pairs.astype(np.int64), axis=1)
    if (ends[:, 0] == ends[:, 1]).any():
        raise ValueError(
            f"graph has an edge from vertex {ends[np.argmax(ends[:, 0] == ends[:, 1]), 0]} to itself: leave it out"
        )
    order = np.lexsort((np.arange(len(ends)), ends[:, 1], ends[:, 0]))
    again = np.flatnonzero((np.diff(ends[order], axis=0) == 0).all(1))
    if len(again):
        first, second = order[again[0] : again[0] + 2].tolist()
        raise ValueError(
            f"graph has an edge twice, {pairs[first].tolist()} in row {first} and {pairs[second].tolist()} in row {second} "
            f"({len(again)} in all): give each once, in either direction, with its weight or features"
        )
    return ends
