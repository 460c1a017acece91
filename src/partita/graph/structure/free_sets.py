"""log Z of many sets of variables of a factor graph, each given the states of all others, for many rows of states."""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from functools import cached_property
from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import free_sets as kernels
from ..kernels.free_sets import Blanket, Items, Rows, SetMembers, SetTables, Settled, Strides
from .covariance import EntryCovariance
from .factor_graph import FactorGraph
from .scopes import Scopes, ranges

#: Configurations of a set that are written out; sets with more get a junction tree.
LARGEST = 1024
#: Configurations of a set's Markov blanket that get a slot each, per row of states; with more, every row is an item.
SLOTS = 4


class FreeSets:
    """``sum_r sum_o sign_o w_ro log Z(x_S | the rest of row r)`` over rows r and sets S = S_o, as a function of potentials.

    A set interacts with its Markov blanket only: the variables that share a factor with it. Rows that agree there are one
    item with the sum of their weights, so that the cost does not grow with the number of rows where sets have few
    neighbours.

    Parameters
    ----------
    graph : FactorGraph
    sets : Scopes
        The variables of every set, ascending.
    states : int array of shape (n_rows, n_variables)
        All known.
    row_weights : array of shape (n_rows,)
    shares : array of shape (1, n_columns) or (n_rows, n_columns)
        ``w_ro`` is ``row_weights[r] * shares[r, column of o]``.
    columns : int array
        Of every set.
    signs : array
        Of every set, 1 or -1.
    latent : bool array
        For every member of every set, whether its state is not to be counted as known, see `counts`.

    Attributes
    ----------
    counts : array of shape (graph.size,)
        How often, weighted, each entry is picked by factors that touch a set and none of its latent members.
    n_items : int
        Number of sets given different states of their Markov blankets.
    """

    graph: FactorGraph
    options: dict[str, float]
    workers: Workers

    def __init__(
        self,
        graph: FactorGraph,
        sets: Scopes,
        states: IntArray,
        row_weights: FloatArray,
        shares: FloatArray,
        columns: IntArray,
        signs: FloatArray,
        latent: Any,
        **options: float,
    ) -> None:
        self.graph, self.options, self.workers = graph, options, graph.workers
        self.states: IntArray = np.ascontiguousarray(states, dtype=np.int64)
        self._rows = Rows(self.states, row_weights, np.ascontiguousarray(shares, dtype=np.float64), columns, signs)
        self._compile(sets, np.asarray(latent, dtype=bool), SLOTS * len(self.states) + 64)
        self._collapse()
        self._prepare()

    def _compile(self, sets: Scopes, latent: Any, most: int) -> None:
        """Factors of sets, and variables of those within and without.

        Configurations of the Markov blanket of a set are numbered unless they are more than `most`.
        """
        graph, (starts, variables) = self.graph, sets
        n, V = len(starts) - 1, graph.n_variables
        counts = graph.cardinalities[variables]
        logs = np.add.reduceat(np.log(counts), starts[:-1])
        small = logs <= np.log(LARGEST) + 1e-9
        self.sizes: IntArray = np.where(small, np.rint(np.exp(np.minimum(logs, 50.0))), LARGEST + 1).astype(np.int64)
        self.large: IntArray = np.flatnonzero(~small)
        owner = np.repeat(np.arange(n), np.diff(starts))
        touching, first = factors_of_variables(graph)
        lengths = first[variables + 1] - first[variables]
        keys = np.repeat(owner, lengths) * graph.n_factors + touching[ranges(first[variables], lengths)]
        keys = np.unique(keys)
        pair_set, pair_factor = keys // graph.n_factors, keys % graph.n_factors
        self.pair_start: IntArray = np.searchsorted(pair_set, np.arange(n + 1))
        lengths = np.diff(graph.scope_offsets)[pair_factor]
        edges = ranges(graph.scope_offsets[pair_factor], lengths)
        pair = np.repeat(np.arange(len(pair_factor)), lengths)
        member, stride = graph.members[edges], member_strides(graph)[edges]
        within = owner * V + variables  # ascending
        wanted = pair_set[pair] * V + member
        found = np.minimum(np.searchsorted(within, wanted), len(within) - 1)
        free = within[found] == wanted
        self._pair_factor, self._pair_offset = pair_factor, graph.offsets[pair_factor]
        self._sets = sets
        numbers = np.arange(len(pair_factor) + 1)
        self._free = Strides(np.searchsorted(pair[free], numbers), (found - starts[pair_set[pair]])[free], stride[free])
        self._fixed = Strides(np.searchsorted(pair[~free], numbers), member[~free], stride[~free])
        blurred = np.bincount(pair[free], weights=latent[found[free]], minlength=len(pair_factor)) > 0
        settled = np.flatnonzero(~blurred)
        inside = ~blurred[pair]
        known = np.searchsorted(pair[inside], np.append(settled, len(pair_factor)))
        self._settled = Settled(
            np.searchsorted(pair_set[settled], np.arange(n + 1)),
            self._pair_offset[settled],
            Strides(known, member[inside], stride[inside]),
        )
        widths = np.where(small, self.sizes * np.diff(self.pair_start), 0)
        map_start = np.concatenate(([0], np.cumsum(widths)))
        maps = np.empty(map_start[-1], np.uint64)
        given = (np.where(small, self.sizes, 0), self.pair_start, SetMembers(starts, counts, self._free), map_start)
        self.workers.run(kernels.write_maps, [(*given, lo, hi, maps) for lo, hi in Workers.ranges(n, 10.0 * len(maps))])
        factors = _unsigned(self.pair_start), _unsigned(self._pair_offset)
        self._tables = SetTables(_unsigned(self.sizes), *factors, _unsigned(map_start), maps)
        self._largest = int(self.sizes[small].max(initial=1))
        neighbours = np.unique(wanted[~free])
        start = np.searchsorted(neighbours // V, np.arange(n + 1))
        self._blanket, self._blanket_sizes = _blankets(neighbours % V, start, graph.cardinalities, most)

    def with_shares(self, shares: FloatArray) -> FreeSets:
        """The same sets, rows and weights of these with other shares."""
        out = copy(self)
        out._rows = self._rows._replace(shares=np.ascontiguousarray(shares, dtype=np.float64))
        out._collapse()
        out._prepare()
        return out

    def of_rows(self, states: IntArray, row_weights: FloatArray, shares: FloatArray) -> FreeSets:
        """The same sets in other rows."""
        out = copy(self)
        out.states = np.ascontiguousarray(states, dtype=np.int64)
        out._rows = self._rows._replace(states=out.states, weights=row_weights)
        members, most = self._blanket.members, SLOTS * len(states) + 64
        out._blanket, out._blanket_sizes = _blankets(members.variables, members.start, self.graph.cardinalities, most)
        return out.with_shares(shares)

    def _scratch(self) -> FloatArray:
        """Room for the configurations of the largest set that is written out."""
        return np.empty(self._largest)

    def _collapse(self) -> None:
        """Rows that agree on the Markov blanket of a set are one item."""
        n, rows, graph = len(self.sizes), len(self.states), self.graph
        slots = np.where(self._blanket.by_row, rows, self._blanket_sizes)
        self._slot_start = np.concatenate(([0], np.cumsum(slots)))
        pieces = Workers.ranges(n, 20.0 * n * rows)
        totals, chosen = np.zeros(self._slot_start[-1]), np.zeros(self._slot_start[-1], np.int64)
        parts, columns = np.zeros((len(pieces), graph.size)), np.ascontiguousarray(self.states.T)
        tasks = [
            (self._rows, columns, self._blanket, self._slot_start, self._settled, lo, hi, totals, chosen, parts[i])
            for i, (lo, hi) in enumerate(pieces)
        ]
        self.workers.run(kernels.tabulate, tasks)
        self.counts: FloatArray = parts.sum(0)
        used = np.flatnonzero(totals)
        sets = np.searchsorted(self._slot_start, used, side="right") - 1
        big = self.sizes[sets] > LARGEST
        self.n_items: int = len(used)
        self._items = (used[~big], sets[~big], chosen[used[~big]], totals[used[~big]])
        self._trees = (used[big], sets[big], chosen[used[big]], totals[used[big]])

    def _prepare(self) -> None:
        """The items of small sets as arrays, those of large ones as a graph of their own."""
        _, sets, rows, weights = self._items
        lengths = np.diff(self.pair_start)[sets]
        start = np.concatenate(([0], np.cumsum(lengths)))
        p_start = np.concatenate(([0], np.cumsum(self.sizes[sets])))
        bases = self._bases(sets, rows, start)
        self._item_arrays = Items(_unsigned(sets), _unsigned(start), bases, weights, _unsigned(p_start))
        self.cells: int = int((self.sizes[sets] * (lengths + 4)).sum())  # operations of one evaluation
        self._ranges = Workers.ranges(len(sets), 4.0 * self.cells)
        self.tree: FactorGraph | None = None
        if len(self._trees[0]):
            self._plant()

    def _bases(self, sets: IntArray, rows: IntArray, start: IntArray) -> Any:
        bases = np.empty(start[-1], np.uint64)
        kernels.write_bases(self.states, self.pair_start, self._pair_offset, self._fixed, sets, rows, start, bases)
        return bases

    def alone(self, o: int) -> FactorGraph:
        """One set as a graph of its own: factors restricted to it."""
        return self._graph(np.array([o]))

    def _graph(self, sets: IntArray) -> FactorGraph:
        """Sets as graphs, an example each."""
        lengths = np.diff(self.pair_start)[sets]
        set_start, variables = self._sets
        sizes = np.diff(set_start)[sets]
        first = np.cumsum(sizes) - sizes
        pairs = ranges(self.pair_start[sets], lengths)  # of every item, in order
        free = self._free
        arity = np.diff(free.start)[pairs]
        members = free.variables[ranges(free.start[pairs], arity)]
        scopes = Scopes(np.concatenate(([0], np.cumsum(arity))), members + np.repeat(np.repeat(first, lengths), arity))
        counts = self.graph.cardinalities[variables[ranges(set_start[sets], sizes)]]
        examples = np.repeat(np.arange(len(sets)), sizes)
        return FactorGraph(counts, scopes, examples=examples, n_jobs=self.graph.n_jobs)

    def _plant(self) -> None:
        """One graph, an example for each item of a large set."""
        _, sets, rows, _ = self._trees
        lengths = np.diff(self.pair_start)[sets]
        bases = self._bases(sets, rows, np.concatenate(([0], np.cumsum(lengths)))).astype(np.int64)
        self.tree = self._graph(sets)
        index = np.empty(self.tree.size, np.int64)
        free = self._free
        pairs = ranges(self.pair_start[sets], lengths)
        strides = free.strides[ranges(free.start[pairs], np.diff(free.start)[pairs])]
        for numbers, _, shapes, _ in self.tree.by_arity:
            steps = strides[self.tree.scope_offsets[numbers][:, None] + np.arange(shapes.shape[1])]
            kinds, which = np.unique(np.hstack([shapes, steps]), axis=0, return_inverse=True)
            for k, row in enumerate(kinds):
                here = numbers[which.ravel() == k]
                shape, step = np.split(row, 2)
                local = step @ np.indices(tuple(shape)).reshape(len(shape), -1)
                index[self.tree.offsets[here][:, None] + np.arange(len(local))] = (
                    bases[here].astype(np.int64)[:, None] + local
                )
        self.index = index
        self.tree.tree(**self.options)  # refuses here what does not fit

    @property
    def n_probabilities(self) -> int:
        """Configurations of all items of small sets."""
        return int(self._item_arrays.p_start[-1])

    @property
    def item_weights(self) -> FloatArray:
        """Of the items of small sets."""
        return self._item_arrays.weights

    @property
    def item_starts(self) -> IntArray:
        """Where the configurations of the items of small sets begin, and where the last end."""
        return self._item_arrays.p_start.astype(np.int64)

    @property
    def tree_weights(self) -> FloatArray:
        """Of the items of large sets."""
        return self._trees[3]

    def run(
        self,
        kernel: Callable[..., Any],
        u: FloatArray,
        outputs: Callable[[int], tuple[Any, ...]],
        weights: FloatArray | None = None,
    ) -> list[Any]:
        """A kernel on the items of small sets, in pieces on threads; `outputs` are those of each piece. Items may be given
        other weights."""
        items = self._item_arrays if weights is None else self._item_arrays._replace(weights=weights)
        pieces = enumerate(self._ranges)
        tasks = [(u, self._tables, items, lo, hi, *outputs(i), self._scratch()) for i, (lo, hi) in pieces]
        return self.workers.run(kernel, tasks)

    def at(self, u: FloatArray) -> FreeSums:
        """The sum at potentials `u`."""
        return FreeSums(self, np.ascontiguousarray(u, dtype=np.float64))

    def row_residuals(self, u: FloatArray, lo: int, hi: int) -> FloatArray:
        """For rows lo..hi, picked entries less expected ones, weighted: minus the gradient of what each row adds."""
        out = np.zeros((hi - lo, self.graph.size))
        given, most = (self._rows, u, self._tables, self._fixed, self._settled), int(np.diff(self.pair_start).max(initial=0))
        tasks = [
            (*given, a + lo, b + lo, out[a:b], self._scratch(), np.empty(most, np.uint64))
            for a, b in Workers.ranges(hi - lo, 20.0 * (hi - lo) * len(self.sizes))
        ]
        self.workers.run(kernels.residuals, tasks)
        if self.tree is not None:
            self._subtract_trees(u, lo, hi, out)
        return out

    def _subtract_trees(self, u: FloatArray, lo: int, hi: int, out: FloatArray) -> None:
        assert self.tree is not None
        marginals = self.tree.infer(u[self.index], "exact", **self.options).marginals
        ends = np.searchsorted(self.tree.factor_examples, np.arange(len(self._trees[0]) + 1))
        slots, (_, row_weights, shares, columns, signs) = np.empty(len(self.states), np.int64), self._rows
        for o in np.unique(self._trees[1]).tolist():
            kernels.write_slots(np.ascontiguousarray(self.states.T), self._blanket, self._slot_start, o, slots)
            for r in range(lo, hi):
                w = signs[o] * row_weights[r] * shares[r if len(shares) > 1 else 0, columns[o]]
                if w != 0.0:
                    i = int(np.searchsorted(self._trees[0], slots[r]))
                    part = slice(*self.tree.offsets[ends[i : i + 2]])
                    np.subtract.at(out[r - lo], self.index[part], w * marginals[part])

    def touched(self) -> FloatArray:
        """One for every entry of a factor of an item, else zero."""
        out = np.zeros(self.graph.n_factors)
        sets = np.unique(np.concatenate([self._items[1], self._trees[1]]))
        out[self._pair_factor[ranges(self.pair_start[sets], np.diff(self.pair_start)[sets])]] = 1.0
        return np.repeat(out, np.diff(self.graph.offsets))


class FreeSums:
    """A sum of `FreeSets` at some potentials: `value`, `gradient` in the entries, and products with its Hessian."""

    sets: FreeSets
    u: FloatArray
    value: float

    def __init__(self, sets: FreeSets, u: FloatArray) -> None:
        self.sets, self.u = sets, u
        self._run(np.zeros(0))

    def _run(self, P: FloatArray) -> None:
        s = self.sets
        parts = np.zeros((len(s._ranges), s.graph.size))
        self.value = float(sum(s.run(kernels.sums, self.u, lambda i: (P, parts[i]))))
        self.gradient: FloatArray = parts.sum(0)
        if s.tree is not None:
            found = s.tree.infer(self.u[s.index], "exact", **s.options)
            self.tree_log_z: FloatArray = found.log_z
            self.value += float(s._trees[3] @ found.log_z)
            self.gradient += self._spread(found.marginals)

    def _spread(self, values: FloatArray) -> FloatArray:
        """Numbers for the entries of trees, weighted, at their places in the whole."""
        s = self.sets
        assert s.tree is not None
        weights = np.repeat(s._trees[3][s.tree.factor_examples], np.diff(s.tree.offsets))
        return np.asarray(np.bincount(s.index, weights=weights * values, minlength=s.graph.size), dtype=np.float64)

    @cached_property
    def _probabilities(self) -> FloatArray:
        P = np.empty(self.sets.n_probabilities)
        if len(P):
            self._run(P)
        return P

    @cached_property
    def _covariance(self) -> EntryCovariance | None:
        s = self.sets
        return None if s.tree is None else EntryCovariance(s.tree, self.u[s.index], **s.options)

    @property
    def softmaxes(self) -> tuple[FloatArray, IntArray]:
        """The probabilities of the configurations of each item that is written out, and where those of each begin."""
        return self._probabilities, self.sets.item_starts

    def weighted(self, P: FloatArray, factors: FloatArray, v: FloatArray) -> FloatArray:
        """As the part of `product` of what is written out, with other probabilities, and items of positive weight alone,
        each times a factor."""
        s = self.sets
        parts = np.zeros((len(s._ranges), s.graph.size))
        s.run(kernels.product, v, lambda i: (P, parts[i]), np.maximum(s.item_weights, 0.0) * factors)
        return np.asarray(parts.sum(0))

    def product(self, v: FloatArray) -> FloatArray:
        """The derivative of the gradient along v."""
        s = self.sets
        parts = np.zeros((len(s._ranges), s.graph.size))
        P = self._probabilities
        s.run(kernels.product, v, lambda i: (P, parts[i]))
        out = np.asarray(parts.sum(0))
        return out if self._covariance is None else out + self._spread(self._covariance.product(v[s.index]))

    def variances(self) -> FloatArray:
        """The diagonal of the Hessian."""
        s = self.sets
        parts, P = np.zeros((len(s._ranges), s.graph.size)), self._probabilities
        largest = int(np.diff(s.graph.offsets).max(initial=1))
        tasks = [(s._tables, s._item_arrays, lo, hi, P, parts[i], np.zeros(largest)) for i, (lo, hi) in enumerate(s._ranges)]
        s.workers.run(kernels.variances, tasks)
        out = np.asarray(parts.sum(0))
        if s.tree is not None:
            p = s.tree.infer(self.u[s.index], "exact", **s.options).marginals
            out += self._spread(p * (1.0 - p))
        return out


def _unsigned(array: IntArray) -> Any:
    return array.astype(np.uint64)


def factors_of_variables(graph: FactorGraph) -> tuple[IntArray, IntArray]:
    """The factors of every variable, one variable after another, and where those of each begin."""
    order = np.argsort(graph.members, kind="stable")
    owner = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_offsets))
    return owner[order], np.searchsorted(graph.members[order], np.arange(graph.n_variables + 1))


def member_strides(graph: FactorGraph) -> IntArray:
    """The step of every member of every factor within its table."""
    out = np.zeros(len(graph.members), np.int64)
    for numbers, scope, _, strides in graph.by_arity:
        out[graph.scope_offsets[numbers][:, None] + np.arange(scope.shape[1])] = strides
    return out


def _blankets(variables: IntArray, start: IntArray, cardinalities: IntArray, most: int) -> tuple[Blanket, IntArray]:
    """What numbers the configurations of Markov blankets, unless they are more than `most`, and how many there are."""
    n = len(start) - 1
    counts = cardinalities[variables]
    logs = np.concatenate(([0.0], np.cumsum(np.log(counts))))
    owner = np.repeat(np.arange(n), np.diff(start))
    by_row = logs[start[1:]] - logs[start[:-1]] > np.log(most)
    before = np.where(by_row[owner], 0.0, logs[:-1] - logs[start[:-1]][owner])
    multipliers = np.rint(np.exp(before)).astype(np.int64)
    sizes = np.rint(np.exp(np.where(by_row, 0.0, logs[start[1:]] - logs[start[:-1]]))).astype(np.int64)
    return Blanket(Strides(start, variables, multipliers), by_row), sizes
