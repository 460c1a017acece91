"""Where the tables of a junction tree are, as flat index arrays for `kernels.junction_tree`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.results import IntArray
from .elimination import Clique

#: Entries of a block that is worked on at a time.
BLOCK = 1024
#: Least entries after which a map is repeated.
PERIOD = 32


class Source(NamedTuple):
    """A table that a clique sums: the kind (see `kernels.junction_tree`), where it is, and its variables."""

    kind: int
    place: int
    scope: tuple[int, ...]


#: Where the probabilities of a table go (see `kernels.junction_tree`): kind, place, entries that are set to zero before.
Target = tuple[int, int, int]


def outer(clique: Clique, counts: list[int]) -> int:
    """How many of the variables of a clique run from block to block: the others make a block."""
    order = (*clique.separator, *clique.residual)
    split, inner = len(order), 1
    while split and inner * counts[order[split - 1]] <= BLOCK:
        split -= 1
        inner *= counts[order[split]]
    return split


class Rows:
    """Cliques, or slices of them, written one after another."""

    def __init__(self, counts: list[int]) -> None:
        self.counts = counts
        self._targets: list[Target] = []
        self._rows: list[tuple[int, ...]] = []
        self._axes: list[int] = []
        self._inputs: list[tuple[int, ...]] = []
        self._strides: list[int] = []
        self._maps = _Maps()
        self._most = [1, 1, 1]  # entries of a block, inputs, outer axes

    def __len__(self) -> int:
        return len(self._rows)

    def add(
        self,
        clique: Clique,
        tables: Sequence[Source],
        targets: Sequence[Target],
        added: bool = False,
        fixed: Mapping[int, int] | None = None,
    ) -> None:
        """A clique; with `fixed`, only where some variables that run from block to block have these states.

        The last of the tables is the message of the clique; with `added` it is added to what is there. Targets (see
        `kernels.junction_tree`) belong to the tables.
        """
        fixed = fixed or {}
        order, split = (*clique.separator, *clique.residual), outer(clique, self.counts)
        outside, inside = [v for v in order[:split] if v not in fixed], order[split:]
        sizes = [self.counts[v] for v in inside]
        first_axis, first_input = len(self._axes), len(self._inputs)
        self._axes += [self.counts[v] for v in outside]
        for (kind, place, scope), (target, where, area) in zip(tables, targets, strict=True):
            step = dict(zip(scope, steps([self.counts[v] for v in scope]), strict=True))
            shift = sum(step.get(v, 0) * state for v, state in fixed.items())
            form, index, period = self._maps.add(sizes, [step.get(v, 0) for v in inside])
            self._inputs.append((kind, place + shift, index, len(self._strides), form, period))
            self._strides += [step.get(v, 0) for v in outside]
            self._targets.append((target, where + shift, area))
        inner, residual = prod(sizes), prod(self.counts[v] for v in clique.residual)
        self._rows.append((first_axis, len(self._axes), first_input, len(self._inputs) - 1, inner, residual, int(added)))
        self._most = [max(*pair) for pair in zip(self._most, (inner, len(tables), len(outside)), strict=True)]

    def arrays(self) -> tuple[Any, Any, Any, Any, Any]:
        """The arrays of `kernels.junction_tree`."""
        return (
            np.array(self._rows, dtype=np.int64).reshape(-1, 7),
            np.array(self._axes, dtype=np.int64),
            np.array(self._inputs, dtype=np.int64).reshape(-1, 6),
            self._maps.array(),
            np.array(self._strides, dtype=np.int64),
        )

    def targets(self) -> IntArray:
        """Those of all tables."""
        return np.array(self._targets, dtype=np.int64).reshape(-1, 3)

    @property
    def room(self) -> IntArray:
        """Sizes of what the kernels work in."""
        return np.array(self._most, dtype=np.int64)


def steps(counts: list[int]) -> list[int]:
    """How far apart in a table two entries are that differ by one in an axis."""
    out = [1] * len(counts)
    for i in range(len(counts) - 1, 0, -1):
        out[i - 1] = out[i] * counts[i]
    return out


class _Maps:
    """Maps from the entries of a block to those of a table, each stored once."""

    def __init__(self) -> None:
        self._known: dict[tuple[tuple[int, ...], tuple[int, ...]], tuple[int, int, int]] = {}
        self._maps: list[IntArray] = []
        self._size = 0

    def add(self, counts: list[int], jumps: list[int]) -> tuple[int, int, int]:
        """The form of a map (see `kernels.junction_tree`), where it is, and after how many entries it repeats."""
        key = (tuple(counts), tuple(jumps))
        if key not in self._known:
            index: Any = np.zeros(1, np.int64)
            for count, jump in zip(counts, jumps, strict=True):
                index = (index[:, None] + jump * np.arange(count)).ravel()
            first = next((i for i, jump in enumerate(jumps) if jump), len(jumps))
            while first and prod(counts[first:]) < PERIOD:  # short ones are slow
                first -= 1
            if not index.any():
                self._known[key] = (2, 0, 1)
            elif np.array_equal(index, np.arange(len(index))):
                self._known[key] = (1, 0, len(index))
            else:
                index = index[: prod(counts[first:])]
                self._known[key] = (0, self._size, len(index))
                self._maps.append(index)
                self._size += len(index)
        return self._known[key]

    def array(self) -> Any:
        return np.concatenate([np.zeros(0, np.int32), *self._maps]).astype(np.int32)


class Arena:
    """Places in one array for what comes and goes."""

    def __init__(self) -> None:
        self.size = 0
        self._free: list[tuple[int, int]] = []  # place and size, in order

    def take(self, size: int) -> int:
        """A free place of that size: the first one, or at the end."""
        for i, (place, room) in enumerate(self._free):
            if room >= size:
                self._free[i : i + 1] = [(place + size, room - size)] if room > size else []
                return place
        at_end = bool(self._free) and sum(self._free[-1]) == self.size
        place = self._free.pop()[0] if at_end else self.size
        self.size = place + size
        return place

    def give(self, place: int, size: int) -> None:
        """Give a place back."""
        merged: list[tuple[int, int]] = []
        for start, length in sorted([*self._free, (place, size)]):
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        self._free = merged
