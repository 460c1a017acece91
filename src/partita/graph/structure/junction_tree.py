"""Exact inference on a factor graph by a junction tree: collect evidence towards the roots, distribute it to the leaves."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import replace
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import junction_tree as kernels
from ..kernels.clique_layout import FACTOR, KIND, OFFSET, SEPARATOR, TARGET, CliqueLayout, CliqueScopes, Tables
from .elimination import Clique, Elimination
from .junction_layout import Arena, Rows, Source, Target, outer

#: Most entries of the sum of several factors that a clique takes as one, and at most so many of its own.
GROUP, SHARE = 4096, 1.0 / 16.0
#: Entries from which a clique is cut into slices for threads, and about how many.
LARGE, SLICES = 1 << 17, 8
#: Most entries, as a share of those of the clique, that slices take for sums of their own.
SPARE = 1.0 / 8.0
#: Entries of the messages of an example from which their beliefs share memory.
CROWDED = 1 << 16

_SERIAL = Workers(1)


class _Sum(NamedTuple):
    """Slices that add to the same table do so in copies of their own, which are added up afterwards."""

    source: int  # the offset of the first of these copies in the beliefs
    size: int
    kind: int
    target: int


class _Step(NamedTuple):
    """Small cliques, in pieces that can be worked on apart; or the slices of a large one."""

    pieces: list[tuple[int, int]]
    sliced: bool = False
    areas: tuple[tuple[int, int], ...] = ()  # of the beliefs, to be zero beforehand
    sums: tuple[_Sum, ...] = ()


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

    Notes
    -----
    Work is cut in the same way for any number of threads: by example, and in large cliques by the states of some variables.
    A belief is needed from when its clique's parent is done until the clique is: large ones share memory.
    """

    elimination: Elimination
    cardinalities: IntArray
    cliques: list[Clique]
    layout: CliqueLayout
    n_messages: int
    n_beliefs: int

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
        tables: list[list[Source]] = [[] for _ in elimination.cliques]
        self.homes: list[int] = [min((int(owner[v]) for v in scope if cardinalities[v] > 1), default=-1) for scope in scopes]
        for k, home in enumerate(self.homes):
            if home >= 0:
                tables[home].append(Source(FACTOR, int(offsets[k]), scopes[k]))
        self.constants: list[int] = [k for k, home in enumerate(self.homes) if home < 0]
        self._counts: list[int] = cardinalities.tolist()
        self.cliques, sources, origin = _arranged(elimination.cliques, tables, self._counts)
        self.examples: IntArray = examples[origin]
        self._shared = [prod(self._counts[v] for v in clique.separator) for clique in self.cliques]
        self.roots: IntArray = np.array([c for c, clique in enumerate(self.cliques) if clique.parent < 0], dtype=np.int64)
        self.root_examples: IntArray = self.examples[self.roots]
        sizes = [n * prod(self._counts[v] for v in q.residual) for n, q in zip(self._shared, self.cliques, strict=True)]
        self.work: NDArray[Any] = np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))  # entries of the cliques before
        self._compile(sources)
        variables = [v for clique in self.cliques for v in (*clique.separator, *clique.residual)]
        ends = np.cumsum([len(clique.separator) + len(clique.residual) for clique in self.cliques], dtype=np.int64)
        starts = np.concatenate(([0], ends[:-1])).astype(np.int64)
        middles = starts + [len(clique.separator) for clique in self.cliques]
        bounds = np.column_stack([starts, middles, ends]) if self.cliques else np.zeros((0, 3), np.int64)
        self.scopes: CliqueScopes = CliqueScopes(np.array(variables, dtype=np.int64), bounds, cardinalities)

    def _compile(self, factors: list[list[Source]]) -> None:
        rows, slices = Rows(self._counts), Rows(self._counts)
        first = self._first_of_message()
        beliefs = _Beliefs(self._shared, self.cliques, self.examples)
        kept = [size if first[c] == c else 0 for c, size in enumerate(self._shared)]
        offsets = np.concatenate(([0], np.cumsum(kept, dtype=np.int64))).tolist()
        own = [Source(SEPARATOR, offsets[first[c]], clique.separator) for c, clique in enumerate(self.cliques)]
        children: list[list[int]] = [[] for _ in self.cliques]
        for c, clique in enumerate(self.cliques):
            if clique.parent >= 0 and first[c] == c:
                children[clique.parent].append(c)
        layout: list[tuple[list[Source], list[Target]]] = []
        sliced: dict[int, _Step] = {}
        for c in range(len(self.cliques) - 1, -1, -1):
            beliefs.enter(c)
            tables = [*factors[c], *(own[b] for b in children[c]), own[c]]
            targets = [Target(FACTOR, source.offset, 0) for source in factors[c]]
            targets += [Target(SEPARATOR, beliefs.take(b), self._shared[b]) for b in children[c]]
            targets.append(Target(SEPARATOR, beliefs.offsets[first[c]], 0))
            layout.append((tables, targets))
            variables = self._cut(c, tables[:-1])
            if variables:
                sliced[c] = self._slice(c, variables, tables, targets, first[c] < c, slices, beliefs)
            if first[c] == c:
                beliefs.give(c)
        for c, (tables, targets) in enumerate(reversed(layout)):
            rows.add(self.cliques[c], tables, targets, first[c] < c)
        self.layout, self._slices = rows.layout(), slices.layout()
        self.n_messages, self.n_beliefs = offsets[-1], beliefs.size
        self.root_messages: IntArray = np.array([offsets[c] for c in self.roots.tolist()], dtype=np.int64)
        self._root_beliefs = np.array([beliefs.offsets[c] for c in self.roots.tolist()], dtype=np.int64)
        self._steps = self._plan(sliced)

    def _first_of_message(self) -> list[int]:
        """For each clique the first that adds to the same message: those that share it have one parent and one separator."""
        known: dict[tuple[int, tuple[int, ...]], int] = {}
        out = []
        for c, clique in enumerate(self.cliques):
            if clique.parent < 0 or outer(clique, self._counts) > len(clique.separator):  # a row must be within a block
                out.append(c)
            else:
                out.append(known.setdefault((clique.parent, clique.separator), c))
        return out

    def _cut(self, c: int, tables: Sequence[Source]) -> list[int]:
        """The variables whose states cut a large clique into slices, none if it is to stay whole."""
        clique, entries = self.cliques[c], int(self.work[c + 1] - self.work[c])
        if entries < LARGE:
            return []
        sizes = [prod(self._counts[v] for v in scope) for _, _, scope in tables]

        def shared(v: int) -> int:  # entries of the tables that slices by the states of v would all add to
            return sum(size for size, (_, _, scope) in zip(sizes, tables, strict=True) if v not in scope)

        found: list[int] = []
        slices = 1
        for v in sorted(clique.separator[: outer(clique, self._counts)], key=shared):
            extra = sum(shared(u) for u in (*found, v)) * slices * self._counts[v]
            if slices < SLICES and slices * self._counts[v] <= 2 * SLICES and extra <= SPARE * entries:
                found.append(v)
                slices *= self._counts[v]
        return found

    def _slice(
        self,
        c: int,
        variables: list[int],
        tables: list[Source],
        targets: list[Target],
        added: bool,
        slices: Rows,
        beliefs: _Beliefs,
    ) -> _Step:
        """Write the slices of a clique."""
        states = list(itertools.product(*(range(self._counts[v]) for v in variables)))
        sums, moved, areas = [], [], []
        for source, (kind, offset, area) in zip(tables, targets, strict=True):
            if area:
                areas.append((offset, area))
            size = prod(self._counts[v] for v in source.scope)
            if all(v in source.scope for v in variables):
                moved.append((kind, offset, 0))
                continue
            spare = beliefs.borrow(size * len(states))
            sums.append(_Sum(spare, size, kind, offset))
            areas.append((spare, size * len(states)))
            moved.append((SEPARATOR, spare, size))
        first = len(slices)
        for i, picked in enumerate(states):
            where = [Target(kind, offset + i * size, 0) for kind, offset, size in moved]
            slices.add(self.cliques[c], tables, where, added, dict(zip(variables, picked, strict=True)))
        for total in sums:
            beliefs.give_back(total.source, total.size * len(states))
        pieces = [(i, i + 1) for i in range(first, len(slices))]
        return _Step(pieces, True, tuple(areas), tuple(sums))

    def _plan(self, sliced: dict[int, _Step]) -> list[_Step]:
        """Runs of small cliques and slices of large ones, in the order of the cliques."""
        out, last = [], 0
        for c in sorted(sliced):
            if c > last:
                out.append(_Step(self.ranges(last, c)))
            out.append(sliced[c])
            last = c + 1
        if last < len(self.cliques):
            out.append(_Step(self.ranges(last, len(self.cliques))))
        return out

    def ranges(self, lo: int = 0, hi: int | None = None) -> list[tuple[int, int]]:
        """Runs of the cliques lo..hi that can be worked on apart: those of whole examples."""
        hi = len(self.examples) if hi is None else hi
        if hi == lo:
            return []
        edges = np.concatenate(([lo], lo + np.flatnonzero(np.diff(self.examples[lo:hi])) + 1, [hi]))
        work = self.work[edges] - self.work[lo]
        return [(int(edges[a]), int(edges[b])) for a, b in Workers.balanced(work, 20.0 * work[-1])]

    def collect(
        self, potentials: FloatArray, messages: FloatArray, max_product: bool = False, workers: Workers = _SERIAL
    ) -> None:
        """Collect evidence: messages to the parents, which are sums or with `max_product` maxima."""
        tables = Tables(potentials, messages)
        for step in self._steps:
            layout = self._slices if step.sliced else self.layout
            workers.run(kernels.collect, [(layout, max_product, lo, hi, tables) for lo, hi in step.pieces])

    def distribute(
        self, potentials: FloatArray, messages: FloatArray, marginals: FloatArray, workers: Workers = _SERIAL
    ) -> None:
        """Distribute evidence, after `collect`: add the probabilities of the entries of all tables to `marginals`."""
        tables, beliefs = Tables(potentials, messages), np.empty(self.n_beliefs)
        probabilities = Tables(marginals, beliefs)
        beliefs[self._root_beliefs] = 1.0
        for step in reversed(self._steps):
            layout = self._slices if step.sliced else self.layout
            for offset, size in step.areas:
                beliefs[offset : offset + size] = 0.0
            workers.run(kernels.distribute, [(layout, tables, lo, hi, probabilities) for lo, hi in step.pieces])
            for total in step.sums:
                parts = beliefs[total.source : total.source + total.size * len(step.pieces)].reshape(-1, total.size)
                target = beliefs if total.kind == SEPARATOR else marginals
                target[total.target : total.target + total.size] += parts.sum(0)

    def distribute_all(
        self,
        potentials: FloatArray,
        messages: FloatArray,
        beliefs: FloatArray,
        marginals: FloatArray,
        workers: Workers = _SERIAL,
    ) -> None:
        """As `distribute`, and keep the beliefs of all separators, which are where the messages are; zero beforehand."""
        inputs, targets = self.layout.inputs, np.zeros((len(self.layout.inputs), 3), np.int64)
        targets[:, KIND], targets[:, TARGET] = inputs[:, KIND], inputs[:, OFFSET]
        beliefs[self.root_messages] = 1.0
        layout, tables = self.layout._replace(targets=targets), Tables(potentials, messages)
        probabilities = Tables(marginals, beliefs)
        workers.run(kernels.distribute, [(layout, tables, lo, hi, probabilities) for lo, hi in self.ranges()])

    def descend(self, potentials: FloatArray, messages: FloatArray, uniforms: FloatArray, states: IntArray) -> None:
        """Rows of states, after `collect`: the best ones, or drawn ones by rows of `uniforms`, a number for each clique."""
        kernels.descend(self.layout, self.scopes, Tables(potentials, messages), uniforms, states)


