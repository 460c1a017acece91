"""The objects of a composite likelihood on a factor graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from ...objectives.composite.likelihood import FULL, PAIRS, CompositeLikelihood
from ..structure.connected_sets import all_sets, components, connected_sets, neighbours
from ..structure.factor_graph import FactorGraph
from ..structure.scopes import Scopes, ranges

Pair = tuple[tuple[int, ...], tuple[int, ...]]


@dataclass(frozen=True)
class Objects:
    """The objects of a composite likelihood on a graph, as sets of free variables: S(A, B) is the log-partition function of
    what is hidden given the rest, less that of A and what is hidden given B.

    Attributes
    ----------
    groups, examples : int arrays
        The order (an entry of `CompositeLikelihood.rates`) and the example of every object; sorted by example, then order.
    sets : Scopes
        Free sets, ascending within each.
    columns, signs, latent
        The object and sign of every set; which members are summed out in both terms.
    """

    groups: IntArray
    examples: IntArray
    sets: Scopes
    columns: IntArray
    signs: FloatArray
    latent: Any

    def take(self, graph: FactorGraph, rows: IntArray) -> tuple[Objects, IntArray]:
        """The objects of some examples of a graph, given in order and numbered as in a graph of these alone; and which they
        were."""
        first, last = (np.searchsorted(self.examples, rows, side=side) for side in ("left", "right"))
        chosen = ranges(first, last - first)
        order, starts = self._by_object
        which = np.sort(order[ranges(starts[chosen], starts[chosen + 1] - starts[chosen])])
        lengths = np.diff(self.sets.offsets)[which]
        places = ranges(self.sets.offsets[which], lengths)
        variables = ranges(*_extents(graph, rows))
        sets = Scopes(np.concatenate(([0], np.cumsum(lengths))), np.searchsorted(variables, self.sets.members[places]))
        columns = np.searchsorted(chosen, self.columns[which])
        examples = np.searchsorted(rows, self.examples[chosen])
        return Objects(self.groups[chosen], examples, sets, columns, self.signs[which], self.latent[places]), chosen

    @cached_property
    def _by_object(self) -> tuple[IntArray, IntArray]:
        """Sets in the order of their objects, and where those of each object begin."""
        order = np.argsort(self.columns, kind="stable")
        return order, np.searchsorted(self.columns[order], np.arange(len(self.groups) + 1))

    @property
    def hidden(self) -> bool:
        """Whether some object sums over variables."""
        return bool(self.latent.any())


def _extents(graph: FactorGraph, rows: IntArray) -> tuple[IntArray, IntArray]:
    """The first variable of some examples, and how many they have."""
    first, last = (np.searchsorted(graph.examples, rows, side=side) for side in ("left", "right"))
    return first, last - first


def object_pairs(graph: FactorGraph, composite: CompositeLikelihood) -> tuple[list[Pair], IntArray]:
    """The objects of a single graph as pairs (A, B), and their orders (numbers of entries of `rates`)."""
    found: list[tuple[int, Pair]] = []
    for group, rows in _sets_given_rest(graph, composite):
        for row in rows.tolist():
            found.append((group, (tuple(row), tuple(v for v in range(graph.n_variables) if v not in row))))
    if PAIRS in composite.rates:
        number = list(composite.rates).index(PAIRS)
        found += [(number, pair) for pair in _checked_pairs(graph, composite.pairs or ())]
    found.sort(key=lambda entry: entry[0])
    return [pair for _, pair in found], np.array([group for group, _ in found], dtype=np.int64)


def list_objects(graph: FactorGraph, composite: CompositeLikelihood) -> Objects:
    """All objects of a composite likelihood on a graph, or on each graph of a union."""
    whole, own = _sets_given_rest(graph, composite), []
    if PAIRS in composite.rates:
        number = list(composite.rates).index(PAIRS)
        own = [(number, pair) for pair in _checked_pairs(graph, composite.pairs or ())]
    group = np.array([g for g, rows in whole for _ in range(len(rows))] + [g for g, _ in own], dtype=np.int64)
    firsts = [rows[:, 0] for _, rows in whole] + [np.array([pair[0][0] for _, pair in own], dtype=np.int64)]
    example = graph.examples[np.concatenate(firsts)]
    order = np.lexsort(np.vstack([group, example]))
    place = np.empty(len(group), np.int64)  # of every object, once they are sorted
    place[order] = np.arange(len(group))
    apart = composite.blocks == "all" or FULL in composite.rates
    near = neighbours(graph) if apart or own else []
    flat = _Flat([], [], [], [], [])
    first = 0
    for _, rows in whole:
        columns = place[first : first + len(rows)]
        first += len(rows)
        if apart and rows.shape[1] > 1:
            for column, row in zip(columns, rows.tolist(), strict=True):
                for part in components(row, near):
                    flat.add(np.array([part]), np.array([column]))
        else:
            flat.add(rows, columns)
    for column, (_, (A, B)) in zip(place[first:], own, strict=True):
        for free, sign, blurred in _parts(graph, near, A, B):
            flat.add(np.array([free]), np.array([column]), sign, np.array(blurred))
    return Objects(group[order], example[order], *flat.joined())


class _Flat(NamedTuple):
    """Sets in the making."""

    lengths: list[IntArray]
    members: list[IntArray]
    columns: list[IntArray]
    signs: list[FloatArray]
    latent: list[Any]

    def add(self, rows: IntArray, columns: IntArray, sign: float = 1.0, latent: Any = None) -> None:
        self.lengths.append(np.full(len(rows), rows.shape[1]))
        self.members.append(rows.ravel())
        self.columns.append(columns)
        self.signs.append(np.full(len(rows), sign))
        self.latent.append(np.zeros(rows.size, bool) if latent is None else latent)

    def joined(self) -> tuple[Scopes, IntArray, FloatArray, Any]:
        offsets = np.concatenate(([0], np.cumsum(np.concatenate(self.lengths)))).astype(np.int64)
        sets = Scopes(offsets, np.concatenate(self.members).astype(np.int64))
        return sets, np.concatenate(self.columns), np.concatenate(self.signs), np.concatenate(self.latent)


def _sets_given_rest(graph: FactorGraph, composite: CompositeLikelihood) -> list[tuple[int, IntArray]]:
    """The orders of a composite likelihood, by number: matrices of sets A, each given all other variables."""
    out: list[tuple[int, IntArray]] = []
    sizes = np.bincount(graph.examples)
    for group, order in enumerate(composite.rates):
        if order == FULL:
            ends = np.cumsum(sizes).tolist()
            out += [(group, np.arange(end - n, end)[None]) for n, end in zip(sizes.tolist(), ends, strict=True)]
        elif order != PAIRS:
            if order > sizes.max():
                raise ValueError(f"orders has {order}, but no example has more than {sizes.max()} variables")
            make = connected_sets if composite.blocks == "connected" else all_sets
            out.append((group, make(graph, order)))
    return out


def _checked_pairs(graph: FactorGraph, pairs: Sequence[Any]) -> list[Pair]:
    out = []
    if not pairs:
        raise ValueError("pairs must not be empty")
    for pair in pairs:
        A, B = (tuple(int(v) for v in part) for part in pair)
        bad = [v for v in (*A, *B) if not 0 <= v < graph.n_variables]
        if bad or not A or len({*A, *B}) < len(A) + len(B):
            raise ValueError(
                f"pairs must be sets A and B of different variables below {graph.n_variables}, A not empty; got {pair}"
            )
        if len(np.unique(graph.examples[[*A, *B]])) > 1:
            raise ValueError(f"pairs must have variables of one graph, got {pair}")
        out.append((A, B))
    return out


def _parts(
    graph: FactorGraph, near: Sequence[Sequence[int]], A: Sequence[int], B: Sequence[int]
) -> list[tuple[list[int], float, list[bool]]]:
    """Free sets of one object: what hangs together with A if B is gone, and what of it is hidden, with the opposite sign."""
    lo, hi = np.searchsorted(graph.examples, graph.examples[A[0]] + np.arange(2)).tolist()
    out: list[tuple[list[int], float, list[bool]]] = []
    for part in components(set(range(lo, hi)) - set(B), near):
        if not set(part) & set(A):
            continue
        out.append((part, 1.0, [v not in A for v in part]))
        out += [(hidden, -1.0, [True] * len(hidden)) for hidden in components(set(part) - set(A), near)]
    return out
