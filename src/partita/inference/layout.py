"""A factor graph as the flat arrays that message passing, mean field and sampling work on."""

from __future__ import annotations

import itertools
import weakref
from typing import Any

import numpy as np
import scipy.sparse as sp

from ..core.results import FloatArray, IntArray
from ..kernels import feasible
from ..structures.factor_graph import FactorGraph

_layouts: weakref.WeakKeyDictionary[FactorGraph, dict[bool, Layout]] = weakref.WeakKeyDictionary()


class Layout:
    """Variables with scores of their states, and tables over at least two variables.

    Variables of one state leave the scopes of factors; factors of one variable are added to it. With `merge`, so are
    factors to another one that has all of their variables. Entries of what remains are sums of entries of the potentials:
    ``inner = gather @ potentials``, first the states of all variables, then the tables. Beliefs about them go back to
    marginals by the transpose.

    Attributes
    ----------
    arrays : tuple of int64 arrays
        What kernels take: where the states of a variable begin, where a table begins (among tables), where the members of a
        table begin, then of each member its variable, where its messages begin, and its stride in the table.
    incident : tuple of int64 arrays
        Of each variable the members (places in the scopes of tables) that it is: offsets and numbers.
    scopes : list of tuples of int
        The variables of each table.
    order, var_order : int64 arrays
        Tables in the order of sweeps; variables from roots outwards.
    acyclic : bool
        Whether messages on it are exact.
    """

    def __init__(self, graph: FactorGraph, merge: bool) -> None:
        cards = graph.cardinalities
        counts = cards.tolist()
        self.n_variables = graph.n_variables
        self.var_offsets: IntArray = np.concatenate(([0], np.cumsum(cards)))
        self.n_states = int(self.var_offsets[-1])
        reduced = [tuple(v for v in scope if counts[v] > 1) for scope in graph.factors]
        alone = [k for k, scope in enumerate(reduced) if not scope]
        self.constants: IntArray = graph.offsets[alone]
        self.constant_examples: IntArray = graph.factor_examples[alone]
        hosts, host_of = _hosts(reduced, merge)
        self.scopes = [reduced[k] for k in hosts]
        self.host_factors = hosts
        number = {k: h for h, k in enumerate(hosts)}
        sizes = np.diff(graph.offsets)[hosts] if hosts else np.zeros(0, np.int64)
        fac_offsets = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
        self.size = int(fac_offsets[-1])
        fac_ptr = np.concatenate(([0], np.cumsum([len(s) for s in self.scopes], dtype=np.int64)))
        edge_var = np.array(list(itertools.chain.from_iterable(self.scopes)), dtype=np.int64)
        edge_card = cards[edge_var]
        edge_offsets = np.concatenate(([0], np.cumsum(edge_card, dtype=np.int64)))
        steps, widths = [1] * len(edge_var), edge_card.tolist()
        for lo, hi in itertools.pairwise(fac_ptr.tolist()):
            for e in range(hi - 2, lo - 1, -1):
                steps[e] = steps[e + 1] * widths[e + 1]
        strides = np.array(steps, dtype=np.int64)
        self.n_messages = int(edge_offsets[-1])
        self.arrays = (self.var_offsets, fac_offsets, fac_ptr, edge_var, edge_offsets, strides)
        order = np.argsort(edge_var, kind="stable")
        starts = np.searchsorted(edge_var[order], np.arange(self.n_variables + 1)).astype(np.int64)
        self.incident = (starts, order.astype(np.int64))
        self.edge_factor: IntArray = np.repeat(np.arange(len(hosts)), np.diff(fac_ptr))
        self.examples = graph.examples
        self.fac_examples = graph.examples[edge_var[fac_ptr[:-1]]] if len(hosts) else np.zeros(0, np.int64)
        self.largest = int(sizes.max(initial=1))
        self.widest = int(np.add.reduceat(edge_card, fac_ptr[:-1]).max()) if len(hosts) else 1
        self.pairwise = all(len(s) == 2 for s in self.scopes)
        self.binary = self.pairwise and bool(np.all(edge_card == 2))
        self.gather = self._gather(graph, reduced, host_of, number)
        self.scatter = self.gather.T.tocsr()
        variables, tables, self.acyclic = _order(self.n_variables, self.scopes)
        if not self.acyclic:  # one that keeps neighbours together in memory, as a raster of a grid does
            tables = sorted(range(len(hosts)), key=lambda f: (max(self.scopes[f]), min(self.scopes[f])))
        self.order: IntArray = np.array(tables, dtype=np.int64)
        self.var_order: IntArray = np.array(variables, dtype=np.int64)
        #: What engines compile once for a graph.
        self.cache: dict[str, Any] = {}

    def _gather(
        self, graph: FactorGraph, reduced: list[tuple[int, ...]], host_of: list[int], number: dict[int, int]
    ) -> sp.csr_matrix:
        straight: list[tuple[int, int, int]] = []  # first row, first column and length of what is copied as it is
        rows: list[IntArray] = []
        columns: list[IntArray] = []
        offsets, fac_offsets, var_offsets = graph.offsets.tolist(), self.arrays[1].tolist(), self.var_offsets.tolist()
        for k, scope in enumerate(reduced):
            lo, hi = offsets[k], offsets[k + 1]
            if not scope:
                continue
            if len(scope) == 1:
                straight.append((var_offsets[scope[0]], lo, hi - lo))
                continue
            host = number[host_of[k]]
            first = self.n_states + fac_offsets[host]
            inner = self.scopes[host]
            if inner == scope:
                straight.append((first, lo, hi - lo))
                continue
            source = np.arange(lo, hi).reshape([int(graph.cardinalities[v]) for v in scope])
            source = source.transpose(sorted(range(len(scope)), key=lambda a: inner.index(scope[a])))
            shape = [int(graph.cardinalities[v]) if v in scope else 1 for v in inner]
            full = tuple(int(graph.cardinalities[v]) for v in inner)
            rows.append(first + np.arange(fac_offsets[host + 1] - fac_offsets[host]))
            columns.append(np.broadcast_to(source.reshape(shape), full).ravel())
        copied = np.array(straight, dtype=np.int64).reshape(-1, 3)
        ends = np.cumsum(copied[:, 2])
        within = np.arange(ends[-1] if len(ends) else 0) - np.repeat(ends - copied[:, 2], copied[:, 2])
        row = np.concatenate([np.repeat(copied[:, 0], copied[:, 2]) + within, *rows])
        column = np.concatenate([np.repeat(copied[:, 1], copied[:, 2]) + within, *columns])
        return sp.csr_matrix((np.ones(len(row)), (row, column)), shape=(self.n_states + self.size, graph.size))

    def scores(self, potentials: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Scores of states and of table entries, a row for each row of potentials."""
        inner = np.ascontiguousarray((self.gather @ potentials.T).T)
        return np.ascontiguousarray(inner[:, : self.n_states]), np.ascontiguousarray(inner[:, self.n_states :])

    def prune(self, states: FloatArray, tables: FloatArray) -> bool:
        """Forbid states (in place) that no table allows, until nothing changes; False if a variable has none left."""
        if not (np.isneginf(states).any() or np.isneginf(tables).any()):
            return True
        possible = True
        for row in range(len(states)):
            alive = states[row] > -np.inf
            possible &= bool(
                feasible.propagate_all(self.arrays, self.incident, self.edge_factor, tables[row] > -np.inf, alive)
            )
            states[row][~alive] = -np.inf
        return possible

    def constant(self, potentials: FloatArray) -> FloatArray:
        """Scores of factors without variables, (rows, examples)."""
        out = np.zeros((len(potentials), int(self.examples[-1]) + 1))
        for place, e in zip(self.constants.tolist(), self.constant_examples.tolist(), strict=True):
            out[:, e] += potentials[:, place]
        return out

    def marginals(self, states: FloatArray, tables: FloatArray) -> FloatArray:
        """Beliefs about states and tables as marginals, in the shape of the potentials."""
        out = np.ascontiguousarray((self.scatter @ np.concatenate([states, tables], axis=1).T).T)
        out[:, self.constants] = 1.0
        return out


def layout(graph: FactorGraph, merge: bool = True) -> Layout:
    """The layout of a graph, compiled once."""
    found = _layouts.setdefault(graph, {})
    if merge not in found:
        found[merge] = Layout(graph, merge)
    return found[merge]


def _hosts(scopes: list[tuple[int, ...]], merge: bool) -> tuple[list[int], list[int]]:
    """Factors that keep a table, in order, and for every factor (of at least two variables) the one it is added to."""
    host_of = list(range(len(scopes)))
    if merge:
        by_variable: dict[int, list[int]] = {}
        by_scope: dict[tuple[int, ...], int] = {}
        mixed = len({len(s) for s in scopes if len(s) > 1}) > 1
        for k in sorted((k for k, s in enumerate(scopes) if len(s) > 1), key=lambda k: -len(scopes[k])):
            key = tuple(sorted(scopes[k]))
            found = by_scope.get(key)
            if found is None and mixed:
                rarest = min(scopes[k], key=lambda v: len(by_variable.get(v, ())))
                found = next((h for h in by_variable.get(rarest, ()) if set(key) <= set(scopes[h])), None)
            if found is None:
                by_scope[key] = k
                for v in scopes[k] if mixed else ():
                    by_variable.setdefault(v, []).append(k)
            else:
                host_of[k] = found
    return [k for k, s in enumerate(scopes) if len(s) > 1 and host_of[k] == k], host_of


def _order(n: int, scopes: list[tuple[int, ...]]) -> tuple[list[int], list[int], bool]:
    """Variables and tables from roots outwards, and whether no two paths lead to the same variable."""
    tables: list[list[int]] = [[] for _ in range(n)]
    for f, scope in enumerate(scopes):
        for v in scope:
            tables[v].append(f)
    seen, used = [False] * n, [False] * len(scopes)
    variables: list[int] = []
    order: list[int] = []
    acyclic = True
    for root in range(n):
        if seen[root]:
            continue
        seen[root] = True
        variables.append(root)
        head = len(variables) - 1
        while head < len(variables):
            v = variables[head]
            head += 1
            for f in tables[v]:
                if used[f]:
                    continue
                used[f] = True
                order.append(f)
                for u in scopes[f]:
                    if u != v:
                        acyclic &= not seen[u]
                        if not seen[u]:
                            seen[u] = True
                            variables.append(u)
    return variables, order, acyclic
