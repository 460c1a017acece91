"""A union of graphs of which some are too wide for exact sums: those that fit, and the others, as two graphs."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..core.results import FloatArray, IntArray, Result
from .elimination import Elimination, joined
from .scopes import Scopes

if TYPE_CHECKING:
    from .factor_graph import FactorGraph


@dataclass(frozen=True)
class Part:
    """Some examples of a graph as a graph of their own.

    Attributes
    ----------
    graph : FactorGraph
    examples, variables, index : int arrays
        The examples, variables and entries of potentials of the whole that are those of the part, in order.
    """

    graph: FactorGraph
    examples: IntArray
    variables: IntArray
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

    def __init__(self, graph: FactorGraph, memory_limit: float, entries: float) -> None:
        self.graph, self.memory_limit = graph, memory_limit
        plans: list[Any] = graph.plans(memory_limit / 8.0)
        costs = np.array([(p.total, p.memory) if isinstance(p, Elimination) else (np.inf, np.inf) for p in plans])
        order = np.argsort(costs[:, 0], kind="stable")
        count = int((np.cumsum(costs[order], axis=0) <= (entries, memory_limit)).all(1).sum())
        exact, rest = np.sort(order[:count]).tolist(), np.sort(order[count:])
        self.exact: Part | None = None
        if exact:
            counts = np.bincount(graph.examples)[exact].tolist()
            self.exact = _part(graph, np.array(exact), joined([plans[e] for e in exact], counts))
        self.rest = _part(graph, rest) if len(rest) else None

    def infer(self, potentials: FloatArray, **options: Any) -> Result:
        """Answers of both parts as one; options are those of tree-reweighted belief propagation."""
        graph, rows = self.graph, len(potentials)
        log_z, lower, upper = (np.full((rows, graph.n_examples), bound) for bound in (np.nan, -np.inf, np.inf))
        marginals = np.zeros_like(potentials)
        result = Result(log_z, marginals)
        for part, engine in ((self.exact, "exact"), (self.rest, "trw")):
            if part is None:
                continue
            own = {"memory_limit": self.memory_limit} if engine == "exact" else options
            result = part.graph.infer(potentials[:, part.index], engine, **own)
            for whole, piece in ((log_z, result.log_z), (lower, result.lower), (upper, result.upper)):
                if piece is not None:
                    whole[:, part.examples] = piece.reshape(rows, -1)
            marginals[:, part.index] = result.marginals
        bounds: dict[str, Any] = {"lower": lower.ravel(), "upper": upper.ravel()}
        return replace(result, log_z=log_z.ravel(), marginals=marginals, engine="mixed", **bounds)

    def argmax(self, potentials: FloatArray, **options: Any) -> tuple[IntArray, FloatArray]:
        """Best configurations, and good ones by max-product, whose options these are."""
        graph, rows = self.graph, len(potentials)
        states, value = np.zeros((rows, graph.n_variables), np.int64), np.zeros((rows, graph.n_examples))
        for part, engine in ((self.exact, "exact"), (self.rest, "bp")):
            if part is None:
                continue
            own = {"memory_limit": self.memory_limit} if engine == "exact" else options
            y, score = part.graph.argmax(potentials[:, part.index], engine, **own)
            states[:, part.variables], value[:, part.examples] = y, score.reshape(rows, -1)
        return states, value.ravel()


def _part(graph: FactorGraph, examples: IntArray, plan: Elimination | None = None) -> Part:
    """Some examples, given in order, as a graph; `plan` is its elimination, if that is known."""
    kept, mine = np.isin(graph.examples, examples), np.isin(graph.factor_examples, examples)
    variables, number = np.flatnonzero(kept), np.cumsum(kept) - 1
    lengths = np.diff(graph.scope_offsets)
    offsets = np.concatenate(([0], np.cumsum(lengths[mine])))
    scopes = Scopes(offsets, number[graph.members[np.repeat(mine, lengths)]])
    renumbered = np.searchsorted(examples, graph.examples[variables])
    part = type(graph)(graph.cardinalities[variables], scopes, examples=renumbered, n_jobs=graph.n_jobs)
    part._elimination, part._numbers = plan, examples
    return Part(part, examples, variables, np.flatnonzero(np.repeat(mine, np.diff(graph.offsets))))
