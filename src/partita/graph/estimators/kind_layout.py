"""Kinds of factors of a `GraphCRF`, and where their weights are."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.arrays.simplex import normalized
from ...core.memory import product
from ...core.results import FloatArray, IntArray
from ...core.types import LabelArray
from ...objectives.constraints.named import FACTORS, TRANSITIONS, NamedWeights
from ..data.graphs import NODE, GraphData, Kind, base_tables, flat_base
from ..data.offsets import NodeOffsets
from ..features.statistics import symmetric_basis
from ..features.tied_tables import TableType, TiedTables
from ..structure.factor_graph import FactorGraph


@dataclass(frozen=True)
class KindLayout:
    """The weights of factors of each kind, one kind after another: a row for each feature.

    Attributes
    ----------
    kinds : list of tuples
        Name and types of nodes.
    widths : list of int
        Numbers of features.
    classes : dict
        The sorted labels of each type of node.
    symmetric : bool
        Whether tables of edges between nodes of one type are symmetric.
    """

    kinds: list[Kind]
    widths: list[int]
    classes: Mapping[Hashable, LabelArray]
    symmetric: bool

    def is_symmetric(self, kind: Kind) -> bool:
        """Whether the tables of a kind are symmetric."""
        return self.symmetric and len(kind) == 3 and kind[1] == kind[2]

    def statistics(self, kind: Kind) -> int:
        """The number of weights of each feature."""
        counts = [len(self.classes[t]) for t in kind[1:]]
        return counts[0] * (counts[0] + 1) // 2 if self.is_symmetric(kind) else product(counts)

    def compile(
        self, data: GraphData, tables: Mapping[Any, Any] | None, n_jobs: int | None
    ) -> tuple[FactorGraph, TiedTables, FloatArray | None]:
        """The graph, map and base of data in this layout; `tables` are added to those of the weights."""
        counts = {kind: len(labels) for kind, labels in self.classes.items()}
        graph = data.graph(counts, self.kinds, n_jobs)
        types, numbers, first, start = [], [], 0, 0
        for kind, width in zip(self.kinds, self.widths, strict=True):
            basis = symmetric_basis(counts[kind[1]]) if self.is_symmetric(kind) else None
            statistics = self.statistics(kind)
            parameters = start + np.arange(width * statistics).reshape(width, statistics)
            start += parameters.size
            scopes, F = data.factors.get(kind, (np.zeros((0, 1)), None))
            numbers.append(len(scopes))
            if len(scopes):
                types.append(TableType(first + np.arange(len(scopes)), F, basis, parameters))
                first += len(scopes)
        features = TiedTables(graph, types, size=start)
        return graph, features, flat_base(graph, numbers, base_tables(tables, self.kinds, self.classes))

    def with_offsets(
        self, data: GraphData, graph: FactorGraph, base: FloatArray | None, offsets: NodeOffsets | None
    ) -> FloatArray | None:
        """What is added to the potentials, with the offsets of nodes: on the tables that every node has for itself."""
        if offsets is None:
            return base
        out, first = np.zeros(graph.size) if base is None else base.copy(), 0
        for kind in self.kinds:
            scopes = data.factors[kind][0] if kind in data.factors else np.zeros((0, 1), np.int64)
            if kind[0] == NODE and len(scopes):
                nodes = np.flatnonzero(data.codes == data.node_types.index(kind[1]))
                rows = offsets[kind[1]][np.searchsorted(nodes, scopes[:, 0])]
                out[graph.offsets[first : first + len(scopes), None] + np.arange(rows.shape[1])] += rows
            first += len(scopes)
        return out

    def split(self, values: FloatArray) -> dict[Kind, FloatArray]:
        """A number for each weight as tables by kind, (n_features, labels of the first node, ...)."""
        out, start = {}, 0
        for kind, width in zip(self.kinds, self.widths, strict=True):
            shape = tuple(len(self.classes[t]) for t in kind[1:])
            basis = symmetric_basis(shape[0]) if self.is_symmetric(kind) else None
            count = width * self.statistics(kind)
            W = values[start : start + count].reshape(width, self.statistics(kind))
            out[kind] = (W if basis is None else W @ basis.T).reshape(width, *shape)
            start += count
        return out

    def named_weights(self, columns: Mapping[Any, Sequence[Hashable]], with_intercept: Sequence[bool]) -> NamedWeights:
        """Weights by label and feature of nodes, by pair of labels at the ends of edges, and by name of factor.

        Nodes of several types have labels (type, label), and features (type, name). `with_intercept` says of each kind
        whether its last feature is the intercept.
        """
        size = sum(width * self.statistics(kind) for kind, width in zip(self.kinds, self.widths, strict=True))
        tables = self.split(np.arange(size, dtype=np.float64))
        labels: list[Any] = []
        features: list[Any] = []
        entries, whole, several = [np.zeros((3, 0), np.int64)], np.zeros(0, np.int64), len(self.classes) > 1
        pairs: dict[Any, list[int]] = {}
        factors: dict[Any, IntArray] = {}
        for kind, intercept in zip(self.kinds, with_intercept, strict=True):
            table = np.rint(tables[kind]).astype(np.int64)
            table = table[:-1] if intercept else table
            places = np.unique(table)
            whole, factors[kind] = np.concatenate([whole, places]), places
            factors[kind[0]] = np.concatenate([factors.get(kind[0], np.zeros(0, np.int64)), places])
            names = [[(t, label) if several else label for label in np.asarray(self.classes[t]).tolist()] for t in kind[1:]]
            if kind[0] == NODE:
                rows, column = np.indices(table.T.shape) + np.array([len(labels), len(features)])[:, None, None]
                entries.append(np.stack([rows.ravel(), column.ravel(), table.T.ravel()]))
                labels += names[0]
                given = list(columns.get((NODE, kind[1]), range(len(table))))[: len(table)]
                features += [(kind[1], name) for name in given] if several else given
            elif len(kind) == 3:
                for a, b in np.ndindex(table.shape[1:]):
                    pairs.setdefault((names[0][a], names[1][b]), []).extend(table[:, a, b].tolist())
        groups: dict[str, Mapping[Any, Any]] = {TRANSITIONS: pairs, FACTORS: factors}
        shape = len(labels), len(features)
        return NamedWeights(size, shape, np.concatenate(entries, 1), labels, features, groups, whole)

    def node_marginals(self, data: GraphData, graph: FactorGraph, flat: FloatArray) -> dict[Hashable, FloatArray]:
        """Probabilities of labels by type of node, of those of all factors: every node has a factor of its own."""
        out: dict[Hashable, FloatArray] = {}
        first = 0
        for kind in self.kinds:
            count = len(data.factors[kind][0]) if kind in data.factors else 0
            if kind[0] == NODE and count:
                table = flat[graph.offsets[first] : graph.offsets[first + count]].reshape(count, -1)
                out[kind[1]] = normalized(table)
            first += count
        return out

    def named(self, data: GraphData, states: IntArray) -> list[Any]:
        """Rows of codes as labels, graph by graph."""
        parts = enumerate(data.node_types)
        return data.split({kind: np.asarray(self.classes[kind])[states[data.codes == code]] for code, kind in parts})
