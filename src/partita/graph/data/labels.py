"""Labels of the nodes of graphs, as users give them, read into codes."""

from __future__ import annotations

import numbers
from collections.abc import Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.arrays.unknown import is_unknown, refuse_ignored, refuse_spins
from ...core.errors import DataWarning
from ...core.results import IntArray
from ...core.warn import warn
from ...estimators.states import set_code, sets_table
from .graphs import GraphData


class NodeStates(NamedTuple):
    """What is known of the labels of nodes.

    Attributes
    ----------
    codes : int array
        The place of each label among those of its type of node; -1 where unknown, ``-2 - k`` where in row k of `sets`.
    classes : dict
        The labels of each type of node, sorted.
    sets : bool array of shape (n_sets, most labels), or None
    """

    codes: IntArray
    classes: dict[Hashable, Any]
    sets: NDArray[np.bool_] | None

    def right(self, found: IntArray) -> NDArray[np.bool_]:
        """Whether labels found are right, of the nodes about which something is known: equal, or in the set."""
        known = self.codes != -1
        codes, found = self.codes[known], found[known]
        out = codes == found
        if self.sets is not None:
            of_sets = codes < -1
            out[of_sets] = self.sets[-2 - codes[of_sets], found[of_sets]]
        return np.asarray(out)


def read_labels(
    y: Any, data: GraphData, classes: dict[Hashable, Any] | None, unseen: bool = False, certain: bool | None = None
) -> NodeStates:
    """Labels of all nodes as codes: of single labels, of unknown ones (None, NaN or -1), and of sets of labels.

    With `classes`, labels must be among them, unless `unseen` gives others the code of no class; types that they lack get
    theirs from y. Labels that look like spins or like what other libraries ignore are refused, unless it is `certain` what
    labels there are (default: if there are `classes`).
    """
    if y is None or isinstance(y, str) or len(y) != len(data):
        raise ValueError(f"y must be a list of labels for each of {len(data)} graphs")
    certain = classes is not None if certain is None else certain
    parts = [_labels(labels, i, data) for i, labels in enumerate(y)]
    codes = np.full(len(data.codes), -1, np.int64)
    found: dict[Hashable, Any] = {}
    flat = (
        np.concatenate(parts) if len({part.dtype.kind for part in parts}) == 1 else np.concatenate([*map(_objects, parts)])
    )
    flat, given_sets = _without_sets(flat)
    sets: dict[tuple[int, ...], int] = {}
    for code, kind in enumerate(data.node_types):
        places = np.flatnonzero(data.codes == code)
        own = [t for t in places.tolist() if t in given_sets]
        members = [label for t in own for label in given_sets[t]]
        values = np.concatenate([_objects(flat[places]), _objects(members)]) if own else flat[places]
        name = f"y (nodes of type {kind!r})" if data.typed else "y"
        where, names = _among(values, kind, name, None if classes is None else classes.get(kind), unseen, certain)
        codes[places], inside = np.split(where, [len(places)])
        start = 0
        for t in own:
            start, first = start + len(given_sets[t]), start
            codes[t] = _set_code(np.unique(inside[first:start]), len(names), sets)
        found[kind] = names
    return NodeStates(codes, found, sets_table(sets, max(map(len, found.values()))))


def _without_sets(flat: Any) -> tuple[Any, dict[int, list[Any]]]:
    """The labels with None in place of sets of them, and these by their places."""
    if flat.dtype.kind != "O":
        return flat, {}
    sets = {t: list(label) for t, label in enumerate(flat.tolist()) if isinstance(label, set | frozenset)}
    if not sets:
        return flat, {}
    for members in sets.values():
        if not members:
            raise ValueError("y holds an empty set of labels: a node must have a label (None stands for any)")
        if any(is_unknown(label) or _minus_one(label) for label in members):
            raise ValueError(f"y holds the set {set(members)}: a set holds labels only; None, by itself, stands for any")
    flat = flat.copy()
    flat[list(sets)] = None
    return flat, sets


def _set_code(chosen: IntArray, count: int, sets: dict[tuple[int, ...], int]) -> int:
    """The code of a set of labels of which there are `count`; of one without any of them, the code of no label."""
    known = chosen[chosen < count]
    return set_code(tuple(known.tolist()), count, sets) if len(known) else count


