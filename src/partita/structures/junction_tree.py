"""Exact sums on a factor graph by a junction tree."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np

from ..core.parallel import Workers
from ..core.results import FloatArray, IntArray
from ..kernels import junction as kernels
from .elimination import Clique, Elimination

_Table = tuple[int, int, tuple[int, ...]]  # kind (see `kernels.junction`), place, variables

#: Entries of a block that is worked on at a time.
BLOCK = 1024
#: Most entries of the sum of several factors that a clique takes as one, and at most so many of its own.
GROUP, SHARE = 4096, 1.0 / 16.0


class JunctionTree:
    """A junction tree compiled to flat index arrays: many potentials on it are then one kernel call.

    Parameters
    ----------
    elimination : Elimination
        Its cliques, children before parents, those of an example together.
    cardinalities : array of int
        Number of states of every variable.
    scopes : sequence of tuples of int
        Variables of every factor, those of a table's slowest axis first.
    offsets : array of int
        Table k is at ``offsets[k]:offsets[k + 1]`` of the potentials.
    examples : array of int
        The example of every clique.
    """

    def __init__(
        self,
        elimination: Elimination,
        cardinalities: IntArray,
        scopes: Sequence[tuple[int, ...]],
        offsets: IntArray,
        examples: IntArray,
    ) -> None:
        self.elimination, self.cardinalities = elimination, cardinalities
        owner = np.full(len(cardinalities), -1, np.int64)
        for c, clique in enumerate(elimination.cliques):
            owner[list(clique.residual)] = c
        # A factor belongs where its first variable is summed out; all others are still there.
        tables: list[list[_Table]] = [[] for _ in elimination.cliques]
        self.homes = [min((int(owner[v]) for v in scope if cardinalities[v] > 1), default=-1) for scope in scopes]
        for k, home in enumerate(self.homes):
            if home >= 0:
                tables[home].append((0, int(offsets[k]), scopes[k]))
        self.constants = [k for k, home in enumerate(self.homes) if home < 0]
        cliques, sources, origin = _grouped(elimination.cliques, tables, cardinalities)
        self.cliques, examples = cliques, examples[origin]
        counts = cardinalities.tolist()
        shared = [prod(counts[v] for v in clique.separator) for clique in cliques]
        places = np.concatenate(([0], np.cumsum(shared, dtype=np.int64)))
        for c, clique in enumerate(cliques):
            if clique.parent >= 0:
                sources[clique.parent].append((1, int(places[c]), clique.separator))
        self.n_messages = int(places[-1])
        self._compile(sources, places)
        self.roots = np.array([c for c, clique in enumerate(cliques) if clique.parent < 0], dtype=np.int64)
        self.root_places = places[self.roots]
        self.root_examples = examples[self.roots]
        self.examples = examples
        variables = [v for clique in cliques for v in (*clique.separator, *clique.residual)]
        ends = np.cumsum([len(clique.separator) + len(clique.residual) for clique in cliques], dtype=np.int64)
        starts = np.concatenate(([0], ends[:-1])).astype(np.int64)
        middles = starts + [len(clique.separator) for clique in cliques]
        self.variables = np.array(variables, dtype=np.int64)
        self.bounds = np.column_stack([starts, middles, ends]) if cliques else np.zeros((0, 3), np.int64)
        sizes = [n * prod(counts[v] for v in q.residual) for n, q in zip(shared, cliques, strict=True)]
        self.work = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))  # entries of the cliques before

    def _compile(self, sources: list[list[_Table]], places: IntArray) -> None:
        rows, maps = [], _Pool()
        inputs: list[tuple[int, int, int, int, int]] = []
        strides: list[int] = []
        axes: list[int] = []
        most_inputs = most_axes = 1
        states = self.cardinalities.tolist()
        for c, clique in enumerate(self.cliques):
            order = (*clique.separator, *clique.residual)
            counts = [states[v] for v in order]
            split, inner = len(order), 1
            while split and inner * counts[split - 1] <= BLOCK:
                split -= 1
                inner *= counts[split]
            first_axis, first_input = len(axes), len(inputs)
            axes += counts[:split]
            for kind, place, scope in sources[c]:
                step = dict(zip(scope, _steps([states[v] for v in scope]), strict=True))
                jumps = [step.get(v, 0) for v in order]
                form, where = maps.add(counts[split:], jumps[split:])
                inputs.append((kind, place, where, len(strides), form))
                strides += jumps[:split]
            residual = prod(states[v] for v in clique.residual)
            rows.append((first_axis, len(axes), first_input, len(inputs), inner, residual, int(places[c])))
            most_inputs, most_axes = max(most_inputs, len(inputs) - first_input), max(most_axes, split)
        table = np.array(rows, dtype=np.int64).reshape(-1, 7)
        self.room = np.array([table[:, kernels.INNER].max(initial=1), most_inputs, most_axes], dtype=np.int64)
        self.arrays = (
            table,
            np.array(axes, dtype=np.int64),
            np.array(inputs, dtype=np.int64).reshape(-1, 5),
            maps.array(),
            np.array(strides, dtype=np.int64),
        )

    def ranges(self) -> list[tuple[int, int]]:
        """Runs of cliques that can be worked on apart: those of whole examples."""
        if not len(self.examples):
            return []
        edges = np.concatenate(([0], np.flatnonzero(np.diff(self.examples)) + 1, [len(self.examples)]))
        return [(int(edges[lo]), int(edges[hi])) for lo, hi in Workers.balanced(self.work[edges], 20.0 * self.work[-1])]

    def collect(self, potentials: FloatArray, lo: int, hi: int, messages: FloatArray, best: bool = False) -> None:
        """Messages to the parents."""
        kernels.collect(*self.arrays, potentials, best, lo, hi, self.room, messages)

    def distribute(
        self, potentials: FloatArray, lo: int, hi: int, messages: FloatArray, beliefs: FloatArray, marginals: FloatArray
    ) -> None:
        """Probabilities of the entries of all tables, after `collect`."""
        kernels.distribute(*self.arrays, potentials, lo, hi, self.room, messages, beliefs, marginals)

    def descend(
        self, potentials: FloatArray, lo: int, hi: int, messages: FloatArray, uniforms: FloatArray, states: IntArray
    ) -> None:
        """The best states, or with `uniforms` drawn ones, after `collect`."""
        arrays = (*self.arrays, self.variables, self.bounds, self.cardinalities)
        kernels.descend(*arrays, potentials, messages, uniforms, lo, hi, self.room, states)


def _grouped(
    cliques: Sequence[Clique], tables: list[list[_Table]], cardinalities: IntArray
) -> tuple[list[Clique], list[list[_Table]], IntArray]:
    """Cliques that take the sums of several small factors as one message, from cliques of their own that sum nothing out.

    Returns the cliques, their factors, and for each the clique that it comes from.
    """
    found: list[tuple[Clique, list[_Table], int]] = []
    place = np.empty(len(cliques), np.int64)
    counts = cardinalities.tolist()
    for c, (clique, own) in enumerate(zip(cliques, tables, strict=True)):
        order = (*clique.separator, *clique.residual)
        limit = min(GROUP, SHARE * prod(counts[v] for v in order))
        groups: list[tuple[set[int], list[_Table]]] = []
        for table in sorted(own, key=lambda table: sorted(table[2])):
            scope = set(table[2])
            fits = [g for g in groups if prod(counts[v] for v in g[0] | scope) <= limit]
            if fits:
                best = min(fits, key=lambda g: len(g[0] | scope))
                best[0].update(scope)
                best[1].append(table)
            else:
                groups.append((scope, [table]))
        for union, members in groups:
            if len(members) > 1:
                found.append((Clique(tuple(v for v in order if v in union), (), c), members, c))
        place[c] = len(found)
        found.append((clique, [members[0] for _, members in groups if len(members) == 1], c))
    nodes = [replace(node, parent=int(place[node.parent]) if node.parent >= 0 else -1) for node, _, _ in found]
    return nodes, [members for _, members, _ in found], np.array([c for _, _, c in found], dtype=np.int64)


def _steps(counts: list[int]) -> list[int]:
    """How far apart in a table two entries are that differ by one in an axis."""
    steps = [1] * len(counts)
    for i in range(len(counts) - 1, 0, -1):
        steps[i - 1] = steps[i] * counts[i]
    return steps


class _Pool:
    """Maps from the entries of a block to those of a table, each stored once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, int]] = {}
        self._maps: list[IntArray] = []
        self._size = 0

    def add(self, counts: list[int], jumps: list[int]) -> tuple[int, int]:
        """The form of a map (see `kernels.junction`) and where it is."""
        key = (tuple(counts), tuple(jumps))
        if key not in self._known:
            index: Any = np.zeros(1, np.int64)
            for count, jump in zip(counts, jumps, strict=True):
                index = (index[:, None] + jump * np.arange(count)).ravel()
            if not index.any():
                self._known[key] = (2, 0)
            elif np.array_equal(index, np.arange(len(index))):
                self._known[key] = (1, 0)
            else:
                self._known[key] = (0, self._size)
                self._maps.append(index)
                self._size += len(index)
        return self._known[key]

    def array(self) -> Any:
        return np.concatenate([np.zeros(0, np.int32), *self._maps]).astype(np.int32)
