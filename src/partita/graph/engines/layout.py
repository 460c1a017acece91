"""A factor graph as the flat arrays that belief propagation, mean field and Gibbs sampling work on."""

from __future__ import annotations

import itertools
import weakref
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray, IntArray
from ..kernels import arc_consistency, spanning_trees
from ..kernels.factor_layout import Chunk, FactorLayout, Workspace, workspace
from ..structure.factor_graph import FactorGraph
from ..structure.scopes import Scopes, ranges

#: Tables that are worked on together, at least.
CHUNK = 4096

_layouts: weakref.WeakKeyDictionary[FactorGraph, dict[bool, Layout]] = weakref.WeakKeyDictionary()


class Layout:
    """Variables with scores of their states, and tables over at least two variables.

    Variables of one state leave the scopes of factors; factors of one variable are added to it. With `merge`, so are
    factors to another one that has all of their variables. Entries of what remains are sums of entries of the potentials:
    ``inner = gather @ potentials``, first the states of all variables, then the tables. Beliefs about them go back to
    marginals by the transpose.

    Attributes
    ----------
    arrays : FactorLayout
        What kernels take.
    n_tables : int
    order, var_order : int64 arrays
        Tables in the order of sweeps; variables in breadth-first order.
    acyclic : bool
        Whether messages on it are exact.
    chunks : list of Chunk
        Examples (or several small ones) that can be worked on apart.
    """

    var_order: IntArray

    def __init__(self, graph: FactorGraph, merge: bool) -> None:
        cards = graph.cardinalities
        self.n_variables: int = graph.n_variables
        self.var_offsets: IntArray = np.concatenate(([0], np.cumsum(cards)))
        self.n_states: int = int(self.var_offsets[-1])
        kept = cards[graph.members] > 1
        owner = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_offsets))
        lengths = np.bincount(owner[kept], minlength=graph.n_factors).astype(np.int64)
        reduced = Scopes(np.concatenate(([0], np.cumsum(lengths))), graph.members[kept])
        alone = np.flatnonzero(lengths == 0)
        self.constants: IntArray = graph.offsets[alone]
        self.constant_examples: IntArray = graph.factor_examples[alone]
        hosts, host_of = _hosts(reduced, self.n_variables) if merge else (np.flatnonzero(lengths > 1), None)
        self.host_factors: IntArray = hosts
        self.n_tables: int = len(hosts)
        sizes = np.diff(graph.offsets)[hosts]
        fac_offsets = np.concatenate(([0], np.cumsum(sizes)))
        self.size: int = int(fac_offsets[-1])
        fac_ptr = np.concatenate(([0], np.cumsum(lengths[hosts])))
        edge_var = reduced.members[ranges(reduced.offsets[hosts], lengths[hosts])]
        edge_card = cards[edge_var]
        edge_offsets = np.concatenate(([0], np.cumsum(edge_card)))
        strides = np.ones_like(edge_card)
        for arity in np.unique(lengths[hosts]).tolist():
            last = fac_ptr[1:][lengths[hosts] == arity] - 1
            for back in range(1, arity):
                strides[last - back] = strides[last - back + 1] * edge_card[last - back + 1]
        self.n_messages: int = int(edge_offsets[-1])
        order = np.argsort(edge_var, kind="stable")
        self.arrays: FactorLayout = FactorLayout(
            var_offsets=self.var_offsets,
            var_ptr=np.searchsorted(edge_var[order], np.arange(self.n_variables + 1)).astype(np.int64),
            var_edges=order.astype(np.int64),
            var_examples=graph.examples,
            fac_offsets=fac_offsets,
            fac_ptr=fac_ptr,
            fac_examples=graph.examples[edge_var[fac_ptr[:-1]]] if len(hosts) else np.zeros(0, np.int64),
            edge_var=edge_var,
            edge_factor=np.repeat(np.arange(self.n_tables), np.diff(fac_ptr)),
            edge_offsets=edge_offsets,
            strides=strides,
        )
        self.largest: int = int(sizes.max(initial=1))
        #: The most states that the variables of a table, or a variable in no table, have together.
        self.widest: int = int(max(cards.max(), np.add.reduceat(edge_card, fac_ptr[:-1]).max() if len(hosts) else 1))
        self.pairwise: bool = bool((lengths[hosts] == 2).all())
        self.binary: bool = self.pairwise and bool(np.all(edge_card == 2))
        self.gather: Any = self._gather(graph, reduced, host_of)
        self.scatter: Any = self.gather.T.tocsr()
        self.var_order, self.order = np.empty(self.n_variables, np.int64), np.empty(self.n_tables, np.int64)
        self.acyclic: bool = bool(spanning_trees.breadth_first(self.arrays, self.var_order, self.order))
        if not self.acyclic:  # one that keeps neighbours together in memory, as a raster of a grid does
            extremes = [part.reduceat(edge_var, fac_ptr[:-1]) for part in (np.minimum, np.maximum)]
            self.order = np.lexsort(extremes)
        self.chunks: list[Chunk] = self._chunks(graph.n_examples)
        #: What engines compile once for a graph.
        self.cache: dict[str, Any] = {}

    def _chunks(self, n_examples: int) -> list[Chunk]:
        starts = np.searchsorted(self.arrays.var_examples, np.arange(n_examples + 1))
        ends = np.searchsorted(self.arrays.fac_examples[self.order], np.arange(n_examples + 1))
        chunks, first = [], 0
        for e in range(1, n_examples + 1):
            if ends[e] - ends[first] >= CHUNK or e == n_examples:
                chunks.append(Chunk(self.order[ends[first] : ends[e]], int(starts[first]), int(starts[e])))
                first = e
        return chunks

    def workspace(self) -> Workspace:
        """What message passing works in: one for each thread."""
        return workspace(self.largest, self.widest)

    @cached_property
    def scopes(self) -> list[tuple[int, ...]]:
        """The variables of each table."""
        members = self.arrays.edge_var.tolist()
        return [tuple(members[lo:hi]) for lo, hi in itertools.pairwise(self.arrays.fac_ptr.tolist())]

    def _gather(self, graph: FactorGraph, reduced: Scopes, host_of: IntArray | None) -> sp.csr_matrix:
        offsets, sizes, lengths = graph.offsets, np.diff(graph.offsets), np.diff(reduced.offsets)
        number = np.zeros(graph.n_factors, np.int64)
        number[self.host_factors] = np.arange(self.n_tables)
        tables = self.n_states + self.arrays.fac_offsets  # the first row of each
        single = np.flatnonzero(lengths == 1)
        straight = [(self.var_offsets[reduced.members[reduced.offsets[single]]], offsets[single], sizes[single])]
        hosts = self.host_factors
        straight.append((tables[:-1], offsets[hosts], sizes[hosts]))
        rows, columns = [], []
        for first, source, count in straight:  # copied as they are
            rows.append(ranges(first, count))
            columns.append(ranges(source, count))
        if host_of is not None:
            for k in np.flatnonzero((lengths > 1) & (host_of != np.arange(graph.n_factors))).tolist():
                host = int(number[host_of[k]])
                scope, inner = reduced.members[reduced.offsets[k] : reduced.offsets[k + 1]].tolist(), self.scopes[host]
                part = np.arange(offsets[k], offsets[k + 1]).reshape(graph.cardinalities[scope])
                part = part.transpose(sorted(range(len(scope)), key=lambda a: inner.index(scope[a])))
                shape = [int(graph.cardinalities[v]) if v in scope else 1 for v in inner]
                full = tuple(graph.cardinalities[list(inner)])
                rows.append(np.arange(tables[host], tables[host + 1]))
                columns.append(np.broadcast_to(part.reshape(shape), full).ravel())
        row, column = np.concatenate(rows), np.concatenate(columns)
        return sp.csr_matrix((np.ones(len(row)), (row, column)), shape=(self.n_states + self.size, graph.size))

    def scores(self, potentials: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores of states and of table entries, a row for each row of potentials."""
        inner = np.ascontiguousarray((self.gather @ potentials.T).T)
        return np.ascontiguousarray(inner[:, : self.n_states]), np.ascontiguousarray(inner[:, self.n_states :])

    def prune(self, states: FloatArray, tables: FloatArray) -> bool:
        """Arc consistency: forbid states (in place) that no table allows, until nothing changes; False if a variable has
        none left."""
        if not (np.isneginf(states).any() or np.isneginf(tables).any()):
            return True
        possible = True
        for row in range(len(states)):
            alive = states[row] > -np.inf
            possible &= bool(arc_consistency.arc_consistency(self.arrays, tables[row] > -np.inf, alive))
            states[row][~alive] = -np.inf
        return possible

    def constant(self, potentials: FloatArray) -> FloatArray:
        """Scores of factors without variables, (rows, examples)."""
        out = np.zeros((len(potentials), int(self.arrays.var_examples[-1]) + 1))
        for place, e in zip(self.constants.tolist(), self.constant_examples.tolist(), strict=True):
            out[:, e] += potentials[:, place]
        return out

    def marginals(self, states: FloatArray, tables: FloatArray) -> FloatArray:
        """Beliefs about states and tables as marginals, in the shape of the potentials."""
        out = np.ascontiguousarray((self.scatter @ np.concatenate([states, tables], axis=1).T).T)
        out[:, self.constants] = 1.0
        return out


def given(graph: FactorGraph, potentials: Any) -> FloatArray:
    """The checked potentials of a graph, which engines take as they are."""
    if not isinstance(graph, FactorGraph):
        raise ValueError(f"graph must be a FactorGraph, got {type(graph).__name__}")
    return graph.potentials(potentials)


def layout(graph: FactorGraph, merge: bool = True) -> Layout:
    """The layout of a graph, compiled once."""
    found = _layouts.setdefault(graph, {})
    if merge not in found:
        found[merge] = Layout(graph, merge)
    return found[merge]


def _hosts(scopes: Scopes, n: int) -> tuple[IntArray, IntArray]:
    """Factors that keep a table, in order, and for every factor (of at least two variables) the one it is added to."""
    lengths = np.diff(scopes.offsets)
    host_of = np.arange(len(lengths))
    large = np.flatnonzero(lengths > 1)
    arities = np.unique(lengths[large])
    if len(arities) == 1 and float(n) ** float(arities[0]) < 2.0**62:
        rows = np.sort(scopes.members[scopes.offsets[large][:, None] + np.arange(arities[0])], axis=1)
        key = rows @ n ** np.arange(arities[0])
        _, first, which = np.unique(key, return_index=True, return_inverse=True)
        host_of[large] = large[first[which]]
    elif len(large):
        bounds = scopes.offsets.tolist()
        listed = [(k, scopes.members[bounds[k] : bounds[k + 1]].tolist()) for k in large.tolist()]
        for k, host in _containing(listed).items():
            host_of[k] = host
    return large[host_of[large] == large], host_of


def _containing(scopes: list[tuple[int, list[int]]]) -> dict[int, int]:
    """For factors of several sizes, the largest one found that has all variables of each."""
    out: dict[int, int] = {}
    sets: dict[int, set[int]] = {}
    by_variable: dict[int, list[int]] = {}
    by_scope: dict[tuple[int, ...], int] = {}
    for k, scope in sorted(scopes, key=lambda item: -len(item[1])):
        key = tuple(sorted(scope))
        found = by_scope.get(key)
        if found is None:
            rarest = min(scope, key=lambda v: len(by_variable.get(v, ())))
            found = next((h for h in by_variable.get(rarest, ()) if sets[h].issuperset(key)), None)
        if found is None:
            by_scope[key], sets[k], found = k, set(key), k
            for v in scope:
                by_variable.setdefault(v, []).append(k)
        out[k] = found
    return out
