"""Numbers below and above log Z of a factor graph that need no engine."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray
from .children import Children
from .factor_graph import FactorGraph

#: What rounding may do to a sum, in parts of the sum of absolute values.
ROUNDING = 1e-15


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
    logs, children = np.log(graph.cardinalities), graph.children
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
