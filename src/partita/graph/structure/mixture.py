"""A union of graphs of which some are too wide for exact sums: those that fit, and the others, as two graphs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from ...core.arrays.pieces import take_pieces
from ...core.results import FloatArray, IntArray, Result
from .elimination import Elimination, joined
from .scopes import Scopes, ranges
from .tables import FactorTables

G = TypeVar("G", bound="DividedTables")


class DividedTables(FactorTables, ABC):
    """What parts and mixtures ask of a `FactorGraph`: answers by a named engine, and what those cost for each example."""

    _numbers: IntArray | None = None  # what the examples of a part are called in the whole
    _elimination: Elimination | None = None
    _plans: tuple[float, list[Elimination | float]] | None = None

    @abstractmethod
    def plans(self, limit: float) -> list[Elimination | float]: ...

    @abstractmethod
    def infer(self, potentials: Any, engine: str = "auto", **options: Any) -> Result: ...

    @abstractmethod
    def argmax(self, potentials: Any, engine: str = "auto", **options: Any) -> tuple[IntArray, FloatArray]: ...

    @abstractmethod
    def decoder(self, potentials: FloatArray) -> str: ...


@dataclass(frozen=True)
class Part(Generic[G]):
    """Some examples of a graph as a graph of their own.

    Attributes
    ----------
    graph : FactorGraph
    examples, variables, factors, index : int arrays
        The examples, variables, factors and entries of potentials of the whole that are those of the part, in order.
    """

    graph: G
    examples: IntArray
    variables: IntArray
    factors: IntArray
    index: IntArray


class Mixture:
    """The examples that exact sums fit, the cheapest first as long as all of them together stay within the limits, and the
    others, for which there is an approximate engine.

    Parameters
    ----------
    graph : FactorGraph
    memory_limit, entries : float
        Bytes, and entries of all tables, that exact sums may take.
    """

    graph: DividedTables
    memory_limit: float

    def __init__(self, graph: DividedTables, memory_limit: float, entries: float) -> None:
        self.graph, self.memory_limit = graph, memory_limit
        plans: list[Any] = graph.plans(memory_limit / 8.0)
        costs = np.array([(p.total, p.memory) if isinstance(p, Elimination) else (np.inf, np.inf) for p in plans])
        order = np.argsort(costs[:, 0], kind="stable")
        count = int((np.cumsum(costs[order], axis=0) <= (entries, memory_limit)).all(1).sum())
        exact, rest = np.sort(order[:count]).tolist(), np.sort(order[count:])
        self.exact: Part[DividedTables] | None = None
        if exact:
            counts = np.bincount(graph.examples)[exact].tolist()
            self.exact = _part(graph, np.array(exact), joined([plans[e] for e in exact], counts))
        self.rest: Part[DividedTables] | None = _part(graph, rest) if len(rest) else None

    def infer(self, potentials: FloatArray, **options: Any) -> Result:
        """Answers of both parts as one; options are those of tree-reweighted belief propagation."""
        graph, rows = self.graph, len(potentials)
        log_z, own, lower, upper, gap = (
            np.full((rows, graph.n_examples), bound) for bound in (np.nan, np.nan, -np.inf, np.inf, 0.0)
        )
        marginals, result = np.zeros_like(potentials), None
        for part, engine in ((self.exact, "exact"), (self.rest, "trw")):
            if part is None:
                continue
            given = {"memory_limit": self.memory_limit} if engine == "exact" else options
            result = part.graph.infer(potentials[:, part.index], engine, **given)
            found = (result.log_z, result.free_energy, result.lower, result.upper, result.certificate)
            for whole, piece in zip((log_z, own, lower, upper, gap), found, strict=True):
                if piece is not None:
                    whole[:, part.examples] = piece.reshape(rows, -1)
            marginals[:, part.index] = result.marginals
        assert result is not None
        joint = {"log_z": log_z, "free_energy": own, "lower": lower, "upper": upper}
        if options.get("certify"):
            joint["certificate"] = gap
        flat: dict[str, Any] = {name: values.ravel() for name, values in joint.items()}
        return replace(result, marginals=marginals, engine="mixed", **flat)

    def argmax(self, potentials: FloatArray, **options: Any) -> tuple[IntArray, FloatArray]:
        """Best configurations, and good ones by max-product, whose options these are."""
        graph, rows = self.graph, len(potentials)
        states, value = np.zeros((rows, graph.n_variables), np.int64), np.zeros((rows, graph.n_examples))
        for part in (self.exact, self.rest):
            if part is None:
                continue
            mine = potentials[:, part.index]
            engine = "exact" if part is self.exact else part.graph.decoder(mine)
            own = {"memory_limit": self.memory_limit} if engine == "exact" else options if engine == "bp" else {}
            y, score = part.graph.argmax(mine, engine, **own)
            states[:, part.variables], value[:, part.examples] = y, score.reshape(rows, -1)
        return states, value.ravel()


def _part(graph: G, examples: IntArray, plan: Elimination | None = None) -> Part[G]:
    """Some examples, given in order, as a graph; `plan` is its elimination, if that is known."""
    kept, mine = np.isin(graph.examples, examples), np.isin(graph.factor_examples, examples)
    part = _cut(graph, examples, np.flatnonzero(kept), np.flatnonzero(mine))
    part.graph._elimination = plan
    return part


class Examples(Generic[G]):
    """The variables and factors of each example of a graph, so that some of them are found without a look at the others."""

    def __init__(self, graph: G) -> None:
        self.graph = graph
        numbers = np.arange(graph.n_examples + 1)
        self._order = np.argsort(graph.factor_examples, kind="stable")
        self._ends = np.searchsorted(graph.factor_examples[self._order], numbers)
        self._starts = np.searchsorted(graph.examples, numbers)

    def take(self, examples: IntArray) -> Part[G]:
        """Some examples, given in order; what was planned for each of them is kept."""
        graph = self.graph
        variables = take_pieces(self._starts, examples)[1]
        factors = np.sort(self._order[take_pieces(self._ends, examples)[1]])
        part = _cut(graph, examples, variables, factors)
        if graph._plans is not None:
            part.graph._plans = graph._plans[0], [graph._plans[1][e] for e in examples.tolist()]
        return part


def each_example(graph: G) -> list[Part[G]]:
    """All examples as graphs of their own."""
    numbers = np.arange(graph.n_examples)
    order = np.argsort(graph.factor_examples, kind="stable")
    ends = np.searchsorted(graph.factor_examples[order], np.arange(graph.n_examples + 1))
    starts = np.searchsorted(graph.examples, np.arange(graph.n_examples + 1))
    return [
        _cut(graph, numbers[e : e + 1], np.arange(starts[e], starts[e + 1]), order[ends[e] : ends[e + 1]])
        for e in range(graph.n_examples)
    ]


def _cut(graph: G, examples: IntArray, variables: IntArray, factors: IntArray) -> Part[G]:
    lengths, sizes = np.diff(graph.scope_offsets)[factors], np.diff(graph.offsets)[factors]
    members = graph.members[ranges(graph.scope_offsets[factors], lengths)]
    scopes = Scopes(np.concatenate(([0], np.cumsum(lengths))), np.searchsorted(variables, members))
    renumbered = np.searchsorted(examples, graph.examples[variables])
    part = type(graph)(graph.cardinalities[variables], scopes, examples=renumbered, n_jobs=graph.n_jobs)
    part._numbers = examples
    return Part(part, examples, variables, factors, ranges(graph.offsets[factors], sizes))
