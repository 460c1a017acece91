"""Rows of states of a factor graph of which some are unknown: sums over these, once for all rows that look the same."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ...graph import (
    LARGEST,
    FactorGraph,
    FreeSets,
    FreeSums,
    Scopes,
    evaluate as evaluate_sets,
    factors_of_variables,
    maxima as set_maxima,
    member_strides,
    ranges,
    surplus as set_surplus,
)
from ..kernels import network as kernels

#: Configurations of a Markov blanket that are numbered (multipliers are exact up to here); with more, every row is an item.
MOST = 10**12


class Choice(NamedTuple):
    """A configuration of each item of a small set, and the entry that each factor of the others picks."""

    items: IntArray
    picked: IntArray


class UnknownSets(FreeSets):
    """``sum_r w_r log sum over what is unknown in row r``, as a function of potentials.

    Unknown variables of a row fall apart into components connected by factors. Rows that agree on the Markov blanket of such
    a set are one item, so that inference runs once for each.

    Parameters
    ----------
    graph : FactorGraph
        One example.
    states : int array of shape (n_rows, n_variables)
        -1 where unknown.
    weights : array of shape (n_rows,)

    Attributes
    ----------
    counts : array of shape (graph.size,)
        How often, weighted, each entry is picked by factors that are known.
    """

    graph: FactorGraph
    options: dict[str, float]
    workers: Workers

    def __init__(self, graph: FactorGraph, states: IntArray, weights: FloatArray, **options: float) -> None:
        self.graph, self.options, self.workers = graph, options, graph.workers
        self.states: IntArray = np.ascontiguousarray(states, dtype=np.int64)
        self.row_weights: FloatArray = np.ascontiguousarray(weights, dtype=np.float64)
        self._scopes = kernels.Tables(graph.scope_offsets, graph.members, member_strides(graph), graph.offsets)
        self._ranges_of_rows = Workers.ranges(len(self.states), 4.0 * len(self.states) * len(graph.members))
        sets = self._find()
        self._compile(sets, np.ones(len(sets.members), bool), MOST)
        self._collapse()
        self._prepare()

    def _find(self) -> Scopes:
        """The sets, and the pairs of a row and a set."""
        V = self.graph.n_variables
        distinct, mask = _unique_rows(self.states < 0)
        factors, first = factors_of_variables(self.graph)
        labels = np.empty(distinct.shape, np.int64)
        scopes = (self.graph.scope_offsets, self.graph.members)
        tasks = [
            (distinct, first, factors, *scopes, lo, hi, labels)
            for lo, hi in Workers.ranges(len(distinct), 20.0 * distinct.size)
        ]
        self.workers.run(kernels.components, tasks)
        which, variable = np.nonzero(distinct)
        found, part = np.unique(which * V + labels[which, variable], return_inverse=True)  # sets, in order of masks
        members = np.zeros((len(found), V), bool)
        members[part, variable] = True
        sets, set_of_part = _unique_rows(members)
        parts_of_mask = np.bincount(found // V, minlength=len(distinct))
        count = parts_of_mask[mask]
        first_part = np.cumsum(parts_of_mask) - parts_of_mask
        self.pair_rows: IntArray = np.repeat(np.arange(len(self.states)), count)
        self.pair_sets: IntArray = set_of_part[ranges(first_part[mask], count)]
        return Scopes(np.concatenate(([0], np.cumsum(sets.sum(1)))), np.nonzero(sets)[1])

    def _collapse(self) -> None:
        pairs = len(self.pair_rows)
        codes = np.empty(pairs, np.int64)
        given = (self.states, self._blanket, self.pair_rows, self.pair_sets)
        self.workers.run(kernels.item_codes, [(*given, lo, hi, codes) for lo, hi in Workers.ranges(pairs, 20.0 * pairs)])
        order = np.lexsort((codes, self.pair_sets))
        new = np.ones(pairs, bool)
        new[1:] = (np.diff(codes[order]) != 0) | (np.diff(self.pair_sets[order]) != 0)
        item = np.empty(pairs, np.int64)
        item[order] = np.cumsum(new) - 1
        chosen = order[new]
        sets = self.pair_sets[chosen]
        self.n_items: int = len(chosen)
        # Without an item the counts are integers, and kernels would be compiled for these too.
        counts = np.bincount(item, weights=self.row_weights[self.pair_rows], minlength=self.n_items)
        weights = np.asarray(counts, dtype=np.float64)
        big = self.sizes[sets] > LARGEST
        # Items of small sets come first, then those with junction trees.
        place = np.empty(self.n_items, np.int64)
        place[np.flatnonzero(~big)] = np.arange(np.sum(~big))
        place[np.flatnonzero(big)] = np.sum(~big) + np.arange(np.sum(big))
        self.pair_items: IntArray = place[item]
        rows = self.pair_rows[chosen]
        self._items, self._trees = ((np.flatnonzero(part), sets[part], rows[part], weights[part]) for part in (~big, big))
        parts = np.zeros((len(self._ranges_of_rows), self.graph.size))
        tasks = [
            (self.states, self.row_weights, self._scopes, lo, hi, parts[i])
            for i, (lo, hi) in enumerate(self._ranges_of_rows)
        ]
        self.workers.run(kernels.settled_counts, tasks)
        self.counts: FloatArray = parts.sum(0)

    def best(self, u: FloatArray) -> tuple[float, FloatArray, Choice]:
        """The same with the largest score in place of the sum, how often it picks each entry, and what was chosen."""
        parts = np.zeros((len(self._ranges), self.graph.size))
        value, choice = np.empty(len(self._items[0])), np.empty(len(self._items[0]), np.int64)
        self.run(set_maxima, u, lambda i: (choice, value, parts[i]))
        total, counts = float(self._items[3] @ value), parts.sum(0)
        picked = np.zeros(0, np.int64)
        if self.tree is not None:
            states, scores = self.tree.argmax(u[self.index], "exact", **self.options)
            total += float(self._trees[3] @ scores)
            picked, owner = self.index[self._picked(states)], self.tree.factor_examples
            counts += np.bincount(picked, weights=self._trees[3][owner], minlength=len(counts))
        return total, counts, Choice(choice, picked)

    def surplus(self, sums: FreeSums, chosen: Choice) -> float:
        """The sum less the score of a choice: at least zero, and exact to its own last digits, not to those of the sum."""
        u = sums.u
        total = float(sum(self.run(set_surplus, u, lambda i: (chosen.items,))))
        if self.tree is not None:
            scores = np.bincount(self.tree.factor_examples, weights=u[chosen.picked], minlength=len(self._trees[3]))
            total += float(self._trees[3] @ np.maximum(sums.tree_log_z - scores, 0.0))
        return total

    def _picked(self, states: IntArray) -> IntArray:
        """The entry of every factor of the trees that a configuration picks."""
        assert self.tree is not None
        tree, strides = self.tree, member_strides(self.tree)
        steps = strides * states[tree.members]
        return np.asarray(tree.offsets[:-1] + np.add.reduceat(steps, tree.scope_offsets[:-1]))

    def row_values(self, u: FloatArray) -> FloatArray:
        """The sum of each row alone."""
        out = np.empty(len(self.states))
        self.workers.run(
            kernels.settled_sums, [(self.states, u, self._scopes, lo, hi, out) for lo, hi in self._ranges_of_rows]
        )
        log_z = self._evaluate(u, np.zeros(0))
        if self.tree is not None:
            log_z = np.concatenate([log_z, self.tree.log_partition(u[self.index], "exact", **self.options)])
        return out + np.bincount(self.pair_rows, weights=log_z[self.pair_items], minlength=len(out))

    def _evaluate(self, u: FloatArray, P: FloatArray) -> FloatArray:
        log_z = np.empty(len(self._items[0]))
        self.run(evaluate_sets, u, lambda i: (P, log_z))
        return log_z

    def filled(self, u: FloatArray) -> IntArray:
        """The states, the unknown ones of each row together the most probable given the others."""
        n = len(self._items[0])
        value, choice, counts = np.empty(n), np.empty(n, np.int64), np.zeros(self.graph.size)
        for lo, hi in self._ranges:
            outputs = (choice, value, counts, self._scratch())
            set_maxima(u, self._tables, self._item_arrays, lo, hi, *outputs)
        best: IntArray | None = None
        if self.tree is not None:
            best, _ = self.tree.argmax(u[self.index], "exact", **self.options)
        out = self.states.copy()
        for variables, shape, rows, items in self._by_set():
            found = np.stack(np.unravel_index(choice[items], shape), axis=1) if len(items) and items[0] < n else None
            if found is None:
                assert best is not None
                found = best.reshape(-1)[self._tree_variables(items - n, len(variables))]
            out[rows[:, None], variables] = found
        return out

    def variable_marginals(self, u: FloatArray, count: int) -> list[FloatArray]:
        """For each of the first `count` variables, probabilities of its states in every row; known ones are certain."""
        n = len(self._items[0])
        P = np.empty(self.n_probabilities)
        self._evaluate(u, P)
        trees: list[FloatArray] = []
        if self.tree is not None:
            marginals = self.tree.infer(u[self.index], "exact", **self.options).marginals
            trees = self.tree.variable_marginals(marginals)
        out = [np.zeros((len(self.states), k)) for k in self.graph.cardinalities[:count].tolist()]
        for table, states in zip(out, self.states.T, strict=False):
            known = np.flatnonzero(states >= 0)
            table[known, states[known]] = 1.0
        first = self._item_arrays.p_start.astype(np.int64)
        for variables, shape, rows, items in self._by_set():
            if items[0] < n:
                lowest, size = int(items.min()), int(np.prod(shape))  # the items of a set are one after another
                joint = P[first[lowest] : first[int(items.max())] + size].reshape(-1, *shape)
                for axis, v in enumerate(variables.tolist()):
                    others = tuple(a + 1 for a in range(len(shape)) if a != axis)
                    out[v][rows] = joint.sum(axis=others)[items - lowest]
            else:
                numbers = self._tree_variables(items - n, len(variables))
                for axis, v in enumerate(variables.tolist()):
                    out[v][rows] = np.array([trees[number] for number in numbers[:, axis].tolist()])
        return out

    def _tree_variables(self, items: IntArray, count: int) -> IntArray:
        """Which variables of the trees are those of an item."""
        assert self.tree is not None
        first = np.searchsorted(self.tree.examples, items)
        return np.asarray(first[:, None] + np.arange(count))

    def _by_set(self) -> Any:
        """For every set: its variables, their numbers of states, the rows in which it is unknown, and their items."""
        order = np.argsort(self.pair_sets, kind="stable")
        starts, members = self._sets
        edges = np.searchsorted(self.pair_sets[order], np.arange(len(starts)))
        for o in range(len(starts) - 1):
            pairs, variables = order[edges[o] : edges[o + 1]], members[starts[o] : starts[o + 1]]
            shape = tuple(self.graph.cardinalities[variables].tolist())
            yield variables, shape, self.pair_rows[pairs], self.pair_items[pairs]


def _unique_rows(rows: Any) -> tuple[Any, IntArray]:
    """Different rows of bool, and which of them each row is."""
    if not len(rows):
        return rows, np.zeros(0, np.int64)
    packed = np.packbits(rows, axis=1)
    same = (packed == packed[:1]).all(axis=1)  # often all of them
    bits, which = np.unique(np.vstack([packed[:1], packed[~same]]), axis=0, return_inverse=True)
    out = np.full(len(rows), which.ravel()[0])
    out[~same] = which.ravel()[1:]
    return np.unpackbits(bits, axis=1, count=rows.shape[1]).astype(bool), out