class _Beliefs:
    """Where the beliefs of separators are, from the last clique to the first; in large examples only while needed."""

    def __init__(self, sizes: list[int], cliques: Sequence[Clique], examples: IntArray) -> None:
        self.offsets: dict[int, int] = {}
        self._sizes, self._examples = sizes, examples.tolist()
        self._messages = np.bincount(examples, weights=sizes).tolist() if sizes else []
        self._roots: dict[int, list[int]] = {}
        for c, clique in enumerate(cliques):
            if clique.parent < 0:
                self._roots.setdefault(self._examples[c], []).append(c)
        self._first, self._arena, self._example = 0, Arena(), -1

    @property
    def size(self) -> int:
        return self._first + self._arena.size

    def enter(self, c: int) -> None:
        """Go on to a clique; examples share nothing."""
        if self._examples[c] != self._example:
            self._first, self._arena, self._example = self.size, Arena(), self._examples[c]
            for root in self._roots[self._example]:
                self.take(root)

    def take(self, c: int) -> int:
        """The offset of the belief of a clique, from now on."""
        self.offsets[c] = self.borrow(self._sizes[c])
        return self.offsets[c]

    def give(self, c: int) -> None:
        """The belief of a clique is needed no more."""
        if self._messages[self._example] >= CROWDED:
            self.give_back(self.offsets[c], self._sizes[c])

    def borrow(self, size: int) -> int:
        return self._first + self._arena.take(size)

    def give_back(self, offset: int, size: int) -> None:
        self._arena.give(offset - self._first, size)


