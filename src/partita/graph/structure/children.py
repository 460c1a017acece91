"""Tables that are summed over their last variable, as those of conditional probabilities are over the child."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...core.results import IntArray
from .scopes import ranges
from .tables import FactorTables

#: Factors up to which an order of variables is looked for.
LARGEST_SEARCH = 100_000


class Children(NamedTuple):
    """Factors that are summed over their last variable, at most one for each variable.

    Attributes
    ----------
    factors, variables : int arrays
        Their numbers, and their last variables.
    entries : int array
        The entries of their tables among the potentials.
    rows, tables : int arrays
        Where sums over the last variable begin among `entries`, and where tables begin among rows.
    """

    factors: IntArray
    variables: IntArray
    entries: IntArray
    rows: IntArray
    tables: IntArray


def find_children(graph: FactorTables) -> Children:
    """The largest table that ends in each variable, if there is an order; else those with their variables in order."""
    lengths = np.diff(graph.scope_offsets)
    some = np.flatnonzero(lengths > 0)
    last = graph.members[graph.scope_offsets[some + 1] - 1]
    ordered = last == np.maximum.reduceat(graph.members, graph.scope_offsets[some]) if len(some) else some > 0
    chosen = _one_each(some, last, lengths)
    if not (ordered.all() or (len(some) <= LARGEST_SEARCH and _has_order(graph, chosen))):
        chosen = _one_each(some[ordered], last[ordered], lengths)
    return _laid_out(graph, chosen)


def _one_each(factors: IntArray, last: IntArray, lengths: IntArray) -> IntArray:
    """Of the factors with the same last variable, the one of the most variables."""
    order = np.lexsort((factors, -lengths[factors], last))
    first = np.diff(last[order], prepend=-1) > 0
    return np.asarray(factors[order[first]])


def _laid_out(graph: FactorTables, chosen: IntArray) -> Children:
    sizes = np.diff(graph.offsets)[chosen]
    last = graph.members[graph.scope_offsets[chosen + 1] - 1]
    counts = graph.cardinalities[last]
    rows = np.repeat(counts, sizes // counts)
    starts = np.cumsum(rows) - rows
    per_table = sizes // counts
    tables = np.cumsum(per_table) - per_table
    entries = ranges(graph.offsets[chosen], sizes)
    return Children(chosen, last, entries, starts.astype(np.int64), tables.astype(np.int64))


def _has_order(graph: FactorTables, chosen: IntArray) -> bool:
    """Whether variables can be put in an order in which the last one of each of these factors comes after its others."""
    waiting = np.zeros(graph.n_variables, np.int64)
    users: dict[int, list[int]] = {}
    for k in chosen.tolist():
        *others, child = graph.factors[k]
        waiting[child] = len(others)
        for v in others:
            users.setdefault(v, []).append(child)
    ready, done = np.flatnonzero(waiting == 0).tolist(), 0
    left = waiting.tolist()
    while ready:
        v = ready.pop()
        done += 1
        for child in users.get(v, ()):
            left[child] -= 1
            if left[child] == 0:
                ready.append(child)
    return done == graph.n_variables
