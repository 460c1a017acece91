"""What all sets of matchings share: weights of edges, engines, bounds."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.arrays.potentials import are_potentials, not_potential, real_array, refusal
from ...core.errors import TooLargeError
from ...core.memory import check_sample
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_choice, check_count, check_no_options
from ...core.warn import report
from ..registry import find_engine
from .half_edges import half_edges
from .kbest import murty

ENGINES = ("auto", "exact", "bethe", "frank_wolfe", "perturb_and_map")
#: Vertices of one side, or of a whole graph, up to which sums are exact at all, and up to which ``"auto"`` takes them.
LARGEST_EXACT, AUTO_EXACT = 24, 14
#: Numbers of workspace that exact sums may take.
LARGEST_ROOM = 2.0**27


class Matchings:
    """Matchings, with weights of edges as potentials and their probabilities as marginals.

    Inside, potentials are a matrix with a row for each example and a column for each edge. A kind of matchings says how
    potentials and matchings look from outside, and how to sum, maximise, draw and list.
    """

    n_jobs: int | None
    workers: Workers

    n_vertices: int
    ends: IntArray  # the two vertices of every edge
    left: int  # every edge joins one of so many first vertices with one of the others; 0 if that is not so
    perfect: bool

    def __init__(self, n_jobs: int | None) -> None:
        self.n_edges: int = len(self.ends)
        self.n_jobs, self.workers = n_jobs, Workers(n_jobs)
        #: How many edges each vertex has, or at most.
        self.b: IntArray = np.ones(self.n_vertices, np.int64)
        if not self.perfect:
            self.b = np.minimum(self.b, np.bincount(self.ends.ravel(), minlength=self.n_vertices))

    @property
    def complement(self) -> Matchings | None:
        """Perfect matchings that are what b-matchings leave out, if these leave out one edge at each vertex."""
        return None

    @property
    def is_padded(self) -> bool:
        """Whether engines that are not exact see sides of different sizes filled up."""
        return False

    @property
    def exact_size(self) -> int:
        """The number of vertices whose sets exact sums go over."""
        return self.n_vertices

    @property
    def exact_work(self) -> float:
        """About how many products the exact marginals of one example take."""
        return 0.5 * self.exact_size * 2.0 ** min(self.exact_size, 1000)

    @property
    def exact_room(self) -> float:
        """Numbers of workspace of exact sums."""
        return 2.0 * 2.0 ** min(self.exact_size, 1000)

    @property
    def is_small(self) -> bool:
        """Whether exact sums are within reach."""
        return self.exact_size <= LARGEST_EXACT and self.exact_room <= LARGEST_ROOM

    @property
    def two_sided(self) -> bool:
        """Whether the graph is bipartite. Bethe's value is then at most log Z, whoever may stay alone: sums over the edges
        of a vertex, with or without none of them, are real stable polynomials (Straszak and Vishnoi, Belief Propagation,
        Bethe Approximation and Polynomials, 2017; for perfect matchings Gurvits, 2011)."""
        return self.left > 0

    @cached_property
    def may_stay_alone(self) -> NDArray[np.bool_]:
        """Which vertices need no edge."""
        return np.full(self.n_vertices, not self.perfect)

    @cached_property
    def _edges_by_vertex(self) -> tuple[IntArray, IntArray]:
        owners = self.ends.T.ravel()
        order = np.argsort(owners, kind="stable")
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners, minlength=self.n_vertices))])
        return starts, order % max(self.n_edges, 1)

    def edges_at(self, vertex: int) -> IntArray:
        """Numbers of the edges of a vertex."""
        starts, edges = self._edges_by_vertex
        return edges[starts[vertex] : starts[vertex + 1]]

    @cached_property
    def graph(self) -> tuple[Any, ...]:
        """The arrays of `kernels.messages.bethe`, and the vertex at the other end of each half-edge."""
        return half_edges(self.ends, self.n_vertices, self.left)

    @cached_property
    def half(self) -> tuple[Any, Any, Any]:
        """Half-edges as `kernels.messages.cardinality` reads them."""
        (starts, edges, others, _, _), _ = half_edges(self.ends, self.n_vertices, self.n_vertices)
        return starts, edges, others

    @cached_property
    def one_other(self) -> tuple[Any, Any]:
        """The ends of edges as two arrays, for `kernels.messages.scaling`."""
        ends = self.ends.astype(np.uint32)
        return np.ascontiguousarray(ends[:, 0]), np.ascontiguousarray(ends[:, 1])

    def weights(self, potentials: ArrayLike) -> FloatArray:
        """Checked potentials as a matrix: examples times edges."""
        raise NotImplementedError

    def is_single(self, potentials: ArrayLike) -> bool:
        """Whether potentials, which were checked, are those of one example and not of a batch."""
        raise NotImplementedError

    def shaped(self, values: FloatArray, potentials: ArrayLike) -> FloatArray:
        """A matrix of numbers of edges in the shape of the potentials."""
        raise NotImplementedError

    def indicators(self, y: ArrayLike) -> FloatArray:
        """Checked matchings as a matrix of zeros and ones: examples times edges."""
        raise NotImplementedError

    def exact_sums(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        """log Z of each example, and the probabilities of edges, written to `marginals` unless that is None."""
        raise NotImplementedError

    def covariances(self, flat: FloatArray, directions: FloatArray) -> FloatArray:
        """The covariance of edges of each example times a direction, exactly: the derivative of the marginals."""
        raise NotImplementedError

    def best(self, weights: FloatArray) -> IntArray:
        """The best matchings, for a matrix of examples times edges."""
        raise NotImplementedError

    def draws(self, flat: FloatArray, size: int, random: np.random.Generator) -> IntArray:
        """Independent matchings of one example."""
        raise NotImplementedError

    def enumerate(self) -> IntArray:
        """Every matching of a small graph, a row each."""
        raise NotImplementedError

    def checked(self, flat: FloatArray, tail: tuple[int, ...], potentials: ArrayLike) -> FloatArray:
        """The matrix of examples times edges, if it is one; `tail` is the shape of the potentials of one example."""
        if flat.ndim != 2 or flat.shape[-1] != self.n_edges:
            raise ValueError(f"potentials must have shape {tail} or (examples, *{tail}), got {np.shape(potentials)}")
        if not len(flat):
            raise ValueError("potentials hold no example")
        if not are_potentials(flat):
            raise refusal("potentials", float(flat[not_potential(flat)][0]), forbids="forbids an edge")
        return flat

    def rows(self, weights: ArrayLike) -> FloatArray:
        """A checked matrix of examples times edges, which engines take."""
        return self.checked(real_array("weights", weights), (self.n_edges,), weights)

    def score(self, potentials: ArrayLike, y: ArrayLike) -> FloatArray:
        """The sum of the weights of the edges in a matching, of each example; -inf if one is forbidden."""
        return self._totals(self.weights(potentials), self.indicators(y))

    def score_of(self, weights: FloatArray, y: ArrayLike) -> FloatArray:
        """The same for a checked matrix of examples times edges."""
        return self._totals(weights, self.indicators(y))

    def _totals(self, flat: FloatArray, chosen: FloatArray) -> FloatArray:
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
        return self.exact_sums(self.weights(potentials), None)

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
            result = replace(self.ask(name, flat, **options), engine=name)
            report(f"engine {name}", result.status)
        else:
            result = self.free_energy(flat, **({"rho": 1.0} | options))
        if not result.exact:
            result = result.within(*self._trivial_bounds(flat))
        return replace(result, marginals=self.shaped(result.marginals, potentials))

    def _trivial_bounds(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Numbers below and above log Z. If every vertex chose an edge, or none, by itself, with half of its weight, all
        matchings would be among the choices; on two sides the vertices of one side choose for both."""
        B, V = len(flat), self.n_vertices
        place = (V * np.arange(B)[:, None] + self.ends.T.ravel()).ravel()
        weights = np.tile(flat if self.left else 0.5 * flat, (1, 2)).ravel()
        top = np.tile(np.where(self.may_stay_alone, 0.0, -np.inf), B)
        np.maximum.at(top, place, weights)
        top = np.where(top > -np.inf, top, 0.0)
        sums = np.bincount(place, np.exp(weights - top[place]), B * V)
        alone = np.tile(self.may_stay_alone, B)
        sums[alone] += np.exp(-top[alone])
        with np.errstate(divide="ignore"):
            logs = (top + np.log(sums)).reshape(B, V)
        upper = np.minimum(logs[:, : self.left].sum(1), logs[:, self.left :].sum(1)) if self.left else logs.sum(1)
        room = 1e-13 * (1.0 + np.abs(logs).sum(1))
        lower = np.full(B, 0.0 if self.may_stay_alone.all() else -np.inf)
        return lower, np.where(np.isfinite(upper), upper + room, np.inf)

    def free_energy(self, weights: FloatArray, messages: Any = None, **options: Any) -> Result:
        """`infer` on a checked matrix of examples times edges: exact without options, else by free energies."""
        if not options:
            weights = self.rows(weights)
            marginals = np.zeros_like(weights)
            log_z = self.exact_sums(weights, marginals)
            return Result(log_z, marginals, lower=log_z, upper=log_z)
        result = self.ask("bethe", weights, messages=messages, **options)
        report("engine bethe", result.status)
        return replace(result, engine="bethe")

    def ask(self, engine: str, weights: FloatArray, **options: Any) -> Result:
        """What an engine that is not exact answers about a matrix of examples times edges."""
        result: Result = find_engine(engine)(self, weights, **options)
        return result

    def argmax(self, potentials: ArrayLike) -> tuple[IntArray, FloatArray]:
        """The best matching and its score, of each example."""
        flat = self.weights(potentials)
        y = self.best(flat)
        value = self.check_possible(self._totals(flat, self.indicators(y)))
        return (y[0] if self.is_single(potentials) else y), value

    def kbest(self, potentials: ArrayLike, k: int) -> list[tuple[IntArray, FloatArray]]:
        """Of each example, at most k matchings, best first, and their scores: Murty's algorithm.

        Examples
        --------
        >>> from partita.structures import BipartiteMatching
        >>> ((matchings, scores),) = BipartiteMatching(2).kbest([[0.0, 1.0], [2.0, 4.0]], 5)
        >>> matchings.tolist(), scores.tolist()
        ([[0, 1], [1, 0]], [4.0, 3.0])
        """
        flat = self.weights(potentials)
        k = check_count("k", k, minimum=1)
        return [murty(self, row, k) for row in flat]

    def sample(self, potentials: ArrayLike, size: int, random_state: Any = None, **options: Any) -> IntArray:
        """`size` matchings, shape (size, ...) with the shape of y: independent ones of small graphs, else by a Markov chain.

        `options` are those of the Markov chain, which they ask for.
        """
        flat = self.weights(potentials)
        n = check_sample(size, self.n_vertices * len(flat))
        random = generator(random_state)
        if self.exact_size > LARGEST_EXACT - 2 or not self.is_small or options:
            chain = find_engine("markov_chain")
            draws = [np.asarray(chain(self, row, n, random, **options)) for row in flat]
        else:
            draws = [self.draws(row[None], n, random) for row in flat]
        return draws[0] if self.is_single(potentials) else np.stack(draws, axis=1)

    def _choose(self, engine: str, options: dict[str, Any]) -> str:
        check_choice("engine", engine, ENGINES)
        if engine == "exact":
            self.check_small("Choose engine='bethe'")
            check_no_options(engine, options)
        if engine == "auto":
            return "exact" if self.exact_size <= AUTO_EXACT and self.is_small and not options else "bethe"
        return engine

    def check_small(self, cure: str) -> None:
        """Raise a TooLargeError if exact sums are out of reach."""
        size = self.exact_size
        if size > LARGEST_EXACT:
            raise TooLargeError(
                f"exact sums over matchings of {size} vertices need 2^{size} entries; the limit is 2^{LARGEST_EXACT}. {cure}"
            )
        if not self.is_small:
            raise TooLargeError(
                f"exact sums over these matchings need {self.exact_room:.3g} numbers at a time; the limit is "
                f"{LARGEST_ROOM:.3g}. {cure}"
            )

    def check_possible(self, log_z: FloatArray) -> FloatArray:
        """The same, if no example has all its matchings forbidden."""
        if not (log_z > -np.inf).all():
            i = int(np.argmin(log_z > -np.inf))
            raise ValueError(f"potentials forbid every matching of example {i}, or its graph has none")
        return log_z

    def for_each(self, kernel: Any, flat: FloatArray, *state: Any) -> None:
        """Run a kernel over the examples, on all threads."""
        work = float(len(flat)) * 2.0**self.exact_size
        self.workers.run(lambda lo, hi: kernel(*state, lo, hi), Workers.ranges(len(flat), 20.0 * work))


def which_example(row: int, count: int) -> str:
    """Which of several examples is wrong, for the end of a message."""
    return f" (example {row})" if count > 1 else ""
