"""Every structure in a small form. A new structure is one row of `STRUCTURES`.

A row says how an output uses the potentials: ``statistics(structure, y)`` counts, in the layout of the potentials, how often
each is used. All answers follow from that and a list of outputs, and nothing of it asks the structure.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from enumeration import choices, distribution, edge_sets, matchings, permutations, spanning_trees
from hypothesis import strategies as st

from partita.bayesnet.structure.bayes_net import BayesNet
from partita.structures import Binary, BipartiteMatching, BMatching, Categorical, Chain, FactorGraph, Matching, SpanningTree

#: Potentials, statistics and marginals: one array, or the two of chains.
Arrays = tuple[Any, ...]


@dataclass(frozen=True)
class Row:
    """A structure.

    Attributes
    ----------
    make : callable
        From a number of threads to the structure.
    outputs : callable
        From the structure to all its outputs, listed apart from it.
    statistics : callable
        From the structure and an output to how often each potential is used, as a tuple of arrays.
    join : callable or None
        From the structure and a list of its potentials to a structure and potentials of all of them as a batch; None where
        examples of a batch share potentials.
    base : callable
        log h(y), the base measure.
    constant : callable or None
        From the structure to potentials for which all outputs have the same score; None if there are none.
    gradient : callable
        From marginals to the gradient of log Z, where that is not the same.
    normalised : callable
        From the structure and potentials to such as it can draw from.
    threads : bool
        Whether the structure has threads.
    """

    make: Callable[[int | None], Any]
    outputs: Callable[[Any], Any]
    statistics: Callable[[Any, Any], Arrays]
    join: Callable[[Any, list[Any]], tuple[Any, Any]] | None
    base: Callable[[Any], float] = lambda y: 0.0
    constant: Callable[[Any], Arrays] | None = None
    gradient: Callable[[Any], Any] = lambda marginals: marginals
    normalised: Callable[[Any, Any], Any] = lambda structure, potentials: potentials
    threads: bool = True

    @functools.cached_property
    def structure(self) -> Any:
        return self.make(None)

    @functools.cached_property
    def listed(self) -> tuple[Any, list[Arrays]]:
        """All outputs, and their statistics."""
        outputs = self.outputs(self.structure)
        return outputs, [self.statistics(self.structure, y) for y in outputs]

    def packed(self, arrays: Arrays) -> Any:
        """Arrays as the structure takes its potentials."""
        return arrays if len(arrays) > 1 else arrays[0]

    def potentials(self, scale: float, forbidden: float, seed: int, possible: bool = True) -> Any:
        """Random potentials, a share of them -inf; if `possible`, one output is allowed."""
        rng = np.random.default_rng(seed)
        outputs, statistics = self.listed
        allowed = statistics[rng.integers(len(outputs))]
        arrays = []
        for used in allowed:
            values = scale * rng.standard_normal(used.shape)
            out = rng.random(used.shape) < forbidden
            arrays.append(np.where(out & (used == 0.0) if possible else out, -np.inf, values))
        return self.packed(tuple(arrays))

    def strategy(self) -> st.SearchStrategy[Any]:
        """Potentials for Hypothesis."""
        scales, shares = st.sampled_from([1.0, 30.0]), st.sampled_from([0.0, 0.3, 0.7])
        return st.builds(self.potentials, scales, shares, st.integers(0, 2**32))


class Truth:
    """All answers about potentials, by enumeration."""

    def __init__(self, row: Row, potentials: Any) -> None:
        self.outputs, statistics = row.listed
        parts = arrays(potentials)
        self.scores = np.array(
            [
                row.base(y) + sum(total(u, s) for u, s in zip(parts, S, strict=True))
                for y, S in zip(self.outputs, statistics, strict=True)
            ]
        )
        if self.scores.max() > -np.inf:
            self.log_z, self.p = distribution(self.scores)
            self.marginals = tuple(
                np.tensordot(self.p.astype(np.float64), np.array(S), 1) for S in zip(*statistics, strict=True)
            )

    def number(self, y: Any) -> int:
        """Which of the outputs y is."""
        rows = self.outputs.reshape(len(self.outputs), -1)
        return int(np.flatnonzero((rows == np.ravel(y)).all(1))[0])


def arrays(potentials: Any) -> Arrays:
    return potentials if isinstance(potentials, tuple) else (potentials,)


def total(potentials: Any, used: Any) -> float:
    """The sum of what is used."""
    here = used > 0.0
    return float((potentials[here] * used[here]).sum())


# How outputs use potentials.


def _one_hot(structure: Any, y: Any) -> Arrays:
    return (np.eye(structure.n_labels)[y],)


def _ragged(structure: Any, y: Any) -> Arrays:
    offsets = structure.offsets(len(y))
    used = np.zeros(offsets[-1])
    used[offsets[:-1] + y] = 1.0
    return (used,)


def _chain(shared: bool) -> Callable[[Any, Any], Arrays]:
    def statistics(chain: Any, y: Any) -> Arrays:
        n, T = chain.n_labels, chain.n_positions
        pairs = np.zeros((T, n, n))
        for t in sorted(set(range(T)) - set(chain.offsets.tolist())):
            pairs[t, y[t - 1], y[t]] = 1.0
        return np.eye(n)[y], pairs.sum(0) if shared else pairs

    return statistics


def _entries(scopes: Any, cardinalities: Any, y: Any) -> Arrays:
    tables = []
    for scope in scopes:
        table = np.zeros(tuple(cardinalities[list(scope)]))
        table[tuple(y[v] for v in scope)] = 1.0
        tables.append(table.ravel())
    return (np.concatenate(tables),)


def _families(net: Any) -> list[tuple[int, ...]]:
    return [(*of, v) for v, of in enumerate(net.parents)]


def _permutation(structure: Any, y: Any) -> Arrays:
    return (np.eye(structure.n)[y],)


def _edges(structure: Any, y: Any) -> Arrays:
    return (np.array([float(y[i] == j) for i, j in structure.ends]),)


# Batches, and what else rows need.


def _rows(structure: Any, potentials: list[Any]) -> tuple[Any, Any]:
    return structure, np.concatenate(potentials)


def _stacked(structure: Any, potentials: list[Any]) -> tuple[Any, Any]:
    return structure, np.stack(potentials)


def _label_sets(structure: Any, potentials: list[Any]) -> tuple[Any, Any]:
    counts = np.tile(np.diff(structure.offsets(2)), len(potentials))
    return Categorical(counts), np.concatenate(potentials)


def _chains(chain: Any, potentials: list[Any]) -> tuple[Any, Any]:
    lengths = np.tile(np.diff(chain.offsets), len(potentials))
    whole = Chain(chain.n_labels, lengths, n_jobs=chain.workers.threads)
    return whole, tuple(np.concatenate(parts) for parts in zip(*potentials, strict=True))


def _union(graph: Any, potentials: list[Any]) -> tuple[Any, Any]:
    whole = FactorGraph.union([graph] * len(potentials), n_jobs=graph.workers.threads)
    return whole, np.concatenate(potentials)


def _first_table(graph: Any) -> Arrays:
    out = np.zeros(graph.size)
    out[: graph.offsets[1]] = 1.0
    return (out,)


def _log_distributions(net: Any, potentials: Any) -> Any:
    parts = np.split(np.maximum(potentials, -50.0), net.starts[1:-1])
    return np.concatenate([part - np.logaddexp.reduce(part) for part in parts])


def _graph(make: Callable[[int | None], Any], **options: Any) -> Row:
    return Row(
        make,
        lambda graph: choices(graph.cardinalities),
        lambda graph, y: _entries(graph.factors, graph.cardinalities, y),
        **{"join": _stacked, "constant": _first_table, **options},
    )


def _labels(make: Callable[[], Any], **options: Any) -> Row:
    given = {"join": _rows, "constant": lambda s: (np.ones((1, 3)),), "threads": False, **options}
    return Row(lambda n_jobs: make(), lambda s: choices([s.n_labels]), **{"statistics": _one_hot, **given})


def _sequences(n: int, lengths: list[int], shared: bool = False) -> Row:
    def ones(chain: Any) -> Arrays:
        return np.ones((chain.n_positions, n)), np.zeros((n, n) if shared else (chain.n_positions, n, n))

    return Row(
        lambda n_jobs: Chain(n, lengths, n_jobs=n_jobs),
        lambda chain: choices([n] * chain.n_positions),
        _chain(shared),
        None if shared else _chains,
        constant=ones,
    )


def _columns(n: int, m: int, unmatched: bool) -> Any:
    """The columns of n rows, -1 for none: rows of the matchings of a graph with n + m vertices."""
    ends = [(i, n + j) for i in range(n) for j in range(m)]
    found = matchings(n + m, ends, False)[:, :n]
    found = np.where(found >= 0, found - n, -1)
    return found if unmatched else found[(found >= 0).sum(1) == min(n, m)]


def _two_sides(n: int, m: int, unmatched: bool) -> Row:
    return Row(
        lambda n_jobs: BipartiteMatching(n, m, unmatched, n_jobs=n_jobs),
        lambda s: _columns(n, m, unmatched),
        lambda s, y: ((y[:, None] == np.arange(m)).astype(np.float64),),
        _stacked,
        constant=None if unmatched else lambda s: (np.ones((n, m)),),
    )


def _edge_sets(make: Callable[[int | None], Any], **options: Any) -> Row:
    return Row(
        make,
        lambda s: edge_sets(s.ends, s.b, s.perfect).reshape(-1, *(s.table or (s.n_edges,))),
        lambda s, y: (y.astype(np.float64),),
        _stacked,
        **options,
    )


def _trees(make: Callable[[int | None], Any]) -> Row:
    return Row(
        make,
        lambda s: spanning_trees(s.n_vertices, s.edges, s.root if s.directed else None, s.single_root),
        lambda s, y: (y.astype(np.float64),),
        _stacked,
        constant=lambda s: (np.ones(s.n_edges),),
    )


PRIOR = np.array([1.0, 2.0, 0.5])
ODDS = {
    "statistics": lambda s, y: (y[:, None].astype(np.float64),),
    "gradient": lambda marginals: marginals[:, 1:],
    "constant": None,
}
EACH = [(0,), (1,), (2,), (3,)]
SQUARE = [(0, 1), (1, 2), (2, 3), (0, 3), (0, 2)]

STRUCTURES = {
    "Categorical": _labels(lambda: Categorical(3)),
    "Categorical with a prior": _labels(lambda: Categorical(3, PRIOR), base=lambda y: float(np.log(PRIOR[y[0]]))),
    "Categorical with label sets": Row(
        lambda n_jobs: Categorical([2, 3]),
        lambda s: choices([2, 3]),
        _ragged,
        _label_sets,
        constant=lambda s: (np.ones(5),),
        threads=False,
    ),
    "Binary": _labels(Binary, **ODDS),
    "Binary with a prior": _labels(lambda: Binary(PRIOR[:2]), **ODDS, base=lambda y: float(np.log(PRIOR[y[0]]))),
    "Chain": _sequences(3, [3]),
    "Chain of several sequences": _sequences(2, [2, 1, 2]),
    "Chain with shared transitions": _sequences(2, [3, 2], shared=True),
    "FactorGraph": _graph(lambda n_jobs: FactorGraph([2, 3, 2], [(0, 1), (1, 2), (2, 0), *EACH[:3]], n_jobs=n_jobs)),
    "FactorGraph without cycles": _graph(
        lambda n_jobs: FactorGraph([2, 3, 2, 2], [(0, 1), (2, 1), (1, 3), *EACH], n_jobs=n_jobs)
    ),
    "FactorGraph of triples": _graph(
        lambda n_jobs: FactorGraph([2, 2, 3, 2], [(2, 0, 1), (0, 1), (), (0, 1)], n_jobs=n_jobs)  # 3 is in no factor
    ),
    "FactorGraph of several examples": _graph(
        lambda n_jobs: FactorGraph([2, 3, 2, 2], [(0, 1), (2, 3), (3,)], examples=[0, 0, 1, 1], n_jobs=n_jobs)
    ),
    "FactorGraph by union": _graph(lambda n_jobs: FactorGraph.grid(2, 2, n_jobs=n_jobs), join=_union),
    "BipartiteMatching": Row(
        lambda n_jobs: BipartiteMatching(4, n_jobs=n_jobs),
        lambda s: permutations(s.n),
        _permutation,
        _stacked,
        constant=lambda s: (np.ones((s.n, s.n)),),
    ),
    "BipartiteMatching with more columns": _two_sides(3, 4, False),
    "BipartiteMatching with more rows": _two_sides(4, 2, False),
    "BipartiteMatching that may leave alone": _two_sides(3, 3, True),
    "BipartiteMatching of other sides that may leave alone": _two_sides(4, 2, True),
    "Matching": Row(
        lambda n_jobs: Matching(6, n_jobs=n_jobs),
        lambda s: matchings(s.n_vertices, s.ends, True),
        _edges,
        _stacked,
        constant=lambda s: (np.ones(s.n_edges),),
    ),
    "Matching that need not be perfect": Row(
        lambda n_jobs: Matching(SQUARE, perfect=False, n_vertices=5, n_jobs=n_jobs),
        lambda s: matchings(s.n_vertices, s.ends, False),
        _edges,
        _stacked,
    ),
    "BMatching": _edge_sets(
        lambda n_jobs: BMatching((3, 4), ([2, 1, 2], [1, 2, 1, 1]), n_jobs=n_jobs), constant=lambda s: (np.ones((3, 4)),)
    ),
    "BMatching with fewer edges": _edge_sets(lambda n_jobs: BMatching((2, 4), ([3, 2], 1), perfect=False, n_jobs=n_jobs)),
    "BMatching without sides": _edge_sets(
        lambda n_jobs: BMatching([*SQUARE, (1, 3), (1, 4), (3, 4)], [2, 2, 1, 2, 1], n_vertices=5, n_jobs=n_jobs),
        constant=lambda s: (np.ones(s.n_edges),),
    ),
    "SpanningTree": _trees(lambda n_jobs: SpanningTree(4, n_jobs=n_jobs)),
    "SpanningTree of a directed graph": _trees(lambda n_jobs: SpanningTree(3, directed=True, n_jobs=n_jobs)),
    "SpanningTree with one edge at the root": _trees(
        lambda n_jobs: SpanningTree(4, directed=True, single_root=True, n_jobs=n_jobs)
    ),
    "BayesNet": Row(
        lambda n_jobs: BayesNet([2, 3, 2], [(), (0,), (0, 1)]),
        lambda net: choices(net.cardinalities),
        lambda net, y: _entries(_families(net), net.cardinalities, y),
        _stacked,
        constant=lambda net: (np.repeat([1.0, 0.0], [2, net.size - 2]),),
        normalised=_log_distributions,
        threads=False,
    ),
}
