"""Where the tables of a junction tree are: cliques, written one after another into the arrays of `CliqueLayout`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any, NamedTuple

import numpy as np

from ...core.results import IntArray
from ..kernels.clique_layout import GATHER, ONE, RUN, CliqueLayout
from .elimination import Clique

#: Entries of a block that is worked on at a time.
BLOCK = 1024
#: Least entries after which a map is repeated.
PERIOD = 32


class Source(NamedTuple):
    """A table that a clique sums: `FACTOR` or `SEPARATOR`, its offset among tables of that kind, and its variables."""

    kind: int
    offset: int
    scope: tuple[int, ...]


class Target(NamedTuple):
    """Where the probabilities of a table go: the kind, the offset, and how many entries are set to zero before."""

    kind: int
    offset: int
    area: int


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
        self._largest = [1, 1, 1]  # entries of a block, inputs, outer axes

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

        The last of the tables is the message of the clique; with `added` it is added to what is there. Targets belong to the
        tables.
        """
        fixed = fixed or {}
        order, split = (*clique.separator, *clique.residual), outer(clique, self.counts)
        outside, inside = [v for v in order[:split] if v not in fixed], order[split:]
        sizes = [self.counts[v] for v in inside]
        first_axis, first_input = len(self._axes), len(self._inputs)
        self._axes += [self.counts[v] for v in outside]
        for (kind, offset, scope), target in zip(tables, targets, strict=True):
            stride = dict(zip(scope, strides([self.counts[v] for v in scope]), strict=True))
            shift = sum(stride.get(v, 0) * state for v, state in fixed.items())
            form, index, period = self._maps.add(sizes, [stride.get(v, 0) for v in inside])
            self._inputs.append((kind, offset + shift, index, len(self._strides), form, period))
            self._strides += [stride.get(v, 0) for v in outside]
            self._targets.append(target._replace(offset=target.offset + shift))
        inner, residual = prod(sizes), prod(self.counts[v] for v in clique.residual)
        self._rows.append((first_axis, len(self._axes), first_input, len(self._inputs) - 1, inner, residual, int(added)))
        self._largest = [max(*pair) for pair in zip(self._largest, (inner, len(tables), len(outside)), strict=True)]

    def layout(self) -> CliqueLayout:
        """The arrays that kernels take."""
        return CliqueLayout(
            cliques=np.array(self._rows, dtype=np.int64).reshape(-1, 7),
            axes=np.array(self._axes, dtype=np.int64),
            inputs=np.array(self._inputs, dtype=np.int64).reshape(-1, 6),
            maps=self._maps.array(),
            strides=np.array(self._strides, dtype=np.int64),
            targets=np.array(self._targets, dtype=np.int64).reshape(-1, 3),
            largest=np.array(self._largest, dtype=np.int64),
        )


def strides(counts: list[int]) -> list[int]:
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
        """The form of a map (see `CliqueLayout`), where it is, and after how many entries it repeats."""
        key = (tuple(counts), tuple(jumps))
        if key not in self._known:
            index: Any = np.zeros(1, np.int64)
            for count, jump in zip(counts, jumps, strict=True):
                index = (index[:, None] + jump * np.arange(count)).ravel()
            first = next((i for i, jump in enumerate(jumps) if jump), len(jumps))
            while first and prod(counts[first:]) < PERIOD:  # short ones are slow
                first -= 1
            if not index.any():
                self._known[key] = (ONE, 0, 1)
            elif np.array_equal(index, np.arange(len(index))):
                self._known[key] = (RUN, 0, len(index))
            else:
                index = index[: prod(counts[first:])]
                self._known[key] = (GATHER, self._size, len(index))
                self._maps.append(index)
                self._size += len(index)
        return self._known[key]

    def array(self) -> Any:
        return np.concatenate([np.zeros(0, np.int32), *self._maps]).astype(np.int32)


class Arena:
    """Offsets in one array for what comes and goes."""

    def __init__(self) -> None:
        self.size: int = 0
        self._free: list[tuple[int, int]] = []  # offset and size, in order

    def take(self, size: int) -> int:
        """The offset of a free part of that size: the first one, or at the end."""
        for i, (offset, room) in enumerate(self._free):
            if room >= size:
                self._free[i : i + 1] = [(offset + size, room - size)] if room > size else []
                return offset
        at_end = bool(self._free) and sum(self._free[-1]) == self.size
        offset = self._free.pop()[0] if at_end else self.size
        self.size = offset + size
        return offset

    def give(self, offset: int, size: int) -> None:
        """Give a part back."""
        merged: list[tuple[int, int]] = []
        for start, length in sorted([*self._free, (offset, size)]):
            if merged and sum(merged[-1]) == start:
                merged[-1] = (merged[-1][0], merged[-1][1] + length)
            else:
                merged.append((start, length))
        self._free = merged
