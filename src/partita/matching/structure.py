"""Sets of edges in which no two share a vertex."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..core.arrays.potentials import are_potentials, not_potential, real_array, refusal, whole_array
from ..core.contracts.engine import Engine
from ..core.errors import TooLargeError
from ..core.memory import check_memory, check_sample, product
from ..core.parallel import Workers
from ..core.random import generator
from ..core.results import FloatArray, IntArray, Result
from ..core.stopped_short import report
from ..core.validation import check_choice, check_count, check_flag
from .kernels import many, permanent
from .registry import find_engine

ENGINES = ("auto", "exact", "bethe", "frank_wolfe", "perturb_and_map")
#: Vertices of one side, or of a whole graph, up to which sums are exact at all, and up to which ``"auto"`` takes them.
LARGEST_EXACT, AUTO_EXACT = 24, 14


class _Matchings:
    """What both kinds of matchings share: potentials are weights of edges, marginals their probabilities.

    Inside, potentials are a matrix with a row for each example and a column for each edge.
    """

    n_vertices: int
    ends: IntArray  # the two vertices of every edge
    left: int  # every edge joins one of so many first vertices with one of the others; 0 if that is not so
    perfect: bool

    def __init__(self, n_jobs: int | None) -> None:
        self.n_edges = len(self.ends)
        self.n_jobs, self.workers = n_jobs, Workers(n_jobs)

    @cached_property
    def graph(self) -> tuple[Any, ...]:
        """The arrays of `kernels.bethe`, and the vertex at the other end of each half-edge."""
        return half_edges(self.ends, self.n_vertices, self.left)

    @cached_property
    def one_other(self) -> tuple[Any, Any]:
        """The ends of edges as two arrays, for `kernels.scaling`."""
        ends = self.ends.astype(np.uint32)
        return np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges."""
        raise NotImplementedError

    def _shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        """A matrix of numbers of edges in the shape of the potentials."""
        raise NotImplementedError

    def _edges(self, y: ArrayLike) -> FloatArray:
        """Checked matchings as a matrix of zeros and ones: examples times edges."""
        raise NotImplementedError

    def _checked(self, flat: FloatArray, tail: tuple[int, ...], potentials: ArrayLike) -> FloatArray:
        if flat.ndim != 2 or flat.shape[-1] != self.n_edges:
            raise ValueError(f"potentials must have shape {tail} or (examples, *{tail}), got {np.shape(potentials)}")
        if not len(flat):
            raise ValueError("potentials hold no example")
        if not are_potentials(flat):
            raise refusal("potentials", float(flat[not_potential(flat)][0]), forbids="forbids an edge")
        return flat

    def rows(self, weights: ArrayLike) -> FloatArray:
        """A checked matrix of examples times edges, which engines take."""
        return self._checked(real_array("weights", weights), (self.n_edges,), weights)

    def score(self, potentials: ArrayLike, y: ArrayLike) -> FloatArray:
        """The sum of the weights of the edges in a matching, of each example; -inf if one is forbidden."""
        flat, chosen = self.weights(potentials), self._edges(y)
        rows = max(len(flat), len(chosen))
        if min(len(flat), len(chosen)) not in (1, rows):
            raise ValueError(f"potentials and y must have as many examples, or one; got {len(flat)} and {len(chosen)}")
        picked = np.broadcast_to(flat, (rows, self.n_edges))
        used = np.broadcast_to(chosen, picked.shape) > 0.0
        return np.asarray(np.where(used, picked, 0.0).sum(1))

    def log_partition(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z of each example, or what the engine takes for it; see `infer`."""
        if self._choose(engine, options) != "exact":
            return self.infer(potentials, engine, **options).log_z
        return self._exact(self.weights(potentials), None)

    def infer(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> Result:
        """log Z of each example, and the probability of every edge, in the shape of the potentials.

        Parameters
        ----------
        engine : {"auto", "exact", "bethe", "frank_wolfe", "perturb_and_map"}
            ``"exact"`` sums over all sets of vertices, of which there must be few. ``"bethe"`` is the largest negative free
            energy with the weights `rho` of its entropies, by messages or scalings; `gap` says how far below the largest
            it can be, `lower` and `upper` are bounds on log Z. ``"frank_wolfe"`` is the same through best matchings only.
            ``"auto"`` is exact for small graphs unless an option is given, else ``"bethe"``.
            On graphs that are not bipartite, ``"bethe"`` maximises over all numbers of edges with degrees of one, not over
            means of matchings: two triangles joined by one edge have a single perfect matching, through that edge, but
            where the triangles weigh more, their edges get halves. ``"frank_wolfe"`` stays within means of matchings.
        options
            See `partita.matching.engines.bethe` (`rho`, `tol`, `max_iter`, `messages`) and `matching_frank_wolfe`.
        """
        flat = self.weights(potentials)
        name = self._choose(engine, options)
        if name == "exact":
            result = self.free_energy(flat)
        elif name != "bethe":
            result = replace(find_engine(name)(self, flat, **options), engine=name)
            report(f"engine {name}", result.status)
        else:
            result = self.free_energy(flat, **({"rho": 1.0} | options))
        if not result.exact:
            result = result.within(*self._trivial_bounds(flat))
        return replace(result, marginals=self._shaped(result.marginals, potentials))

    def _trivial_bounds(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Numbers below and above log Z. If every vertex chose an edge, or none, by itself, with half of its weight, all
        matchings would be among the choices; on two sides the vertices of one side choose for both."""
        B, V = len(flat), self.n_vertices
        place = (V * np.arange(B)[:, None] + self.ends.T.ravel()).ravel()
        weights = np.tile(flat if self.left else 0.5 * flat, (1, 2)).ravel()
        top = np.full(B * V, -np.inf if self.perfect else 0.0)
        np.maximum.at(top, place, weights)
        top = np.where(top > -np.inf, top, 0.0)
        sums = np.bincount(place, np.exp(weights - top[place]), B * V)
        if not self.perfect:
            sums += np.exp(-top)
        with np.errstate(divide="ignore"):
            logs = (top + np.log(sums)).reshape(B, V)
        upper = np.minimum(logs[:, : self.left].sum(1), logs[:, self.left :].sum(1)) if self.left else logs.sum(1)
        room = 1e-13 * (1.0 + np.abs(logs).sum(1))
        lower = np.full(B, -np.inf if self.perfect else 0.0)
        return lower, np.where(np.isfinite(upper), upper + room, np.inf)

    def free_energy(self, weights: FloatArray, messages: Any = None, **options: Any) -> Result:
        """`infer` on a checked matrix of examples times edges: exact without options, else by free energies."""
        if not options:
            weights = self.rows(weights)
            marginals = np.zeros_like(weights)
            log_z = self._exact(weights, marginals)
            return Result(log_z, marginals, lower=log_z, upper=log_z)
        infer: Engine[_Matchings] = find_engine("bethe")
        result = infer(self, weights, messages=messages, **options)
        report("engine bethe", result.status)
        return replace(result, engine="bethe")

    def _one(self, potentials: ArrayLike, size: int) -> FloatArray:
        """Checked potentials of the one example that is to be drawn from, and that the draws will fit."""
        check_sample(size, self.n_vertices)
        flat = self.weights(potentials)
        if len(flat) != 1:
            raise ValueError(f"potentials must be those of one example, got {len(flat)}")
        return flat

    def _choose(self, engine: str, options: dict[str, Any]) -> str:
        check_choice("engine", engine, ENGINES)
        size = self.left or self.n_vertices
        if engine == "exact" and size > LARGEST_EXACT:
            raise TooLargeError(
                f"exact sums over matchings of {size} vertices need 2^{size} entries; the limit is 2^{LARGEST_EXACT}. "
                "Choose engine='bethe'"
            )
        if engine == "exact" and options:
            raise ValueError(f"engine 'exact' has no options, got {', '.join(sorted(options))}")
        if engine == "auto":
            return "exact" if size <= AUTO_EXACT and not options else "bethe"
        return engine

    def _exact(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        raise NotImplementedError

    def _possible(self, log_z: FloatArray) -> FloatArray:
        if not (log_z > -np.inf).all():
            i = int(np.argmin(log_z > -np.inf))
            raise ValueError(f"potentials forbid every matching of example {i}, or its graph has none")
        return log_z

    def _each(self, kernel: Any, flat: FloatArray, *state: Any) -> None:
        """Run a kernel over the examples, on all threads."""
        work = float(len(flat)) * 2.0 ** (self.left or self.n_vertices)
        self.workers.run(lambda lo, hi: kernel(*state, lo, hi), Workers.ranges(len(flat), 20.0 * work))


class BipartiteMatching(_Matchings):
    """Permutations: p(y) proportional to exp of the sum of ``W[i, y[i]]``.

    Parameters
    ----------
    n : int
        Vertices on each side.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Notes
    -----
    Potentials W have shape (n, n) or (examples, n, n); -inf forbids an edge. y is an array of n columns, one for each row.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import BipartiteMatching
    >>> W = np.log([[1.0, 2.0], [3.0, 4.0]])
    >>> np.exp(BipartiteMatching(2).log_partition(W)).round(6)
    array([10.])
    >>> BipartiteMatching(2).infer(W).marginals
    array([[0.4, 0.6],
           [0.6, 0.4]])
    """

    perfect = True

    def __init__(self, n: int, n_jobs: int | None = None) -> None:
        self.n = check_count("n", n, minimum=1)
        check_memory(f"a matching of n={n}", 64 * product((n, n)), "Lower n, or use Matching with the edges there are")
        self.n_vertices, self.left = 2 * n, n
        self.ends = np.column_stack([np.repeat(np.arange(n), n), n + np.tile(np.arange(n), n)])
        super().__init__(n_jobs)

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges, row by row."""
        W = real_array("potentials", potentials)
        if W.ndim not in (2, 3) or W.shape[-2:] != (self.n, self.n):
            n = self.n
            raise ValueError(f"potentials must have shape ({n}, {n}) or (examples, {n}, {n}), got {W.shape}")
        return self._checked(W.reshape(-1, self.n_edges), (self.n, self.n), W)

    def _shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        return values.reshape(np.shape(potentials))

    def permutations(self, y: ArrayLike) -> IntArray:
        """Checked permutations, a row for each example."""
        shape = f"{self.n} integers, a column for each row"
        columns = np.atleast_2d(whole_array("y", y, shape))
        if columns.ndim != 2 or columns.shape[1] != self.n or not len(columns):
            raise ValueError(f"y must be {shape}; got {columns.shape} of {columns.dtype}")
        wrong = np.flatnonzero((np.sort(columns, axis=1) != np.arange(self.n)).any(1))
        if len(wrong):
            where = _where(int(wrong[0]), len(columns))
            alone = np.flatnonzero(columns[wrong[0]] == -1).tolist()
            if alone:
                raise ValueError(f"y leaves row {alone[0]} without a column (-1){where}, but all rows are matched here")
            raise ValueError(f"y must be a permutation of 0..{self.n - 1}{where}")
        return columns.astype(np.int64)

    def _edges(self, y: ArrayLike) -> FloatArray:
        columns = self.permutations(y)
        out = np.zeros((len(columns), self.n, self.n))
        np.put_along_axis(out, columns[:, :, None], 1.0, axis=2)
        return out.reshape(len(columns), -1)

    def _exact(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        A, shift = self._scaled(flat)
        log_z = np.empty(len(flat))
        tau = np.zeros((0, self.n, self.n)) if marginals is None else marginals.reshape(-1, self.n, self.n)
        self._each(many.assignments, flat, A, log_z, tau)
        return self._possible(log_z + shift)

    def _scaled(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Matrices with entries up to one, and ones for the best permutation; and the logarithms of their divisors."""
        W = self.as_given(flat).copy()
        shift = np.zeros(len(W))
        with np.errstate(invalid="ignore"):
            for axis in (2, 1):
                top = W.max(axis=axis, keepdims=True)
                top = np.where(top > -np.inf, top, 0.0)
                W -= top
                shift += top.sum(axis=(1, 2))
        for b in np.flatnonzero(W.min(axis=(1, 2)) < -300.0 / self.n):  # products of few entries could vanish
            finite = np.where(W[b] > -np.inf, W[b], -1e6 - np.abs(W[b][W[b] > -np.inf]).sum())
            columns = find_engine("assignment")(finite[None], self.workers)[0]
            u, v = find_engine("assignment_duals")(finite, columns)
            W[b] -= u[:, None] + v
            shift[b] += u.sum() + v.sum()
        return np.exp(np.minimum(W, 0.0)), shift

    def argmax(self, potentials: ArrayLike) -> tuple[IntArray, FloatArray]:
        """The best permutation and its score, of each example."""
        columns = self.best(self.weights(potentials))
        value = self._possible(self.score(potentials, columns))
        return (columns[0] if np.ndim(potentials) == 2 else columns), value

    def best(self, weights: FloatArray) -> IntArray:
        """The best permutations, for a checked matrix of examples times edges."""
        found: IntArray = find_engine("assignment")(self.as_given(self.rows(weights)), self.workers)
        return found

    def as_given(self, values: FloatArray) -> FloatArray:
        """A matrix of examples times edges as an array of matrices."""
        return values.reshape(-1, self.n, self.n)

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None, **options: Any) -> IntArray:
        """`size` permutations, shape (size, n), of one example: independent ones for small n, else by a Markov chain."""
        flat = self._one(potentials, size)
        if self.n > LARGEST_EXACT - 2 or options:
            return np.asarray(find_engine("markov_chain")(self, flat[0], size, generator(random_state), **options))
        A, _ = self._scaled(flat)
        sums = np.empty(1 << self.n)
        permanent.assignments(A[0], sums)
        self._possible(np.log(sums[-1:]))
        draws = np.empty((size, self.n), np.int64)
        many.draw_assignments(A[0], sums, generator(random_state).random((size, self.n)), draws)
        return draws


class Matching(_Matchings):
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
        self.perfect = check_flag("perfect", perfect)
        self.complete = np.ndim(graph) == 0
        if self.complete:
            n = check_count("graph", graph, minimum=2)
            check_memory(f"a complete graph of {n} vertices", 40 * product((n, n)), "Give the edges there are")
            self.ends = np.column_stack(np.triu_indices(n, 1)).astype(np.int64)
        else:
            self.ends = _checked_edges(graph)
            n = int(self.ends.max()) + 1
        self.n_vertices = n if n_vertices is None else check_count("n_vertices", n_vertices, minimum=n)
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
            return self._checked(flat, (n, n), W)
        return self._checked(np.atleast_2d(W), (self.n_edges,), W)

    def _shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        shape = np.shape(potentials)
        if shape[-2:] != (self.n_vertices, self.n_vertices) or not self.complete:
            return values.reshape(shape)
        return self.matrices(values).reshape(shape)

    def matrices(self, values: FloatArray) -> FloatArray:
        """Numbers of edges as symmetric matrices."""
        out = np.zeros((len(values), self.n_vertices, self.n_vertices))
        out[:, self.ends[:, 0], self.ends[:, 1]] = values
        out[:, self.ends[:, 1], self.ends[:, 0]] = values
        return out

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
            partner, where = found[row, v], _where(int(row), len(found))
            raise ValueError(f"y must be a matching: vertex {v} has partner {partner}, not the reverse{where}")
        return found.astype(np.int64)

    def _edges(self, y: ArrayLike) -> FloatArray:
        found = self.partners(y)
        out = np.zeros((len(found), self.n_edges))
        i, j = self.ends[:, 0], self.ends[:, 1]
        out[:] = found[:, i] == j
        missing = (found >= 0).sum(1) != 2 * out.sum(1)
        if missing.any():
            raise ValueError(f"y has an edge that the graph has not{_where(int(np.argmax(missing)), len(found))}")
        return out

    def _exact(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        A, alone, shift = self._scaled(flat)
        log_z = np.empty(len(flat))
        tau = np.zeros((0, 1, 1)) if marginals is None else np.zeros_like(A)
        self._each(many.pairings, flat, A, alone, log_z, tau)
        if marginals is not None:
            marginals[:] = tau[:, self.ends[:, 0], self.ends[:, 1]]
        self._check_range(flat, log_z)
        return self._possible(log_z + shift)

    def _check_range(self, flat: FloatArray, log_z: FloatArray) -> None:
        """Products of scaled weights may vanish; what is forbidden is something else."""
        for b in np.flatnonzero(log_z == -np.inf).tolist():
            try:
                self.best(flat[b : b + 1])
            except ValueError:
                continue
            raise ValueError(f"the weights of example {b} are too far apart for exact sums: choose engine='bethe'")

    def _scaled(self, flat: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Symmetric matrices with entries up to one, what staying alone costs, and the logarithms of their divisors."""
        W = self.matrices(flat)
        W[:, self.matrices(np.ones((1, self.n_edges)))[0] == 0.0] = -np.inf
        halves = np.zeros(W.shape[:2])
        for b in range(len(W)):
            halves[b] = self._halves(W[b])
        W -= halves[:, :, None] + halves[:, None, :]
        alone = np.zeros_like(halves) if self.perfect else np.exp(-halves)
        return np.exp(np.minimum(W, 0.0)), alone, halves.sum(1)

    def _halves(self, W: FloatArray) -> FloatArray:
        """Numbers of vertices whose sums are at least the weights of edges."""
        finite = np.isfinite(W)
        if not finite.any():
            return np.zeros(len(W))
        if not self.perfect:
            return np.asarray(np.maximum(0.5 * W.max(axis=1), 0.0))
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

    def argmax(self, potentials: ArrayLike) -> tuple[IntArray, FloatArray]:
        """The partners in the best matching and its score, of each example."""
        flat = self.weights(potentials)
        partners = self.best(flat)
        value = self._possible(self.score(flat, partners))
        single = np.ndim(potentials) == 1 or (self.complete and np.shape(potentials) == (self.n_vertices, self.n_vertices))
        return (partners[0] if single else partners), value

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None, **options: Any) -> IntArray:
        """`size` matchings as partners, shape (size, vertices), of one example: independent ones of small graphs, else by
        a Markov chain."""
        flat = self._one(potentials, size)
        if self.n_vertices > LARGEST_EXACT - 2 or options:
            return np.asarray(find_engine("markov_chain")(self, flat[0], size, generator(random_state), **options))
        A, alone, _ = self._scaled(flat)
        sums = np.empty(1 << self.n_vertices)
        permanent.pairings(A[0], alone[0], sums)
        with np.errstate(divide="ignore"):
            log_z = np.log(sums[-1:])
        self._check_range(flat, log_z)
        self._possible(log_z)
        draws = np.empty((size, self.n_vertices), np.int64)
        uniforms = generator(random_state).random((size, self.n_vertices))
        many.draw_pairings(A[0], alone[0], sums, uniforms, draws)
        return draws


def _where(row: int, count: int) -> str:
    """Which of several examples is wrong, for the end of a message."""
    return f" (example {row})" if count > 1 else ""


def _checked_edges(graph: ArrayLike) -> IntArray:
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


def half_edges(ends: IntArray, n_vertices: int, left: int) -> tuple[Any, ...]:
    """The arrays of `kernels.bethe` of a graph given by the ends of its edges, and neighbours of half-edges.

    Those of a graph with one kind of vertices have every vertex twice, and every edge in both directions, one after the
    other: free energies are then twice as large, and solutions the same.
    """
    if not left:
        step = np.array([0, n_vertices])
        ends = np.concatenate([ends + step, ends[:, ::-1] + step])
        n_vertices, left = 2 * n_vertices, n_vertices
    m = len(ends)
    owner = np.concatenate([ends[:, 0], ends[:, 1]])
    order = np.argsort(owner, kind="stable")
    place = np.empty(2 * m, np.int64)
    place[order] = np.arange(2 * m)
    starts = np.concatenate(([0], np.cumsum(np.bincount(owner, minlength=n_vertices)))).astype(np.int64)
    edges = order % max(m, 1)
    others = place[(order + m) % (2 * m)] if m else place
    neighbours = np.concatenate([ends[:, 1], ends[:, 0]])[order]
    return (starts, edges, others, np.ascontiguousarray(ends), left), neighbours
