"""What a network is after a fit, taken from a file with tables instead, and whether its parts fit together."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.memory import product
from ...core.results import FloatArray
from ...estimators.loaded import LARGEST_WEIGHT
from ..bif import read_bif
from ..data.column_states import check_labels
from ..data.network import MOST_ENTRIES, NetworkLayout, describe
from ..objective import NEVER
from ..structure.bayes_net import find_cycle
from ..structure.discrete_network import DiscreteNetwork

#: The parts of a fitted network that inference needs.
PARTS = ("nodes_", "parents_", "states_", "hidden_", "variance_", "parameters_", "location_", "scale_", "table_")
#: Kinds of tables that a network can be fitted to. (Files of older versions have "frame" for pandas.)
KINDS = ("pandas", "polars", "arrow", "frame", "dict", "records", "structured", "numbers", "objects")


def given_parts(edges: Any, cardinalities: Any, hidden: Any, gaussian: Any) -> dict[str, Any] | None:
    """The parts, if `edges` is a network with tables and nothing else changes its variables; else None."""
    if cardinalities or gaussian or not isinstance(edges, str | os.PathLike | DiscreteNetwork):
        return None
    network = edges if isinstance(edges, DiscreteNetwork) else read_bif(edges)
    description = describe(network, None, hidden, None)
    states = {name: list(of) for name, of in zip(network.variables, network.states, strict=True)}
    if description.states != states:  # other numbers of hidden states: the tables do not fit
        return None
    with np.errstate(divide="ignore"):
        logs = [np.log(table / table.sum(-1, keepdims=True)) for table in network.tables]
    parameters = np.concatenate([np.maximum(np.ravel(log), NEVER) for log in logs])
    nothing = np.zeros(0)
    values = (
        description.nodes,
        description.parents,
        states,
        description.hidden,
        "tied",
        parameters,
        nothing,
        nothing,
        "objects",
    )
    return dict(zip(PARTS, values, strict=True)) | {"columns_": None, "n_features_in_": len(description.observed)}


def checked_layout(parts: Mapping[str, Any]) -> NetworkLayout:
    """The layout of a fitted network; a ValueError that says which of its parts do not fit together."""
    missing = [name for name in PARTS if name not in parts]
    if missing:
        raise ValueError(f"the network has no {missing[0]}")
    nodes, parents, states, hidden = (parts[name] for name in PARTS[:4])
    _check_graph(nodes, parents, states, hidden)
    if parts["variance_"] not in ("tied", "free"):
        raise ValueError(f"variance_ must be 'tied' or 'free', got {parts['variance_']!r}")
    if parts["table_"] not in KINDS:
        raise ValueError(f"table_ must be one of {', '.join(KINDS)}, got {parts['table_']!r}")
    _check_columns(parts, nodes)
    layout = NetworkLayout(nodes, parents, states, hidden)
    means = sum(layout.net.leaf_sizes)
    n = layout.net.size + means + (len(layout.gaussian) if parts["variance_"] == "tied" else means)
    for name, size in (("parameters_", n), ("location_", len(layout.gaussian)), ("scale_", len(layout.gaussian))):
        _check_vector(name, parts[name], size)
    if not (parts["scale_"] > 0.0).all():
        raise ValueError("scale_ must be positive")
    return layout


def _check_columns(parts: Mapping[str, Any], nodes: list[Any]) -> None:
    """What is known of the columns of the fit, which files of older versions do not have."""
    columns, names = parts.get("columns_"), parts.get("feature_names_in_")
    if columns is not None:
        used = [column for column in columns if column is not None] if isinstance(columns, list) else [None]
        if not set(used) <= set(nodes) or len(set(used)) < len(used):
            raise ValueError(f"columns_ must be a list of different variables and None, got {columns!r}")
    if names is not None:
        text = isinstance(names, np.ndarray) and names.ndim == 1 and all(isinstance(name, str) for name in names)
        if not text or (columns is not None and columns != [name if name in nodes else None for name in names]):
            raise ValueError("feature_names_in_ must be strings, of which columns_ are those that nodes_ has")


def _check_vector(name: str, vector: FloatArray, size: int) -> None:
    if not isinstance(vector, np.ndarray) or vector.dtype != np.float64 or vector.shape != (size,):
        got = f"{vector.shape} of {vector.dtype}" if isinstance(vector, np.ndarray) else type(vector).__name__
        raise ValueError(f"{name} must be {size} float64 numbers to fit nodes_, parents_ and states_, got {got}")
    if not (np.abs(vector) <= LARGEST_WEIGHT).all():
        raise ValueError(f"{name} must be finite, and at most {LARGEST_WEIGHT:g} in size")


def _check_graph(nodes: Any, parents: Any, states: Any, hidden: Any) -> None:
    if not isinstance(nodes, list) or not nodes or len(set(nodes)) < len(nodes):
        raise ValueError(f"nodes_ must be a list of different names, got {nodes!r}")
    if not all(isinstance(part, dict) for part in (parents, states)) or set(parents) != set(nodes):
        raise ValueError("parents_ and states_ must be dicts, and parents_ have an entry for each of nodes_")
    if not set(states) <= set(nodes):
        raise ValueError(f"states_ must be of variables among nodes_, got {next(iter(set(states) - set(nodes)))!r} too")
    for name, of in parents.items():
        if not isinstance(of, list | tuple) or len(set(of)) < len(of) or not set(of) <= set(states) - {name}:
            raise ValueError(f"parents_ of {name!r} must be different other variables with states, got {of!r}")
    loop = find_cycle(parents)
    if loop:
        raise ValueError(f"parents_ must have no cycle, got {' -> '.join(map(str, loop))}")
    for name, labels in states.items():
        if not isinstance(labels, list) or not labels:
            raise ValueError(f"states_ of {name!r} must be a list of at least one, got {labels!r}")
        check_labels(f"states_ of {name!r}", labels)
    if not isinstance(hidden, list | tuple) or not set(hidden) <= set(states):
        raise ValueError(f"hidden_ must be variables with states, got {hidden!r}")
    for name, of in parents.items():
        if product(len(states[each]) for each in (*of, name) if each in states) > MOST_ENTRIES:
            raise ValueError(f"the distributions of {name!r} have more than {MOST_ENTRIES} entries")
