"""Variables with finitely many states, and factors: tables over some of them."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from ...core.contracts.engine import Engine
from ...core.errors import TooLargeError
from ...core.memory import check_memory, check_sample, product
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result
from ...core.validation import check_choice, check_count, check_real
from ...core.warn import report
from ..registry import OTHERS, find_engine
from .children import Children, find_children
from .elimination import Elimination, eliminate, joined, neighbours
from .exact_sums import ExactSums
from .junction_tree import JunctionTree
from .mixture import DividedTables, Mixture
from .scopes import Scopes
from .tables import is_single

ENGINES = ("auto", "exact", *OTHERS)
#: Engines of `argmax`; bp is max-product.
DECODERS = ("auto", "exact", "bp", "max_flow", "planar")
#: What ``"auto"`` is where it is exact for some examples only.
MIXED = "mixed"
#: Bytes that exact sums take unless said otherwise, and entries of all tables that ``"auto"`` goes through: half a minute.
MEMORY, AUTO_ENTRIES = 4e9, 1e9
#: Bytes above which a limit means nothing.
MOST = 1e18


class FactorGraph(DividedTables):
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

    def _check_possible(self, log_z: FloatArray) -> None:
        if not (log_z > -np.inf).all():
            i = int(np.argmin(log_z.ravel() > -np.inf))
            if self._numbers is not None:
                i = int(self._numbers[i % self.n_examples])
            where = f" of example {i}" if log_z.size > 1 or self._numbers is not None else ""
            raise ValueError(f"potentials forbid every configuration{where}: the partition function is zero")

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

    @cached_property
    def children(self) -> Children:
        """What `trivial_bounds` sums over last variables."""
        return find_children(self)

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

    def log_partition(self, potentials: Any, engine: str = "auto", **options: Any) -> FloatArray:
        """log Z of each example, or what the engine knows of it; see `infer`."""
        name, options = self._chosen(engine, options)
        if name == "planar":
            found: FloatArray = find_engine("planar_log_partition")(self, self.potentials(potentials), **options)
            return found
        if name != "exact":
            return self.infer(potentials, name, **options).log_z
        flat = self.potentials(potentials)
        log_z = ExactSums(self, self.tree(**options)).log_partition(flat)
        self._check_possible(log_z)
        return log_z.ravel()

    def infer(self, potentials: Any, engine: str = "auto", **options: Any) -> Result:
        """log Z of each example, and the probability of every entry of every table, in the shape of the potentials.

        Parameters
        ----------
        engine : {"auto", "exact", "bp", "trw", "mean_field", "gibbs", "frank_wolfe", "perturb_and_map", "planar"}
            ``"auto"`` is exact if that fits into `memory_limit` bytes, else tree-reweighted. If it fits for some examples
            only, these are exact and the others tree-reweighted (``"mixed"``). The result says which.
            ``"planar"`` is exact too, at any width, for two states, pairs that are edges of a planar graph, and no fields
            (see `partita.graph.engines.planar_ising.kac_ward`); `positions` draw the graph, if it is no grid.
            One that has not converged says so in the status of the result, and by a ConvergenceWarning.
        options
            Of the engine: `memory_limit` for ``"exact"``; for the others see `partita.inference`.
        """
        name, options = self._chosen(engine, options)
        single = is_single(potentials)
        if name == MIXED:
            both = self._mixture(options.pop("memory_limit", MEMORY)).infer(self.potentials(potentials), **options)
            return replace(both, marginals=both.marginals[0] if single else both.marginals)
        if name != "exact":
            infer: Engine[FactorGraph] = find_engine(name)
            result = infer(self, self.potentials(potentials), **options)
            report(f"engine {name}", result.status)
            return replace(result, engine=name, marginals=result.marginals[0] if single else result.marginals)
        flat = self.potentials(potentials)
        log_z, marginals = ExactSums(self, self.tree(**options)).infer(flat)
        self._check_possible(log_z)
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

    def divided(self, memory_limit: float = MEMORY) -> Mixture:
        """What ``"auto"`` sums exactly, and what it does not."""
        return self._mixture(memory_limit)

    _mixed: tuple[tuple[float, float], Mixture] | None = None

    def _chosen(self, engine: str, options: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        """The engine that a name stands for; of the options for ``"auto"``, those that this engine has."""
        name = self.choose(engine, **options)
        if engine != "auto" or name == MIXED:
            return name, options
        return name, {key: value for key, value in options.items() if (key == "memory_limit") == (name == "exact")}

    def argmax(self, potentials: Any, engine: str = "auto", **options: Any) -> tuple[IntArray, FloatArray]:
        """The best configuration and its score, of each example (one row of states per set of potentials).

        Parameters
        ----------
        engine : {"auto", "exact", "bp", "max_flow", "planar"}
            ``"bp"`` is max-product: the best configuration without cycles, else one that may be below it, with its own
            score. ``"max_flow"`` is for variables with two states, factors of one or two variables and finite potentials.
            What it decides is part of a best configuration: all of it where pairs like to agree. The rest is then found
            exactly if that fits, else by max-product. ``"planar"`` is for planar graphs without fields, see
            `partita.inference.PlanarIsingOracle`.
            ``"auto"`` is exact where `infer` would be (for some examples perhaps, and not for others), else `decoder`.
        options
            Of the engine: `memory_limit` for ``"exact"``; for ``"bp"`` see `partita.inference.max_product`; `positions`
            and `solver` for ``"planar"``.
        """
        single = is_single(potentials)
        if check_choice("engine", engine, DECODERS) == "auto" and self.choose("auto", **options) not in ("exact", MIXED):
            potentials = self.potentials(potentials)
            engine = self.decoder(potentials)
            options = {key: value for key, value in options.items() if key != "memory_limit"}
        if engine in ("max_flow", "planar"):
            solve = find_engine("max_flow" if engine == "max_flow" else "planar_argmax")
            y, value = solve(self, self.potentials(potentials), **options)
            return (y[0] if single else y), value
        name, options = self._chosen(engine, options)
        if name == MIXED:
            both = self._mixture(options.pop("memory_limit", MEMORY)).argmax(self.potentials(potentials), **options)
            return (both[0][0] if single else both[0]), both[1]
        if name != "exact":
            y, value = find_engine("max_product")(self, self.potentials(potentials), **options)
            return (y[0] if single else y), value
        flat = self.potentials(potentials)
        states, value = ExactSums(self, self.tree(**options)).argmax(flat)
        self._check_possible(value)
        return (states[0] if single else states), value.ravel()

    def decoder(self, potentials: FloatArray) -> str:
        """The engine of `argmax` where it is not exact."""
        return "max_flow" if self.binary_pairs and np.isfinite(potentials).all() else "bp"

    def sample(self, potentials: Any, size: int, random_state: Any = None, **options: Any) -> IntArray:
        """`size` independent configurations, shape (size, variables); of a matrix of potentials, (size, rows, variables).

        `options` is the `memory_limit` of exact sums.
        """
        flat = self.potentials(potentials)
        n = check_sample(size, self.n_variables * len(flat))
        sums, random = ExactSums(self, self.tree(**options)), generator(random_state)
        drawn = [sums.sample(row, n, random) for row in flat]
        self._check_possible(np.array([log_z for _, log_z in drawn]))
        states = [rows for rows, _ in drawn]
        return states[0] if is_single(potentials) else np.stack(states, axis=1)

    def entries_of(self, factor: int, variable: int, states: IntArray) -> IntArray:
        """The entries of a factor where one of its variables runs over its states, and the others have theirs."""
        scope = list(self.factors[factor])
        counts = self.cardinalities[scope]
        strides = np.concatenate([np.cumprod(counts[:0:-1])[::-1], [1]])
        rest = np.where(np.array(scope) == variable, 0, states[scope]) @ strides
        step = strides[scope.index(variable)]
        return np.asarray(self.offsets[factor] + rest + step * np.arange(self.cardinalities[variable]), dtype=np.int64)

    def condition(self, evidence: Mapping[int, int]) -> tuple[FactorGraph, IntArray]:
        """The graph given the states of some variables, which then have one state each, and the entries of the potentials
        that remain: those of the new graph are ``potentials[..., index]``."""
        known = self.known_states(evidence)
        index = []
        for k, scope in enumerate(self.factors):
            part = np.arange(self.offsets[k], self.offsets[k + 1]).reshape(tuple(self.cardinalities[list(scope)]))
            index.append(part[tuple(slice(None) if known[v] < 0 else known[v] for v in scope)].ravel())
        counts = np.where(known < 0, self.cardinalities, 1)
        graph = FactorGraph(counts, Scopes(self.scope_offsets, self.members), examples=self.examples, n_jobs=self.n_jobs)
        return graph, np.concatenate([np.zeros(0, np.int64), *index])