def _among(labels: Any, kind: Hashable, name: str, given: Any, unseen: bool, certain: bool) -> tuple[IntArray, Any]:
    """The place of each label of a type of nodes among the sorted labels, -1 where unknown, and these."""
    if not certain:
        _refuse_numbers(labels, name)
    known = _known(labels)
    values = labels[known]
    of_kinds = f"y must hold labels of one kind, strings or numbers, for nodes of type {kind!r}"
    if values.dtype.kind == "O":
        sorts = [_sort(t) for t in map(type, values)]
        if "other" in sorts:
            raise ValueError(
                f"y holds {values[sorts.index('other')]!r} for a node of type {kind!r}; labels must be strings or "
                "numbers, None for unknown, or a set of labels"
            )
        if len(set(sorts)) > 1:
            raise ValueError(of_kinds)
        values = np.array(values.tolist())
    if given is None and not len(values):
        raise ValueError(f"y has no known label for nodes of type {kind!r}; give `classes`")
    names = np.unique(values) if given is None else np.unique(np.asarray(given))
    mixed = len(values) and (values.dtype.kind in "US") != (names.dtype.kind in "US")
    if values.ndim != 1 or values.dtype.kind == "O" or mixed:
        raise ValueError(of_kinds)
    if names.dtype.kind in "if" and (names == -1).any():
        raise ValueError("classes must not hold -1, which means unknown among labels that are numbers: use other labels")
    where = np.minimum(np.searchsorted(names, values), max(len(names) - 1, 0))
    unknown = names[where] != values if len(values) else np.zeros(0, bool)
    if unknown.any() and not unseen:
        raise ValueError(
            f"y has the label {values[unknown].tolist()[0]!r} for a node of type {kind!r}; known are {names.tolist()}"
        )
    if given is None and len(names) == 1 and names.dtype.kind in "if" and not known.all():
        warn(
            f"y has one label only, {names.tolist()[0]!r}, for nodes of type {kind!r}; {int((~known).sum())} labels are "
            "-1, None or NaN, which mean unknown. If -1 is a label, give others, such as 0 and 1",
            DataWarning,
        )
    codes = np.full(len(labels), -1, np.int64)
    codes[known] = np.where(unknown, len(names), where)
    return codes, names


def _sort(kind: type) -> str:
    for name, kinds in (("text", str), ("bytes", bytes), ("number", numbers.Real | np.bool_)):
        if issubclass(kind, kinds):
            return name
    return "other"


def _refuse_numbers(labels: Any, name: str) -> None:
    """Refuse labels that are -1 and 1 only, or hold -100."""
    if labels.dtype.kind == "O":
        known = [label for label in labels.tolist() if not is_unknown(label)]
        if not all(isinstance(label, numbers.Real) and not isinstance(label, bool) for label in known):
            return
        labels = np.array(known)
    if labels.dtype.kind not in "if" or not (labels < 0).any():
        return
    cure = "Give other labels, such as (y + 1) // 2; where -1 does mean unknown, give None, or the labels by `classes`"
    refuse_spins(name, labels, cure)
    refuse_ignored(name, labels, "Give None (or -1, among integers) where the label is unknown")


def _labels(labels: Any, i: int, data: GraphData) -> Any:
    """The labels of one graph in the order of its nodes."""
    here = data.codes[data.offsets[i] : data.offsets[i + 1]]
    if isinstance(labels, Mapping):
        present = list(dict.fromkeys(here.tolist()))
        named = {kind for kind, part in labels.items() if len(part)}
        if not data.typed or named != {data.node_types[code] for code in present}:
            raise ValueError(f"y: graph {i} must have labels for its types of nodes, got {list(labels)}")
        labels = [label for code in present for label in _listed(labels[data.node_types[code]])]
    if isinstance(labels, np.ndarray) and labels.ndim != 1:
        raise ValueError(f"y: graph {i} must have a label for each node in one vector, got an array of shape {labels.shape}")
    if len(labels) != len(here):
        raise ValueError(f"y: graph {i} has {len(here)} nodes and {len(labels)} labels")
    return labels if isinstance(labels, np.ndarray) and labels.ndim == 1 else _objects(labels)


def _objects(labels: Any) -> Any:
    return np.fromiter(_listed(labels), dtype=object, count=len(labels))


def _known(labels: Any) -> Any:
    """Which labels are neither None, NaN nor -1."""
    if labels.dtype.kind != "O":
        return (labels != -1) & (labels == labels) if labels.dtype.kind in "if" else np.ones(len(labels), bool)
    return np.array([not is_unknown(label) and not _minus_one(label) for label in labels.tolist()], dtype=bool)


def _listed(labels: Any) -> list[Any]:
    if hasattr(labels, "to_pylist"):  # arrays of pyarrow
        return list(labels.to_pylist())
    return labels.tolist() if isinstance(labels, np.ndarray) else list(labels)


def _minus_one(label: Any) -> bool:
    return not isinstance(label, str | bytes | bool) and label == -1
