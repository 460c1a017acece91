"""Weights of edges from attributes of their ends: tables of pairs of levels, and distances of numbers.

The edges of vertex i are ``starts[i]:starts[i + 1]``; their other ends are ``others[bases[i]:]``, as many. Levels and
numbers have a row for each attribute and a column for each vertex. Table k begins at ``firsts[k]`` and has ``sizes[k]``
columns.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...numerics.jit import kernel, sum_kernel


class Grid(NamedTuple):
    """Which vertices edges join."""

    starts: Any
    bases: Any
    others: Any


class Ends(NamedTuple):
    """Levels and numbers of both ends of edges."""

    levels: Any
    numbers: Any
    other_levels: Any
    other_numbers: Any


class Tables(NamedTuple):
    """A number for each pair of levels of every attribute, and one for each distance."""

    firsts: Any
    sizes: Any
    entries: Any
    slopes: Any


@kernel
def _partners(grid, i, columns, row, spare):
    """What the other ends of the edges of a vertex have: a view where they follow one another, else a copy in `spare`."""
    n, base = grid.starts[i + 1] - grid.starts[i], grid.bases[i]
    if n and grid.others[base + n - 1] - grid.others[base] == n - 1:
        first = grid.others[base]
        return columns[row, first : first + n]
    for p in range(n):
        spare[p] = columns[row, grid.others[base + p]]
    return spare[:n]


@sum_kernel
def _add_levels(table, codes, out):
    for p in range(len(out)):
        out[p] += table[codes[p]]


@sum_kernel
def _add_distances(slope, x, others, out):
    for p in range(len(out)):
        out[p] += slope * abs(x - others[p])


@sum_kernel
def _sum_distances(power, x, others, values):
    total = 0.0
    if power == 1:
        for p in range(len(values)):
            total += values[p] * abs(x - others[p])
    else:
        for p in range(len(values)):
            total += values[p] * (x - others[p]) ** 2
    return total


@kernel
def _spare(grid, ends):
    most = 0
    for i in range(len(grid.starts) - 1):
        most = max(most, grid.starts[i + 1] - grid.starts[i])
    return np.empty(most, ends.levels.dtype), np.empty(most, ends.numbers.dtype)


@kernel
def forward(grid, ends, tables, lo, hi, out):
    """Weights of the edges of the vertices lo..hi."""
    codes, numbers = _spare(grid, ends)
    for i in range(lo, hi):
        mine = out[grid.starts[i] : grid.starts[i + 1]]
        mine[:] = 0.0
        for k in range(len(tables.sizes)):
            first = tables.firsts[k] + ends.levels[k, i] * tables.sizes[k]
            table = tables.entries[first : first + tables.sizes[k]]
            _add_levels(table, _partners(grid, i, ends.other_levels, k, codes), mine)
        for a in range(len(tables.slopes)):
            others = _partners(grid, i, ends.other_numbers, a, numbers)
            _add_distances(tables.slopes[a], ends.numbers[a, i], others, mine)


@kernel
def adjoint(grid, ends, power, values, lo, hi, tables):
    """Add what values of the edges of the vertices lo..hi sum to for each pair of levels, and for each distance."""
    codes, numbers = _spare(grid, ends)
    for i in range(lo, hi):
        mine = values[grid.starts[i] : grid.starts[i + 1]]
        for k in range(len(tables.sizes)):
            first = tables.firsts[k] + ends.levels[k, i] * tables.sizes[k]
            table = tables.entries[first : first + tables.sizes[k]]
            others = _partners(grid, i, ends.other_levels, k, codes)
            for p in range(len(mine)):
                table[others[p]] += mine[p]
        for a in range(len(tables.slopes)):
            others = _partners(grid, i, ends.other_numbers, a, numbers)
            tables.slopes[a] += _sum_distances(power, ends.numbers[a, i], others, mine)
