"""b-matchings: sets of edges in which every vertex has its number of edges, or at most that."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.potentials import real_array, whole_array
from ...core.enumeration import check_few
from ...core.errors import TooLargeError
from ...core.memory import check_memory, check_sample, product
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_choice, check_count, check_flag, check_no_options
from ...core.warn import report
from ..kernels import b_matching as kernels, b_matching_tangent
from ..kernels.messages import cardinality
from ..registry import find_engine
from .bipartite import BipartiteMatching
from .common import ENGINES, Matchings, which_example
from .general import Matching, checked_edges
from .kbest import lawler

#: Operations of exact sums of one example, at most (minutes), and up to which ``"auto"`` takes them.
LARGEST_EXACT, AUTO_EXACT = 2e10, 2e7
#: Products of exact sums of matchings that take as long as an operation here.
COST = 4.0
#: Edges up to which all b-matchings are listed for the best one: 4096 at most.
LISTED = 12
#: Edges up to which a best b-matching is looked for as a lower bound.
FEW = 10_000


class BMatching(Matchings):
    """b-matchings: p(y) proportional to exp of the sum of the weights of the edges in y.

    Parameters
    ----------
    graph : pair of int, int, or array of shape (edges, 2)
        Numbers of rows and columns, each row joined to each column; the number of vertices of a complete graph; or pairs of
        vertices.
    b : int, array of int, or pair
        How many edges each vertex has: one number for all; one for each vertex, rows before columns; of rows and columns
        also a pair, for all rows (or each of them) and all columns. Those of a vertex with fewer edges than that, where
        `perfect` is False, are all its edges.
    perfect : bool
        Vertices have exactly so many edges. Else at most.
    n_vertices : int, optional
        Of a graph given by its edges. Default: what `graph` shows.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Notes
    -----
    Potentials are weights of edges, of shape (rows, columns) or (edges,), or a batch of them; -inf forbids an edge. y has
    that shape too, with ones for the edges in the set and zeros for others.

    Exact sums take ``edges * (b + 1) * prod_j (b_j + 1)`` operations, the product over the vertices of one side, or of the
    whole graph.

    Examples
    --------
    Ways to give three people up to two of four tasks each, so that no task has more than two people:

    >>> import numpy as np
    >>> from partita.structures import BMatching
    >>> np.exp(BMatching((3, 4), 2, perfect=False).log_partition(np.zeros((3, 4)))).round(6)
    array([1081.])
    >>> BMatching((2, 2), 1).infer(np.log([[1.0, 2.0], [3.0, 4.0]])).marginals
    array([[0.4, 0.6],
           [0.6, 0.4]])
    """

    left: int
    complete: bool
    table: tuple[int, int] | None

    def __init__(
        self,
        graph: int | ArrayLike,
        b: int | ArrayLike,
        perfect: bool = True,
        n_vertices: int | None = None,
        n_jobs: int | None = None,
    ) -> None:
        self.perfect: bool = check_flag("perfect", perfect)
        self.table, self.left, self.complete = None, 0, np.ndim(graph) == 0
        if np.ndim(graph) == 1:
            self.table = _sides(graph)
            rows, columns = self.table
            self.left, n = rows, rows + columns
            i, j = np.divmod(np.arange(rows * columns), columns)
            self.ends = np.column_stack([i, rows + j])
        elif self.complete:
            n = check_count("graph", graph, minimum=2)
            check_memory(f"a complete graph of {n} vertices", 40 * product((n, n)), "Give the edges there are")
            self.ends = np.column_stack(np.triu_indices(n, 1)).astype(np.int64)
        else:
            self.ends: IntArray = checked_edges(graph)
            n = int(self.ends.max()) + 1
            n = n if n_vertices is None else check_count("n_vertices", n_vertices, minimum=n)
        self.n_vertices: int = n
        check_memory(f"a graph of {n} vertices", 64 * n, "Number vertices from 0 without gaps")
        super().__init__(n_jobs)
        degrees = np.bincount(self.ends.ravel(), minlength=n)
        self.b = self._checked_b(b, degrees)

    def _checked_b(self, b: Any, degrees: Any) -> IntArray:
        n, left = self.n_vertices, self.left
        numbers = _joined(b, left, n - left) if left and isinstance(b, tuple | list) and len(b) == 2 else np.array(b)
        if numbers.dtype.kind not in "iu" or numbers.shape not in ((), (n,)):
            ways = ", or a pair for rows and columns" if left else ""
            raise ValueError(
                f"b must be an integer or {n} of them, one for each vertex{ways}; got {numbers.shape} of {numbers.dtype}"
            )
        if numbers.min() < 0:
            raise ValueError(f"b must not be negative, got {numbers.min()} for vertex {int(np.argmin(numbers))}")
        out = np.broadcast_to(numbers, n).astype(np.int64)
        if not self.perfect:
            return np.asarray(np.minimum(out, degrees), dtype=np.int64)
        few = np.flatnonzero(degrees < out)
        if len(few):
            v = int(few[0])
            raise ValueError(f"b asks for {out[v]} edges at vertex {v}, which has {degrees[v]}: lower b, or perfect=False")
        one, other = (int(out[:left].sum()), int(out[left:].sum())) if left else (int(out.sum()) % 2, 0)
        if one != other:
            why = f"rows have {one} edges in all, and columns {other}" if left else f"its sum is {out.sum()}, which is odd"
            raise ValueError(f"b allows no b-matching, because edges have two ends: {why}. Change b, or take perfect=False")
        return out

    def _tail(self) -> tuple[int, ...]:
        return (self.n_edges,) if self.table is None else self.table

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges."""
        W, tail = real_array("potentials", potentials), self._tail()
        if W.ndim not in (len(tail), len(tail) + 1) or W.shape[-len(tail) :] != tail:
            raise ValueError(f"potentials must have shape {tail} or (examples, *{tail}), got {W.shape}")
        return self.checked(W.reshape(-1, self.n_edges), tail, W)

    def is_single(self, potentials: ArrayLike) -> bool:
        return np.ndim(potentials) == len(self._tail())

    def shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        return values.reshape(np.shape(potentials))

    def as_given(self, values: FloatArray) -> FloatArray:
        """A matrix of examples times edges in the shape of potentials."""
        return values.reshape(-1, *self._tail())

    def indicators(self, y: ArrayLike) -> FloatArray:
        tail = self._tail()
        shape = f"zeros and ones of shape {tail}, one for each edge"
        found = whole_array("y", y, shape)
        if found.ndim not in (len(tail), len(tail) + 1) or found.shape[-len(tail) :] != tail or not found.size:
            raise ValueError(f"y must be {shape}; got {found.shape} of {found.dtype}")
        rows = found.reshape(-1, self.n_edges)
        if ((rows != 0) & (rows != 1)).any():
            raise ValueError(f"y must be {shape}; got {rows[(rows != 0) & (rows != 1)][0]}")
        degrees = self.degrees(rows)
        wrong = np.argwhere(degrees != self.b if self.perfect else degrees > self.b)
        if len(wrong):
            row, v = wrong[0].tolist()
            raise ValueError(
                f"y has {degrees[row, v]:.0f} edges at vertex {v}{which_example(row, len(rows))}; b asks for "
                f"{'' if self.perfect else 'at most '}{self.b[v]}"
            )
        return rows.astype(np.float64)

    def degrees(self, rows: Any) -> FloatArray:
        """Sums of numbers of edges at vertices, for a matrix of examples times edges."""
        place = (self.n_vertices * np.arange(len(rows))[:, None] + self.ends.T.ravel()).ravel()
        sums = np.bincount(place, np.tile(rows, (1, 2)).ravel(), len(rows) * self.n_vertices)
        return np.asarray(sums, dtype=np.float64).reshape(len(rows), -1)

    @cached_property
    def steps(self) -> tuple[kernels.Steps, int, int]:
        """What kernels of exact sums take: the steps, the most edges of one, and the largest number of edges of one."""
        n, left, b, ends = self.n_vertices, self.left, self.b, self.ends
        radix = b + 1
        if left:
            first = product(radix[:left]) > product(radix[left:])  # rows are summed out, if columns have fewer states
            order, digits = (np.arange(left), np.arange(left, n)) if first else (np.arange(left, n), np.arange(left))
        else:
            first, order, digits = True, np.arange(n), np.arange(n)
        strides = np.zeros(n, np.int64)
        strides[digits] = np.cumprod(np.concatenate(([1], radix[digits][:-1])))
        summed, other = (ends[:, 0], ends[:, 1]) if first else (ends[:, 1], ends[:, 0])
        edges = np.argsort(summed, kind="stable")
        starts = np.searchsorted(summed[edges], np.concatenate([order, [order[-1] + 1]])).astype(np.int64)
        own = np.zeros(len(order), np.int64) if left else strides[order]
        steps = kernels.Steps(
            *(starts, edges, strides[other[edges]], b[other[edges]], own, b[order]),
            int(product(radix[digits])),
            self.perfect,
        )
        return steps, int(np.diff(starts).max()), int(b[order].max())

    @cached_property
    def complement(self) -> Matchings | None:  # type: ignore[override]
        left_out = np.bincount(self.ends.ravel(), minlength=self.n_vertices) - self.b
        if not self.perfect or (left_out != 1).any() or (self.b == 1).all():
            return None
        if self.table is not None:
            return BipartiteMatching(*self.table, n_jobs=self.n_jobs)
        return Matching(self.ends, n_vertices=self.n_vertices, n_jobs=self.n_jobs)

    @cached_property
    def operations(self) -> float:
        """Of exact sums of one example."""
        radix = [int(k) + 1 for k in self.b]
        sides = (radix[: self.left], radix[self.left :]) if self.left else (radix,)
        return float(self.n_edges * max(radix)) * float(min(product(side) for side in sides))

    @property
    def exact_work(self) -> float:
        return COST * self.operations

    @property
    def is_small(self) -> bool:
        return self.operations <= LARGEST_EXACT

    def check_small(self, cure: str) -> None:
        if not self.is_small:
            raise TooLargeError(
                f"exact sums over these b-matchings take {self.operations:.3g} operations; the limit is {LARGEST_EXACT:.3g}."
                f" {cure}"
            )
        steps, widest, most = self.steps
        needed = 8.0 * steps.size * (len(steps.caps) + 1 + (widest + 2) * (most + 1)) * self.workers.threads
        check_memory("an exact sum over b-matchings", needed, cure)

    def exact_sums(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        self.check_small("Choose engine='bethe'")
        log_z = np.empty(len(flat))
        out = np.zeros((0, self.n_edges)) if marginals is None else marginals
        given: Any = (*self.steps, np.ascontiguousarray(flat), log_z, out)
        ranges = Workers.ranges(len(flat), 20.0 * self.operations * len(flat))
        self.workers.run(lambda lo, hi: kernels.sums(*given, lo, hi), ranges)
        return self.check_possible(log_z)

    def covariances(self, flat: FloatArray, directions: FloatArray) -> FloatArray:
        self.check_small("Covariances are exact: lower b, or give fewer edges")
        out = np.zeros_like(flat)
        given: Any = (*self.steps, np.ascontiguousarray(flat), np.ascontiguousarray(directions), out)
        ranges = Workers.ranges(len(flat), 60.0 * self.operations * len(flat))
        self.workers.run(lambda lo, hi: b_matching_tangent.covariances(*given, lo, hi), ranges)
        return out

    def infer(self, potentials: ArrayLike, engine: str = "auto", **options: Any) -> Result:
        """log Z of each example, and the probability of every edge, in the shape of the potentials.

        Parameters
        ----------
        engine : {"auto", "exact", "bethe", "frank_wolfe", "perturb_and_map"}
            ``"exact"`` sums over what vertices have left to give. ``"bethe"`` is the largest negative free energy with the
            weights `rho` of its entropies, by messages (see `partita.matching.engines.b_bethe`); `gap` says how far below
            the largest it can be, `lower` and `upper` are bounds on log Z. ``"frank_wolfe"`` is the same through best
            b-matchings only. ``"auto"`` is exact for small graphs unless an option is given, else ``"bethe"``.
        options
            Of ``"bethe"``: `rho`, `tol`, `max_iter`, `messages`; of ``"frank_wolfe"``: `rho`, `tol`, `max_iter`, `variant`;
            of ``"perturb_and_map"``: `n_samples`, `random_state`.
        """
        flat, name = self.weights(potentials), self._choose(engine, options)
        if name == "exact":
            result = self.free_energy(flat)
        elif name == "bethe":
            result = self.free_energy(flat, **({"rho": 1.0} | options))
        else:
            result = replace(find_engine(f"b_{name}")(self, flat, **options), engine=name)
            report(f"engine {name}", result.status)
        if not result.exact:
            result = result.within(*self._trivial_bounds(flat))
        return replace(result, marginals=self.shaped(result.marginals, potentials))

    def _trivial_bounds(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Numbers below and above log Z: the best b-matching; and vertices that choose by themselves. Choices of one side
        say all, and of all vertices everything twice, so that the entropies of two choices are at least that of the whole
        (Shearer)."""
        logs = np.empty((len(flat), self.n_vertices))
        starts, edges = self.half[:2]
        for row, out in zip(flat, logs, strict=True):
            cardinality.log_choices(starts, edges, self.b, not self.perfect, row, out)
        upper = 0.5 * logs.sum(1)
        if self.left:
            upper = np.minimum(logs[:, : self.left].sum(1), logs[:, self.left :].sum(1))
        room = 1e-13 * (1.0 + np.abs(logs).sum(1))
        lower = np.full(len(flat), -np.inf if self.perfect else 0.0)
        if self.n_edges <= FEW:
            with suppress(ImportError):  # graphs without sides may need a solver that is not there
                chosen = self.best(flat).reshape(-1, self.n_edges)
                lower = np.maximum(lower, np.where(chosen > 0, flat, 0.0).sum(1)) - room
        return lower, np.where(np.isfinite(upper), upper + room, np.inf)

    def free_energy(self, weights: FloatArray, messages: Any = None, **options: Any) -> Result:
        """`infer` on a checked matrix of examples times edges: exact without options, else by free energies."""
        if not options:
            return super().free_energy(weights)
        result: Result = find_engine("b_bethe")(self, weights, messages=messages, **options)
        report("engine bethe", result.status)
        return replace(result, engine="bethe")

    def best(self, weights: FloatArray) -> IntArray:
        """The best b-matchings, for a matrix of examples times edges, in the shape of potentials."""
        found: IntArray = find_engine("b_matchings")(self, self.rows(weights))
        return found.reshape(-1, *self._tail())

    def kbest(self, potentials: ArrayLike, k: int) -> list[tuple[IntArray, FloatArray]]:
        """Of each example, at most k b-matchings, best first, in the shape of y, and their scores: Lawler's algorithm.

        Examples
        --------
        >>> from partita.structures import BMatching
        >>> ((chosen, scores),) = BMatching((2, 2), 1, perfect=False).kbest([[0.0, 1.0], [2.0, 4.0]], 3)
        >>> chosen.reshape(3, 4).tolist(), scores.tolist()
        ([[0, 0, 0, 1], [1, 0, 0, 1], [0, 1, 1, 0]], [4.0, 4.0, 3.0])
        """
        flat, k = self.weights(potentials), check_count("k", k, minimum=1)
        best = find_engine("b_best")
        found = [lawler(lambda *part: best(part[0], part[1], self.perfect, part[2]), self, row, k) for row in flat]
        return [(chosen.reshape(-1, *self._tail()), scores) for chosen, scores in found]

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None, **options: Any) -> IntArray:
        """`size` independent b-matchings, shape (size, ...) with the shape of y; refused where exact sums are."""
        check_no_options("exact", options)
        flat = self.weights(potentials)
        n = check_sample(size, 3 * self.n_edges * len(flat))
        self.check_small("Draws are exact: lower b, or give fewer edges")
        random = generator(random_state)
        draws = [self.draws(row[None], n, random) for row in flat]
        return draws[0] if self.is_single(potentials) else np.stack(draws, axis=1)

    def draws(self, flat: FloatArray, size: int, random: np.random.Generator) -> IntArray:
        """Independent b-matchings of one example, shape (size, ...)."""
        chosen = np.zeros((size, self.n_edges))
        uniforms = random.random((size, 1 + self.n_edges + len(self.steps[0].caps)))
        log_z = kernels.draw(*self.steps, np.ascontiguousarray(flat[0]), uniforms, chosen)
        self.check_possible(np.array([log_z]))
        return chosen.astype(np.int64).reshape(size, *self._tail())

    @cached_property
    def listed(self) -> IntArray | None:
        """All b-matchings of a graph of few edges, a row each: the best of them is then found at once."""
        return self.enumerate().reshape(-1, self.n_edges) if self.n_edges <= LISTED else None

    def _choose(self, engine: str, options: dict[str, Any]) -> str:
        check_choice("engine", engine, ENGINES)
        if engine == "exact":
            check_no_options(engine, options)
        if engine == "auto":
            return "exact" if self.operations <= AUTO_EXACT and not options else "bethe"
        return engine

    def enumerate(self) -> IntArray:
        """Every b-matching of a small graph. A TooLargeError if there are more than a million, or ways to begin one."""
        rows, degrees = np.zeros((1, self.n_edges), np.int64), np.zeros((1, self.n_vertices), np.int64)
        ahead = np.bincount(self.ends.ravel(), minlength=self.n_vertices)
        for e, (i, j) in enumerate(self.ends.tolist()):
            can = (degrees[:, i] < self.b[i]) & (degrees[:, j] < self.b[j])
            with_it, more = rows[can], degrees[can]
            with_it[:, e] = 1
            more[:, [i, j]] += 1
            rows, degrees = np.concatenate([rows, with_it]), np.concatenate([degrees, more])
            ahead[[i, j]] -= 1
            if self.perfect:
                alive = (degrees[:, [i, j]] + ahead[[i, j]] >= self.b[[i, j]]).all(1)
                rows, degrees = rows[alive], degrees[alive]
            check_few(float(len(rows)), self.n_edges + self.n_vertices, "b-matchings, or ways to begin one,")
        return rows[np.lexsort(rows.T[::-1])].reshape(-1, *self._tail())


def _joined(b: Any, rows: int, columns: int) -> Any:
    """Numbers of each row and column, from a pair of numbers or lists of them; what is wrong goes through as it is."""
    parts = [np.array(part) for part in b]
    if any(part.shape not in ((), (size,)) for part, size in zip(parts, (rows, columns), strict=True)):
        return np.array(b, dtype=object)
    return np.concatenate([np.broadcast_to(part, size) for part, size in zip(parts, (rows, columns), strict=True)])


def _sides(graph: Any) -> tuple[int, int]:
    """The numbers of rows and columns."""
    if len(graph) != 2:
        raise ValueError(f"graph must be a pair of numbers of rows and columns, or pairs of vertices; got {graph!r}")
    rows, columns = (check_count(f"graph[{k}]", size, minimum=1) for k, size in enumerate(graph))
    check_memory(f"b-matchings of {rows} x {columns}", 64 * product((rows, columns)), "Give the edges there are")
    return rows, columns
