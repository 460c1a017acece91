"""Sums, best configurations and draws by messages on a junction tree, for many sets of potentials."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from .junction_tree import JunctionTree
from .tables import FactorTables


class ExactSums:
    """Answers about rows of checked potentials. Values have shape (rows, examples), and are -inf where all is forbidden.

    Parameters
    ----------
    graph : FactorTables
    tree : JunctionTree
        Of that graph.
    """

    graph: FactorTables
    tree: JunctionTree

    def __init__(self, graph: FactorTables, tree: JunctionTree) -> None:
        self.graph, self.tree = graph, tree

    def log_partition(self, flat: FloatArray) -> FloatArray:
        """log Z."""
        log_z = self._values(flat)

        def row(i: int, workers: Workers) -> None:
            self._collect(flat[i], log_z[i], workers)

        self._run(row, len(flat))
        return log_z

    def infer(self, flat: FloatArray) -> tuple[FloatArray, FloatArray]:
        """log Z, and the probability of every entry of every table."""
        log_z, marginals = self._values(flat), np.zeros_like(flat)

        def row(i: int, workers: Workers) -> None:
            messages = self._collect(flat[i], log_z[i], workers)
            self.tree.distribute(flat[i], messages, marginals[i], workers)

        self._run(row, len(flat))
        for k in self.tree.constants:
            marginals[:, self.graph.offsets[k]] = 1.0
        return log_z, marginals

    def argmax(self, flat: FloatArray) -> tuple[IntArray, FloatArray]:
        """The best configurations, and their scores."""
        value, states = self._values(flat), np.zeros((len(flat), self.graph.n_variables), np.int64)

        def row(i: int, workers: Workers) -> None:
            messages = self._collect(flat[i], value[i], workers, best=True)
            if np.isfinite(value[i]).all():
                self.tree.descend(flat[i], messages, np.zeros((1, 0)), states[i : i + 1])

        self._run(row, len(flat))
        return states, value

    def sample(self, potentials: FloatArray, size: int, random: np.random.Generator) -> tuple[IntArray, FloatArray]:
        """Independent configurations for one row of potentials, and log Z; no draw is made where all is forbidden."""
        log_z, states = np.zeros(self.graph.n_examples), np.zeros((size, self.graph.n_variables), np.int64)
        messages = self._collect(potentials, log_z, self.graph.workers)
        if not np.isfinite(log_z).all():
            return states, log_z
        uniforms = random.random((size, max(1, len(self.tree.examples))))

        def draws(first: int, last: int) -> None:
            self.tree.descend(potentials, messages, uniforms[first:last], states[first:last])

        self.graph.workers.run(draws, Workers.ranges(size, 50.0 * size * self.graph.n_variables))
        return states, log_z

    def _values(self, flat: FloatArray) -> FloatArray:
        return np.zeros((len(flat), self.graph.n_examples))

    def _run(self, row: Callable[[int, Workers], None], count: int) -> None:
        """Call `row` for each set of potentials: many are shared out to threads, a single one is cut up within."""
        if count == 1:
            return row(0, self.graph.workers)

        def rows(first: int, last: int) -> None:
            for i in range(first, last):
                row(i, Workers(1))

        self.graph.workers.run(rows, Workers.ranges(count, 20.0 * float(self.tree.work[-1]) * count))

    def _collect(self, potentials: FloatArray, value: FloatArray, workers: Workers, best: bool = False) -> FloatArray:
        """Messages to the roots; the sum (or the largest score) of each example is added to `value`."""
        tree, messages = self.tree, np.empty(self.tree.n_messages)
        tree.collect(potentials, messages, best, workers)
        np.add.at(value, tree.root_examples, messages[tree.root_messages])
        for k in tree.constants:
            value[self.graph.factor_examples[k]] += potentials[self.graph.offsets[k]]
        return messages
