"""Numbers below and above log Z of a factor graph that need no engine."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ...core.results import FloatArray, IntArray
from .scopes import ranges

if TYPE_CHECKING:
    from .factor_graph import FactorGraph

#: What rounding may do to a sum, in parts of the sum of absolute values.
ROUNDING = 1e-15
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


def trivial_bounds(graph: FactorGraph, potentials: FloatArray) -> tuple[FloatArray, FloatArray]:
    """For each example of each row, a number below log Z and one above it.

    Z is at most the product of the largest entries of all tables and of the numbers of states; at least the same with the
    smallest entries. The upper one is better where a table is summed over its last variable first: in an order in which that
    variable comes after the others of the table, Z is at most the product of the largest such sums. So it is at most one for
    tables of conditional probabilities whose last variable is the child.
    """
    if not graph.n_factors:
        free = np.bincount(graph.examples, np.log(graph.cardinalities), graph.n_examples)
        both: FloatArray = np.tile(free.astype(np.float64), len(potentials))
        return both, both
    starts = graph.offsets[:-1]
    high, low = (part.reduceat(potentials, starts, axis=1) for part in (np.maximum, np.minimum))
    logs, children = np.log(graph.cardinalities), _children(graph)
    # A table that forbids leaves no lower bound; one that forbids everything no configuration, as every engine says.
    lower = _by_example(graph, low, logs) - ROUNDING * (1.0 + _by_example(graph, np.abs(low), logs))
    if len(children.factors):
        high[:, children.factors] = _largest_sums(potentials[:, children.entries], children)
        logs = logs.copy()
        logs[children.variables] = 0.0
    upper = _by_example(graph, high, logs)
    size = _by_example(graph, np.where(high > -np.inf, np.abs(high), 0.0), logs)
    return lower.ravel(), (upper + ROUNDING * size).ravel()


def _by_example(graph: FactorGraph, of_factors: FloatArray, of_variables: FloatArray) -> FloatArray:
    """Sums of numbers of factors and of variables, (rows, examples)."""
    n = graph.n_examples
    own = np.bincount(graph.examples, of_variables, n)
    if n == 1:
        return np.asarray(of_factors.sum(axis=1, keepdims=True) + own)
    return np.array([np.bincount(graph.factor_examples, row, n) + own for row in of_factors])


def _largest_sums(entries: FloatArray, children: Children) -> FloatArray:
    """log of the largest sum over the last variable, of each table."""
    top = np.maximum.reduceat(entries, children.rows, axis=1)
    counts = np.diff(np.append(children.rows, entries.shape[1]))
    with np.errstate(invalid="ignore", divide="ignore"):
        shifted = np.exp(entries - np.repeat(np.where(top > -np.inf, top, 0.0), counts, axis=1))
        sums = top + np.log(np.add.reduceat(shifted, children.rows, axis=1))
    return np.asarray(np.maximum.reduceat(np.where(top > -np.inf, sums, -np.inf), children.tables, axis=1))


def _children(graph: FactorGraph) -> Children:
    """The largest table that ends in each variable, if there is an order; else those with their variables in order."""
    if graph.children is None:
        lengths = np.diff(graph.scope_offsets)
        some = np.flatnonzero(lengths > 0)
        last = graph.members[graph.scope_offsets[some + 1] - 1]
        ordered = last == np.maximum.reduceat(graph.members, graph.scope_offsets[some]) if len(some) else some > 0
        chosen = _one_each(some, last, lengths)
        if not (ordered.all() or (len(some) <= LARGEST_SEARCH and _has_order(graph, chosen))):
            chosen = _one_each(some[ordered], last[ordered], lengths)
        graph.children = _laid_out(graph, chosen)
    return graph.children


def _one_each(factors: IntArray, last: IntArray, lengths: IntArray) -> IntArray:
    """Of the factors with the same last variable, the one of the most variables."""
    order = np.lexsort((factors, -lengths[factors], last))
    first = np.diff(last[order], prepend=-1) > 0
    return np.asarray(factors[order[first]])


def _laid_out(graph: FactorGraph, chosen: IntArray) -> Children:
    sizes = np.diff(graph.offsets)[chosen]
    last = graph.members[graph.scope_offsets[chosen + 1] - 1]
    counts = graph.cardinalities[last]
    rows = np.repeat(counts, sizes // counts)
    starts = np.cumsum(rows) - rows
    per_table = sizes // counts
    tables = np.cumsum(per_table) - per_table
    entries = ranges(graph.offsets[chosen], sizes)
    return Children(chosen, last, entries, starts.astype(np.int64), tables.astype(np.int64))


def _has_order(graph: FactorGraph, chosen: IntArray) -> bool:
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
