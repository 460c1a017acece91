"""Variables with finitely many states, and factors: tables over some of them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.potentials import are_potentials, not_potential, real_array, refusal, whole_array
from ...core.contracts.engine import Engine
from ...core.errors import TooLargeError
from ...core.memory import check_memory, check_sample, product
from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.stopped_short import report
from ...core.validation import check_choice, check_count, check_real, is_whole
from ..registry import APPROXIMATE, find_engine
from .elimination import Elimination, eliminate, joined, neighbours
from .junction_tree import JunctionTree
from .mixture import Mixture
from .scopes import Scopes, flat_scopes
from .trivial_bounds import Children

ENGINES = ("auto", "exact", *APPROXIMATE)
#: Engines of `argmax`; bp is max-product.
DECODERS = ("auto", "exact", "bp", "max_flow")
#: What ``"auto"`` is where it is exact for some examples only.
MIXED = "mixed"
#: Bytes that exact sums take unless said otherwise, and entries of all tables that ``"auto"`` goes through: half a minute.
MEMORY, AUTO_ENTRIES = 4e9, 1e9
#: Bytes above which a limit means nothing.
MOST = 1e18
#: What to do about tables that do not fit.
TABLES = "Use factors of fewer variables or states"


class FactorGraph:
    """p(y) proportional to exp of the sum of a table entry for every factor.

    Parameters
    ----------
    cardinalities : array of int
        Number of states of every variable, at least one.
    factors : sequence of tuples of int
        The variables of every factor, each at most once. Several factors may have the same. An entry may also be an integer
        matrix, with a factor in every row: ``[np.arange(n)[:, None], edges]``.
    examples : array of int, optional
        The example that every variable belongs to, from 0 up in order; factors stay within one, and where there are
        several have at least one variable. Default: one example.
    n_jobs : int or None
        Threads; None means all cores. Answers do not depend on it.

    Attributes
    ----------
    offsets : array of int64
        The table of factor k is at ``offsets[k]:offsets[k + 1]`` of the potentials, its last variable changing fastest.
    size : int
        Number of entries of all tables.

    Notes
    -----
    Potentials are logarithms: one vector of all entries, a matrix of such vectors (many examples on the same graph), or a
    list of tables. -inf forbids. Marginals come in the same form: the probability of every entry, which is the gradient of
    log Z. What is forbidden altogether is a ValueError, except in `score`.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.structures import FactorGraph
    >>> graph = FactorGraph([2, 2, 2], [(0, 1), (1, 2), (2, 0)])
    >>> agree = np.log([[2.0, 1.0], [1.0, 2.0]])
    >>> graph.log_partition([agree, agree, agree]).round(6)
    array([3.332205])
    >>> result = graph.infer([agree, agree, agree])
    >>> graph.tables(result.marginals)[0].round(4)
    array([[0.3571, 0.1429],
           [0.1429, 0.3571]])
    """

    def __init__(
        self,
        cardinalities: ArrayLike,
        factors: Iterable[Any],
        *,
        examples: ArrayLike | None = None,
        n_jobs: int | None = None,
    ) -> None:
        counts = np.asarray(cardinalities)
        if counts.ndim != 1 or counts.size == 0 or counts.dtype.kind not in "iu" or counts.min() < 1:
            raise ValueError("cardinalities must be a vector of integers >= 1, one per variable")
        states = counts.sum(dtype=np.float64)
        check_memory(f"a graph whose variables have {states:.4g} states", 8.0 * states, "Lower the cardinalities")
        self.cardinalities: IntArray = counts.astype(np.int64)
        self.n_variables = len(counts)
        self.scope_offsets, self.members = flat_scopes(factors)
        self.n_factors = len(self.scope_offsets) - 1
        self._check(
            lambda scope: (
                ((scope < 0) | (scope >= self.n_variables)).any(1) | (np.diff(np.sort(scope, 1), axis=1) == 0).any(1)
            ),
            f"must have different variables below {self.n_variables}",
        )
        sizes = self._table_sizes()
        self.offsets: IntArray = np.concatenate(([0], np.cumsum(sizes)))
        self.size = int(self.offsets[-1])
        numbering = "integers, the example of every variable, from 0 up in order"
        self.examples: IntArray = (
            np.zeros(self.n_variables, np.int64)
            if examples is None
            else whole_array("examples", examples, numbering).astype(np.int64)
        )
        steps = np.diff(self.examples)
        if self.examples.shape != (self.n_variables,) or self.examples[0] != 0 or not np.isin(steps, (0, 1)).all():
            raise ValueError("examples must number the example of every variable, from 0 up in order")
        self.n_examples = int(self.examples[-1]) + 1
        if self.n_examples > 1:
            self._check(
                lambda scope: np.ptp(self.examples[scope], axis=1) > 0 if scope.shape[1] else np.ones(len(scope), bool),
                "must have variables, and all of one example",
            )
        self.n_jobs = n_jobs
        self.workers = Workers(n_jobs)

    def _table_sizes(self) -> IntArray:
        """Numbers of entries, compared with the memory there is before they are counted in integers, which overflow."""
        sizes = np.ones(self.n_factors)
        for which, scope in self._rows():
            with np.errstate(over="ignore"):
                sizes[which] = self.cardinalities[scope].prod(1, dtype=np.float64)
        if self.n_factors:
            k = int(sizes.argmax())
            arity = self.scope_offsets[k + 1] - self.scope_offsets[k]
            what = f"the table of factor {k}, which has {arity} variables,"
            check_memory(what if sizes[k] > 0.5 * sizes.sum() else "all tables together", 8.0 * sizes.sum(), TABLES)
        return np.asarray(sizes.astype(np.int64))

    def _check(self, wrong: Callable[[IntArray], Any], message: str) -> None:
        """Refuse factors, by number, whose variables are `wrong`."""
        bad = [int(which[flags][0]) for which, scope in self._rows() if (flags := wrong(scope)).any()]
        if bad:
            raise ValueError(f"factor {min(bad)} {message}, got {self.factors[min(bad)]}")

    def _rows(self) -> list[tuple[IntArray, IntArray]]:
        """Factors with the same number of variables: their numbers and variables."""
        lengths, out = np.diff(self.scope_offsets), []
        for arity in np.unique(lengths).tolist():
            which = np.flatnonzero(lengths == arity)
            out.append((which, self.members[self.scope_offsets[which][:, None] + np.arange(arity)]))
        return out

    @cached_property
    def by_arity(self) -> list[tuple[IntArray, IntArray, IntArray, IntArray]]:
        """Factors with the same number of variables: their numbers, variables, cardinalities, and steps within tables."""
        out = []
        for which, scope in self._rows():
            counts = self.cardinalities[scope]
            strides = np.ones_like(counts)
            strides[:, :-1] = np.cumprod(counts[:, :0:-1], axis=1)[:, ::-1]
            out.append((which, scope, counts, strides))
        return out

    @cached_property
    def factors(self) -> tuple[tuple[int, ...], ...]:
        """The variables of every factor."""
        members = self.members.tolist()
        return tuple(tuple(members[lo:hi]) for lo, hi in itertools.pairwise(self.scope_offsets.tolist()))

    @classmethod
    def union(cls, graphs: Sequence[FactorGraph], n_jobs: int | None = None) -> FactorGraph:
        """Many graphs as one, an example each. If there are several, all factors must have variables."""
        if not graphs:
            raise ValueError("graphs must not be empty")
        for i, graph in enumerate(graphs):
            if not isinstance(graph, FactorGraph):
                raise ValueError(f"graphs must be FactorGraphs; graphs[{i}] is {type(graph).__name__}")
            if len(graphs) > 1 and () in graph.factors:
                raise ValueError(
                    f"graphs[{i}] has a factor without variables ({graph.factors.index(())}), which a union cannot have: "
                    "nothing says to which example it belongs. Add its entry to a factor of that graph"
                )
        starts = np.cumsum([0, *(graph.n_variables for graph in graphs)]).tolist()
        lengths = np.concatenate([np.diff(graph.scope_offsets) for graph in graphs])
        members = np.concatenate([graph.members + start for graph, start in zip(graphs, starts[:-1], strict=True)])
        factors = Scopes(np.concatenate(([0], np.cumsum(lengths))), members)
        firsts = np.cumsum([0, *(graph.n_examples for graph in graphs)]).tolist()
        examples = [graph.examples + first for graph, first in zip(graphs, firsts[:-1], strict=True)]
        cardinalities = np.concatenate([graph.cardinalities for graph in graphs])
        return cls(cardinalities, factors, examples=np.concatenate(examples), n_jobs=n_jobs)

    @classmethod
    def grid(cls, height: int, width: int, k: int = 2, n_jobs: int | None = None) -> FactorGraph:
        """A grid, row by row: a factor for each variable, then for each pair of neighbours, across and then down."""
        check_count("height", height, minimum=1)
        check_count("width", width, minimum=1)
        check_count("k", k, minimum=1)
        check_memory(
            f"a grid of {height} x {width}", 16 * product((height, width, max(k * k, 4))), "Lower height, width or k"
        )
        number = np.arange(height * width).reshape(height, width)
        across = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
        down = np.column_stack([number[:-1].ravel(), number[1:].ravel()])
        return cls(np.full(height * width, k), [number.reshape(-1, 1), across, down], n_jobs=n_jobs)

    @classmethod
    def complete(cls, m: int, k: int = 2, n_jobs: int | None = None) -> FactorGraph:
        """A factor for each of m variables, then for each pair."""
        check_count("m", m, minimum=1)
        check_count("k", k, minimum=1)
        check_memory(f"a complete graph of m={m}", 4 * product((m, m, max(k * k, 64))), "Lower m or k")
        return cls(np.full(m, k), [(v,) for v in range(m)] + list(itertools.combinations(range(m), 2)), n_jobs=n_jobs)

    @classmethod
    def from_networkx(cls, graph: Any, cardinalities: Any = 2, n_jobs: int | None = None) -> FactorGraph:
        """A factor for each node of a networkx graph, in its order, then for each edge.

        `cardinalities` is one number, a dict by node, or the name of a node attribute.
        """
        if not (hasattr(graph, "nodes") and hasattr(graph, "edges")):
            raise ValueError(f"graph must be a networkx graph, got {type(graph).__name__}")
        nodes = list(graph.nodes)
        number = {node: i for i, node in enumerate(nodes)}
        if isinstance(cardinalities, str):
            counts = [graph.nodes[node].get(cardinalities) for node in nodes]
        elif isinstance(cardinalities, Mapping):
            counts = [cardinalities.get(node) for node in nodes]
        else:
            counts = [cardinalities] * len(nodes)
        if None in counts:
            raise ValueError(f"cardinalities must have a number for every node; node {nodes[counts.index(None)]!r} has none")
        edges = [(number[a], number[b]) for a, b, *_ in graph.edges if a != b]
        return cls(counts, [*((i,) for i in range(len(nodes))), *edges], n_jobs=n_jobs)

    @cached_property
    def factor_examples(self) -> IntArray:
        """The example of every factor."""
        out = np.zeros(self.n_factors, np.int64)
        some = np.diff(self.scope_offsets) > 0
        out[some] = self.examples[self.members[self.scope_offsets[:-1][some]]]
        return out

    def tables(self, flat: ArrayLike) -> list[FloatArray]:
        """Views of flat potentials or marginals as tables; leading axes stay."""
        flat = np.asarray(flat)
        if not flat.ndim or flat.shape[-1] != self.size:
            raise ValueError(f"there must be {self.size} entries, those of all tables; got shape {flat.shape}")
        shapes = [tuple(self.cardinalities[list(scope)]) for scope in self.factors]
        return [
            flat[..., lo:hi].reshape((*flat.shape[:-1], *shape))
            for (lo, hi), shape in zip(itertools.pairwise(self.offsets.tolist()), shapes, strict=True)
        ]

    def potentials(self, potentials: Any) -> FloatArray:
        """Checked potentials as a matrix, one row per set of potentials."""
        if isinstance(potentials, list | tuple) and len(potentials) == self.n_factors:
            for k, (scope, table) in enumerate(zip(self.factors, potentials, strict=True)):
                shape = tuple(self.cardinalities[list(scope)].tolist())
                if np.shape(table) != shape:
                    raise ValueError(f"the table of factor {k} must have shape {shape}, got {np.shape(table)}")
            potentials = np.concatenate(
                [np.zeros(0), *(np.ravel(real_array(f"table {k}", table)) for k, table in enumerate(potentials))]
            )
        flat = real_array("potentials", potentials)
        if flat.ndim not in (1, 2) or flat.shape[-1] != self.size:
            raise ValueError(f"potentials must be {self.n_factors} tables or end in {self.size} entries, got {flat.shape}")
        if not len(flat) and flat.ndim == 2:
            raise ValueError("potentials hold no example: they must have at least one row")
        if not are_potentials(flat):
            *_, place = at = np.argwhere(not_potential(flat))[0]
            k = int(np.searchsorted(self.offsets, place, side="right")) - 1
            raise refusal("potentials", float(flat[tuple(at)]), f": factor {k}")
        return np.atleast_2d(flat)

    def _check_possible(self, log_z: FloatArray) -> None:
        if not (log_z > -np.inf).all():
            i = int(np.argmin(log_z.ravel() > -np.inf))
            if self._numbers is not None:
                i = int(self._numbers[i % self.n_examples])
            where = f" of example {i}" if log_z.size > 1 or self._numbers is not None else ""
            raise ValueError(f"potentials forbid every configuration{where}: the partition function is zero")

    _numbers: IntArray | None = None  # what the examples of a part are called in the whole

    def cost(self, limit: float = MEMORY / 8.0) -> Elimination | float:
        """The junction tree that exact sums need, with its `width` and sizes, before any work; if a table would have more
        than `limit` entries, how many it would have at least."""
        if self._elimination is not None and self._elimination.largest <= limit:
            return self._elimination
        plans = self.plans(limit)
        fitting = [plan for plan in plans if isinstance(plan, Elimination)]
        if len(fitting) < len(plans):
            return max(plan for plan in plans if not isinstance(plan, Elimination))
        self._elimination = joined(fitting, np.bincount(self.examples).tolist())
        return self._elimination

    def plans(self, limit: float) -> list[Elimination | float]:
        """`cost` of each example by itself, with variables numbered within the example. Equal examples are planned once."""
        if self._plans is None or self._plans[0] != limit:
            starts = np.searchsorted(self.examples, np.arange(self.n_examples + 1)).tolist()
            scopes: list[list[tuple[int, ...]]] = [[] for _ in range(self.n_examples)]
            for scope, e in zip(self.factors, self.factor_examples.tolist(), strict=True):
                scopes[e].append(tuple(v - starts[e] for v in scope))
            known: dict[Any, Elimination | float] = {}
            found = []
            for own, (lo, hi) in zip(scopes, itertools.pairwise(starts), strict=True):
                counts = self.cardinalities[lo:hi]
                key = (counts.tobytes(), *own)
                if key not in known:
                    known[key] = eliminate(neighbours(counts, own), counts, limit)
                found.append(known[key])
            self._plans = limit, found
        return self._plans[1]

    children: Children | None = None  # what `trivial_bounds` compiles once
    _elimination: Elimination | None = None
    _plans: tuple[float, list[Elimination | float]] | None = None

    @cached_property
    def _tree(self) -> JunctionTree:
        assert self._elimination is not None
        examples = np.array([self.examples[clique.residual[0]] for clique in self._elimination.cliques], dtype=np.int64)
        return JunctionTree(self._elimination, self.cardinalities, self.factors, self.offsets, examples)

    def tree(self, memory_limit: float = MEMORY) -> JunctionTree:
        """The junction tree, compiled; a TooLargeError names its width if it does not fit."""
        self._plan(memory_limit)
        return self._tree

    def _plan(self, memory_limit: float) -> Elimination:
        limit = min(check_real("memory_limit", memory_limit, minimum=0.0, strict=True, finite=False), MOST)
        found = self.cost(limit / 8.0)
        if not isinstance(found, Elimination):
            raise TooLargeError(
                f"exact sums need a table of {found:.3g} entries or more, by the orders tried; the limit is "
                f"{memory_limit:.3g} bytes in all. "
                "Raise memory_limit, or choose an approximate engine"
            )
        if found.memory > memory_limit:
            raise TooLargeError(
                f"exact sums need {found.memory:.3g} bytes (width {found.width}, {len(found.cliques)} cliques); the limit is"
                f" {memory_limit:.3g}. Raise memory_limit, or choose an approximate engine"
            )
        check_memory("an exact sum", found.memory, "Choose an approximate engine, or lower memory_limit for engine='auto'")
        return found

    def score(self, potentials: Any, y: ArrayLike) -> FloatArray:
        """The sum of the entries that a configuration picks, of each example; -inf if it is forbidden."""
        flat, states = self.potentials(potentials), self._states(y)
        index = np.zeros((self.n_factors, len(states)), np.int64)
        for which, scope, _, strides in self.by_arity:
            for v, step in zip(scope.T, strides.T, strict=True):
                index[which] += step[:, None] * states.T[v]
        rows = max(len(flat), len(states))
        if min(len(flat), len(states)) not in (1, rows):
            raise ValueError(f"potentials and y must have as many rows, or one row; got {len(flat)} and {len(states)}")
        picked = np.broadcast_to(flat, (rows, self.size))[np.arange(rows)[:, None], self.offsets[:-1] + index.T]
        place = self.n_examples * np.arange(rows)[:, None] + self.factor_examples
        sums = np.bincount(place.ravel(), weights=picked.ravel(), minlength=rows * self.n_examples)
        return np.asarray(sums, dtype=np.float64)

    def _states(self, y: ArrayLike) -> IntArray:
        shape = f"{self.n_variables} integers, one state per variable"
        states = np.atleast_2d(whole_array("y", y, shape))
        if states.ndim != 2 or states.shape[-1] != self.n_variables:
            raise ValueError(f"y must be {shape}; got {states.shape} of {states.dtype}")
        bad = (states < 0) | (states >= self.cardinalities)
        if bad.any():
            row, v = np.argwhere(bad)[0]
            raise ValueError(f"y has state {states[row, v]} for variable {v}, which has {self.cardinalities[v]} states")
        return states.astype(np.int64)

    def log_partition(self, potentials: Any, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z of each example, or what the engine knows of it; see `infer`."""
        name, options = self._chosen(engine, options)
        if name != "exact":
            return self.infer(potentials, name, **options).log_z
        flat, tree = self.potentials(potentials), self.tree(**options)
        log_z = np.zeros((len(flat), self.n_examples))

        def row(i: int, workers: Workers) -> None:
            self._collect(tree, flat[i], np.empty(tree.n_messages), log_z[i], workers)

        self._run(row, tree, len(flat))
        self._check_possible(log_z)
        return log_z.ravel()

    def infer(self, potentials: Any, engine: str = "auto", **options: Any) -> Result:
        """log Z of each example, and the probability of every entry of every table, in the shape of the potentials.

        Parameters
        ----------
        engine : {"auto", "exact", "bp", "trw", "mean_field", "gibbs", "frank_wolfe", "perturb_and_map"}
            ``"auto"`` is exact if that fits into `memory_limit` bytes, else tree-reweighted. If it fits for some examples
            only, these are exact and the others tree-reweighted (``"mixed"``). The result says which.
            One that has not converged says so in the status of the result, and by a ConvergenceWarning.
        options
            Of the engine: `memory_limit` for ``"exact"``; for the others see `partita.inference`.
        """
        name, options = self._chosen(engine, options)
        single = isinstance(potentials, list | tuple) or np.ndim(potentials) == 1
        if name == MIXED:
            both = self._mixture(options.pop("memory_limit", MEMORY)).infer(self.potentials(potentials), **options)
            return replace(both, marginals=both.marginals[0] if single else both.marginals)
        if name != "exact":
            infer: Engine[FactorGraph] = find_engine(name)
            result = infer(self, self.potentials(potentials), **options)
            report(f"engine {name}", result.status)
            return replace(result, engine=name, marginals=result.marginals[0] if single else result.marginals)
        flat, tree = self.potentials(potentials), self.tree(**options)
        log_z, marginals = np.zeros((len(flat), self.n_examples)), np.zeros_like(flat)

        def row(i: int, workers: Workers) -> None:
            messages = np.empty(tree.n_messages)
            self._collect(tree, flat[i], messages, log_z[i], workers)
            tree.distribute(flat[i], messages, marginals[i], workers)

        self._run(row, tree, len(flat))
        self._check_possible(log_z)
        for k in tree.constants:
            marginals[:, self.offsets[k]] = 1.0
        out = log_z.ravel()
        return Result(out, marginals[0] if single else marginals, lower=out, upper=out, engine="exact")

    def choose(self, engine: str = "auto", memory_limit: float = MEMORY, **options: Any) -> str:
        """The engine that a name stands for: ``"auto"`` is exact if that is cheap enough, else tree-reweighted, or
        ``"mixed"`` if it is cheap enough for some examples."""
        if check_choice("engine", engine, (*ENGINES, MIXED)) != "auto":
            return engine
        try:
            if self._plan(memory_limit).total <= AUTO_ENTRIES:
                return "exact"
        except TooLargeError:
            pass
        return "trw" if self.n_examples == 1 or self._mixture(memory_limit).exact is None else MIXED

    def _mixture(self, memory_limit: float) -> Mixture:
        limits = memory_limit, AUTO_ENTRIES
        if self._mixed is None or self._mixed[0] != limits:
            self._mixed = limits, Mixture(self, *limits)
        return self._mixed[1]

    _mixed: tuple[tuple[float, float], Mixture] | None = None

    def _chosen(self, engine: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The engine that a name stands for; of the options for ``"auto"``, those that this engine has."""
        name = self.choose(engine, **options)
        if engine != "auto" or name == MIXED:
            return name, options
        return name, {key: value for key, value in options.items() if (key == "memory_limit") == (name == "exact")}

    def _run(self, row: Callable[[int, Workers], None], tree: JunctionTree, count: int) -> None:
        """Call `row` for each set of potentials: many are shared out to threads, a single one is cut up within."""
        if count == 1:
            return row(0, self.workers)

        def rows(first: int, last: int) -> None:
            for i in range(first, last):
                row(i, Workers(1))

        self.workers.run(rows, Workers.ranges(count, 20.0 * float(tree.work[-1]) * count))

    def _collect(
        self,
        tree: JunctionTree,
        potentials: FloatArray,
        messages: FloatArray,
        value: FloatArray,
        workers: Workers,
        best: bool = False,
    ) -> None:
        """Messages, and the sum (or the largest score) of each example, added to `value`."""
        tree.collect(potentials, messages, best, workers)
        np.add.at(value, tree.root_examples, messages[tree.root_places])
        for k in tree.constants:
            value[self.factor_examples[k]] += potentials[self.offsets[k]]

    def argmax(self, potentials: Any, engine: str = "auto", **options: Any) -> tuple[IntArray, FloatArray]:
        """The best configuration and its score, of each example (one row of states per set of potentials).

        Parameters
        ----------
        engine : {"auto", "exact", "bp", "max_flow"}
            ``"bp"`` is max-product: the best configuration without cycles, else one that may be below it, with its own
            score. ``"max_flow"`` is for variables with two states, factors of one or two variables and finite potentials.
            What it decides is part of a best configuration: all of it where pairs like to agree. The rest is then found
            exactly if that fits, else by max-product.
            ``"auto"`` is exact where `infer` would be (for some examples perhaps, and not for others), else `decoder`.
        options
            Of the engine: `memory_limit` for ``"exact"``; for ``"bp"`` see `partita.inference.max_product`.
        """
        single = isinstance(potentials, list | tuple) or np.ndim(potentials) == 1
        if check_choice("engine", engine, DECODERS) == "auto" and self.choose("auto", **options) not in ("exact", MIXED):
            potentials = self.potentials(potentials)
            engine = self.decoder(potentials)
            options = {key: value for key, value in options.items() if key != "memory_limit"}
        if engine == "max_flow":
            y, value = find_engine("max_flow")(self, self.potentials(potentials), **options)
            return (y[0] if single else y), value
        name, options = self._chosen(engine, options)
        if name == MIXED:
            both = self._mixture(options.pop("memory_limit", MEMORY)).argmax(self.potentials(potentials), **options)
            return (both[0][0] if single else both[0]), both[1]
        if name != "exact":
            y, value = find_engine("max_product")(self, self.potentials(potentials), **options)
            return (y[0] if single else y), value
        flat, tree = self.potentials(potentials), self.tree(**options)
        value, states = np.zeros((len(flat), self.n_examples)), np.zeros((len(flat), self.n_variables), np.int64)

        def row(i: int, workers: Workers) -> None:
            messages = np.empty(tree.n_messages)
            self._collect(tree, flat[i], messages, value[i], workers, best=True)
            if np.isfinite(value[i]).all():
                tree.descend(flat[i], messages, np.zeros(0), states[i])

        self._run(row, tree, len(flat))
        self._check_possible(value)
        return (states[0] if single else states), value.ravel()

    @cached_property
    def binary_pairs(self) -> bool:
        """Whether all variables have two states, and all factors one or two variables."""
        return bool((self.cardinalities == 2).all() and np.isin(np.diff(self.scope_offsets), (1, 2)).all())

    def decoder(self, potentials: FloatArray) -> str:
        """The engine of `argmax` where it is not exact."""
        return "max_flow" if self.binary_pairs and np.isfinite(potentials).all() else "bp"

    def sample(self, potentials: Any, size: int, random_state: Any = None, **options: Any) -> IntArray:
        """`size` independent configurations, shape (size, variables), of one set of potentials."""
        n = check_sample(size, self.n_variables)
        flat, tree = self.potentials(potentials), self.tree(**options)
        if len(flat) != 1:
            raise ValueError(f"potentials must be one set of tables, got {len(flat)}")
        messages, log_z = np.empty(tree.n_messages), np.zeros(self.n_examples)
        self._collect(tree, flat[0], messages, log_z, self.workers)
        self._check_possible(log_z)
        states = np.zeros((n, self.n_variables), np.int64)
        uniforms = generator(random_state).random((size, max(1, len(tree.examples))))

        def draws(first: int, last: int) -> None:
            for row in range(first, last):
                tree.descend(flat[0], messages, uniforms[row], states[row])

        self.workers.run(draws, Workers.ranges(size, 50.0 * size * self.n_variables))
        return states

    def condition(self, evidence: Mapping[int, int]) -> tuple[FactorGraph, IntArray]:
        """The graph given the states of some variables, which then have one state each, and the entries of the potentials
        that remain: those of the new graph are ``potentials[..., index]``."""
        known = self._known(evidence)
        index = []
        for k, scope in enumerate(self.factors):
            part = np.arange(self.offsets[k], self.offsets[k + 1]).reshape(tuple(self.cardinalities[list(scope)]))
            index.append(part[tuple(slice(None) if known[v] < 0 else known[v] for v in scope)].ravel())
        counts = np.where(known < 0, self.cardinalities, 1)
        graph = FactorGraph(counts, Scopes(self.scope_offsets, self.members), examples=self.examples, n_jobs=self.n_jobs)
        return graph, np.concatenate([np.zeros(0, np.int64), *index])

    def _known(self, evidence: Mapping[int, int]) -> IntArray:
        """The state of every variable that has one by the evidence, -1 for the others."""
        if not isinstance(evidence, Mapping):
            raise ValueError(
                f"evidence must be a dict from numbers of variables to numbers of states, as {{0: 1}}; got {evidence!r}"
            )
        known = np.full(self.n_variables, -1, np.int64)
        for v, state in evidence.items():
            for what, number in (("variable", v), ("state", state)):
                if not is_whole(number):
                    raise ValueError(f"evidence must have integers only, as {{0: 1}}; got {what} {number!r}")
            if not 0 <= v < self.n_variables:
                raise ValueError(f"evidence names variable {v}; there are {self.n_variables}, numbered from 0")
            if not 0 <= state < self.cardinalities[v]:
                raise ValueError(f"evidence gives state {state} to variable {v}, which has {self.cardinalities[v]}")
            known[v] = state
        return known

    def variable_marginals(self, marginals: ArrayLike) -> list[FloatArray]:
        """The probability of every state of every variable, from those of tables; uniform for a variable in no factor."""
        tables = self.tables(marginals)
        lead = np.asarray(marginals).shape[:-1]
        found: list[FloatArray | None] = [None] * self.n_variables
        for scope, table in sorted(zip(self.factors, tables, strict=True), key=lambda pair: -pair[1].size):
            for axis, v in enumerate(scope):
                others = tuple(len(lead) + a for a in range(len(scope)) if a != axis)
                found[v] = table.sum(axis=others)
        return [
            np.full((*lead, count), 1.0 / count) if p is None else p
            for p, count in zip(found, self.cardinalities.tolist(), strict=True)
        ]