def _arranged(
    cliques: Sequence[Clique], tables: list[list[Source]], counts: list[int]
) -> tuple[list[Clique], list[list[Source]], IntArray]:
    """The cliques as they are summed. Several small factors, which a clique takes as one message, get a clique of their own
    that sums nothing out; a large clique leaves some variables to one above it, so that it can be cut by their states.

    Returns the cliques, their factors, and for each the clique that it comes from.
    """
    found: list[tuple[Clique, list[Source], int]] = []
    number = [0] * len(cliques)
    for c, (clique, own) in enumerate(zip(cliques, tables, strict=True)):
        order = (*clique.separator, *clique.residual)
        entries = prod(counts[v] for v in order)
        alone, inside = [], set(order[outer(clique, counts) :])
        constant = [table for table in own if inside.issuperset(table.scope)]  # from block to block
        others = [table for table in own if not inside.issuperset(table.scope)]
        limit = min(GROUP, SHARE * entries)
        for union, members in [*_groups(constant, limit, counts), *_groups(others, limit, counts)]:
            if len(members) > 1:
                found.append((Clique(tuple(v for v in order if v in union), (), c), members, c))
            else:
                alone += members
        number[c] = len(found)
        left = _left(clique, counts) if entries >= LARGE else 0
        if left:
            upper, lower = clique.residual[:left], clique.residual[left:]
            found.append((Clique((*clique.separator, *upper), lower, len(cliques) + len(found) + 1), alone, c))
            found.append((replace(clique, residual=upper), [], c))
        else:
            found.append((clique, alone, c))
    final = {-1: -1, **dict(enumerate(number)), **{len(cliques) + i: i for i in range(len(found))}}
    nodes = [replace(node, parent=final[node.parent]) for node, _, _ in found]
    return nodes, [members for _, members, _ in found], np.array([c for _, _, c in found], dtype=np.int64)


def _left(clique: Clique, counts: list[int]) -> int:
    """How many variables a large clique leaves to the one above: until its separator has states for the slices."""
    states, n = prod(counts[v] for v in clique.separator), 0
    while states < SLICES and n < len(clique.residual) - 1:
        states *= counts[clique.residual[n]]
        n += 1
    return n


def _groups(tables: list[Source], limit: float, counts: list[int]) -> list[tuple[set[int], list[Source]]]:
    """Factors whose sum has at most `limit` entries, with their variables."""
    groups: list[tuple[set[int], list[Source]]] = []
    for table in sorted(tables, key=lambda table: sorted(table.scope)):
        scope = set(table.scope)
        fits = [g for g in groups if prod(counts[v] for v in g[0] | scope) <= limit]
        if fits:
            best = min(fits, key=lambda g: len(g[0] | scope))
            best[0].update(scope)
            best[1].append(table)
        else:
            groups.append((scope, [table]))
    return groups
