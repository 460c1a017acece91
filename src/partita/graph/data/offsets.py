"""Offsets of the labels of nodes, as users give them: what is added to the scores of labels before a model."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...estimators.offsets import read_offset
from .graphs import GraphData

#: By type of node, a row for each node of all graphs.
NodeOffsets = dict[Hashable, FloatArray]


def read_node_offsets(offset: Any, data: GraphData, classes: Mapping[Hashable, Any]) -> NodeOffsets | None:
    """Offsets of all nodes; of each graph an array (nodes, labels), or a dict of such arrays by type of node."""
    if offset is None:
        return None
    if not hasattr(offset, "__len__") or len(offset) != len(data):
        raise ValueError(f"offset must be a list with an array, or a dict of arrays by type, for each of {len(data)} graphs")
    parts: dict[Hashable, list[FloatArray]] = {kind: [] for kind in data.node_types}
    for i, given in enumerate(offset):
        here = data.codes[data.offsets[i] : data.offsets[i + 1]]
        if data.typed != isinstance(given, Mapping):
            raise ValueError("offset must have dicts of arrays by type where nodes have types, and only there")
        for code in dict.fromkeys(here.tolist()):
            kind = data.node_types[code]
            count, n_labels = int((here == code).sum()), len(classes[kind])
            table = given.get(kind) if isinstance(given, Mapping) else given
            try:
                found = read_offset(np.zeros((count, n_labels)) if table is None else table, count, n_labels)
            except ValueError as error:
                raise ValueError(f"graph {i}: {error}") from None
            assert found is not None
            parts[kind].append(found)
    return {kind: np.vstack(part) for kind, part in parts.items() if part}
