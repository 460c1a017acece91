"""Graphs with features, as users give them, read into one factor graph with typed factors."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.arrays.sparse import sound_csr
from ...core.errors import DataWarning
from ...core.results import FloatArray, IntArray
from ...core.warn import warn
from ...estimators.data import refuse_times
from ...estimators.named_columns import column_names, match_columns, take_columns
from ..structure.factor_graph import FactorGraph
from .edges import merge_edges

#: The type of nodes that have none, and the names of factors of single nodes and of edges that have none.
NODE, EDGE = "node", "edge"
FIELDS = ("nodes", "edges", "edge_features", "factors", "factor_features")

Kind = tuple[Hashable, ...]  # the name of a factor, and the types of its nodes


@dataclass
class GraphData:
    """Many graphs read: nodes numbered through, factors by kind.

    Attributes
    ----------
    node_types : list
        Types of nodes, in the order in which they first occur.
    codes : int array
        The type of every node.
    offsets : int array
        Nodes of graph i are ``offsets[i]:offsets[i + 1]``.
    factors : dict
        For every kind, the nodes of its factors (a row each) and their features (None: one constant).
    typed : bool
        Whether nodes came by type.
    directed : list
        Names of edges of which some come in both directions, as different edges.
    columns : dict
        Names of features, where these came as data frames: by type of node (a pair with `NODE`), and by name of factor.
    """

    node_types: list[Hashable]
    codes: IntArray
    offsets: IntArray
    factors: dict[Kind, tuple[IntArray, Any]]
    typed: bool
    directed: list[Hashable] = field(default_factory=list)
    columns: dict[Any, list[Hashable]] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def graph(self, counts: Mapping[Hashable, int], kinds: Sequence[Kind], n_jobs: int | None) -> FactorGraph:
        """The factor graph, an example for each graph, with factors in the order of `kinds`."""
        sizes = np.array([counts[t] for t in self.node_types], dtype=np.int64)
        scopes = [self.factors[kind][0] for kind in kinds if kind in self.factors]
        examples = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        return FactorGraph(sizes[self.codes], scopes, examples=examples, n_jobs=n_jobs)

    def split(self, values: Mapping[Hashable, Any]) -> list[Any]:
        """Rows of arrays by type of node, cut into graphs: arrays, or dicts of arrays if nodes are typed."""
        out: list[Any] = [{} for _ in range(len(self))]
        example = np.repeat(np.arange(len(self)), np.diff(self.offsets))
        for code, kind in enumerate(self.node_types):
            here = example[self.codes == code]
            for i, part in enumerate(np.split(values[kind], np.searchsorted(here, np.arange(1, len(self))))):
                if len(part):
                    out[i][kind] = part
        return out if self.typed else [next(iter(parts.values())) for parts in out]


def read_graphs(
    X: Any,
    fit_intercept: bool,
    symmetric: bool = False,
    directed: Collection[Hashable] | None = None,
    merge: bool = True,
    columns: Mapping[Any, Sequence[Hashable]] | None = None,
) -> GraphData:
    """Read a list of graphs (see `GraphCRF`); `fit_intercept` adds a constant to features.

    With `merge`, an edge that is given twice is one (see `merge_edges`); `directed` are the names of edges of which both
    directions were kept in training (None in training). `columns` are the names that columns of features had there (None in
    training): data frames are ordered by them.
    """
    X = list(X) if isinstance(X, np.ndarray) and X.dtype == object else X
    if not isinstance(X, Sequence) or isinstance(X, str | bytes) or not len(X):
        raise ValueError("X must be a list of graphs, at least one: (node_features, edges) or dicts")
    node_types: dict[Hashable, int] = {}
    codes: list[IntArray] = []
    offsets = [0]
    parts: dict[Kind, list[tuple[IntArray, Any]]] = {}
    sets: dict[Any, list[tuple[int, IntArray, Any]]] = {}  # by field and name: graph, nodes and features
    forms, named = set(), _Columns(columns)
    for i, item in enumerate(X):
        graph = _as_dict(item, i)
        typed = isinstance(graph["nodes"], Mapping)
        forms.add(typed)
        nodes = graph["nodes"] if typed else {NODE: graph["nodes"]}
        starts, first = {}, offsets[-1]
        for kind, features in nodes.items():
            F = _matrix(named.ordered((NODE, kind), features), f"node features of graph {i}")
            code = node_types.setdefault(kind, len(node_types))
            starts[kind] = (first, F.shape[0])
            parts.setdefault((NODE, kind), []).append((first + np.arange(F.shape[0])[:, None], F))
            codes.append(np.full(F.shape[0], code, np.int64))
            first += F.shape[0]
        if first == offsets[-1]:
            raise ValueError(f"X: graph {i} has no nodes")
        for role, name, scopes, features in _factors(graph, i):
            local = isinstance(name, tuple)
            S = _scopes(scopes, name, i, starts if local else None, offsets[-1], first - offsets[-1])
            F = None
            if features is not None:
                F = _matrix(named.ordered(name, features), f"features of {name!r} in graph {i}", len(S))
            sets.setdefault((role, name), []).append((i, S, F))
        offsets.append(first)
    if len(forms) > 1:
        raise ValueError("X must have nodes by type (dicts) in all graphs or in none")
    named.warn()
    kept, both = _each_once(sets, symmetric, directed) if merge else (sets, [])
    names, all_codes = list(node_types), np.concatenate(codes)
    for (_, name), pieces in kept.items():
        for _, S, F in pieces:
            for row, members in _by_types(all_codes[S]):
                key = (name, *(names[code] for code in row))
                parts.setdefault(key, []).append((S[members], None if F is None else F[members]))
    factors = {kind: _stack(kind, pieces, fit_intercept) for kind, pieces in parts.items()}
    return GraphData(names, all_codes, np.array(offsets), factors, forms == {True}, both, named.names)


def _each_once(
    sets: Mapping[Any, list[tuple[int, IntArray, Any]]], symmetric: bool, directed: Collection[Hashable] | None
) -> tuple[dict[Any, list[tuple[int, IntArray, Any]]], list[Hashable]]:
    """Factors with each edge once, and the names of edges of which both directions stay (see `merge_edges`)."""
    out, both = dict(sets), []
    for (role, name), pieces in sets.items():
        if role != "edge" or any(S.shape[1] != 2 for _, S, _ in pieces):
            continue
        rows, kept = merge_edges(name, pieces, symmetric, None if directed is None else name in directed)
        both += [name] if kept else []
        out[role, name] = [(i, S[r], None if F is None else F[r]) for (i, S, F), r in zip(pieces, rows, strict=True)]
        if directed is None and not symmetric:
            _warn_merged(name, sum(len(S) for _, S, _ in pieces) - sum(len(S) for _, S, _ in out[role, name]))
    return out, both


def _warn_merged(name: Any, count: int) -> None:
    if count:
        warn(
            f"X: {count} edges of {name!r} are there already, most in the other direction: each is taken once, as first "
            "given. If the direction of an edge does not matter, set symmetric=True",
            DataWarning,
        )


def _as_dict(item: Any, i: int) -> dict[str, Any]:
    if isinstance(item, Mapping):
        unknown = [key for key in item if key not in FIELDS]
        if unknown or "nodes" not in item:
            raise ValueError(f"X: graph {i} must have 'nodes', and may have {FIELDS[1:]}; got {list(item)}")
        return {**dict.fromkeys(FIELDS), **item}
    if isinstance(item, tuple | list) and 1 <= len(item) <= 3:
        return {**dict.fromkeys(FIELDS), **dict(zip(FIELDS, item, strict=False))}
    raise ValueError(
        f"X: graph {i} must be (node_features, edges), (node_features, edges, edge_features) or a dict; got "
        f"{type(item).__name__}"
    )


def _factors(graph: Mapping[str, Any], i: int) -> list[tuple[str, Any, Any, Any]]:
    """Whether they are edges, name, nodes and features of every set of factors of a graph."""
    found = []
    for role in ("edge", "factor"):
        scopes, features = graph[f"{role}s"], graph[f"{role}_features"]
        if scopes is None:
            scopes = {}
        elif not isinstance(scopes, Mapping):
            if role == "factor":
                raise ValueError(f"X: factors of graph {i} must be a dict of names and arrays of nodes")
            scopes, features = {EDGE: scopes}, None if features is None else {EDGE: features}
        features = {} if features is None else features
        if not isinstance(features, Mapping) or any(name not in scopes for name in features):
            raise ValueError(f"X: {role}_features of graph {i} must be given for {list(scopes)}")
        found += [(role, name, nodes, features.get(name)) for name, nodes in scopes.items()]
    names = [name for _, name, _, _ in found]
    if NODE in names or len(set(names)) < len(names):
        raise ValueError(f"X: factors of graph {i} must have different names, none of them {NODE!r}; got {names}")
    return found


def _scopes(scopes: Any, name: Any, i: int, starts: Any, first: int, count: int) -> IntArray:
    """Nodes of factors, numbered through; those of a name that is a tuple of types are numbered within their types."""
    S = np.asarray(scopes)
    if S.size == 0:
        return np.zeros((0, S.shape[1] if S.ndim == 2 else 2), np.int64)
    if S.ndim != 2 or S.dtype.kind not in "iu" or (name == EDGE and S.shape[1] != 2):
        flat = S.ndim == 2 and len(S) == 2 and S.dtype.kind in "iu"
        raise ValueError(
            f"X: {name!r} of graph {i} must be an integer array, a row of nodes for each; got {S.shape} of {S.dtype}"
            f"{' (two rows: give its transpose)' if flat else ''}"
        )
    if starts is None:
        low, sizes = np.full(S.shape[1], first), np.full(S.shape[1], count)
    elif len(name) != S.shape[1] or any(kind not in starts for kind in name):
        raise ValueError(f"X: {name!r} of graph {i} must name the types of {S.shape[1]} nodes, of {list(starts)}")
    else:
        low, sizes = np.array([starts[kind] for kind in name]).T
    if (S < 0).any() or (sizes <= S).any():
        raise ValueError(
            f"X: {name!r} of graph {i} must have nodes below {sizes.tolist()} and from 0 up, without padding; got "
            f"{S.min(0).tolist()} to {S.max(0).tolist()}"
        )
    S = np.asarray(S + low, dtype=np.int64)
    loops = (np.diff(np.sort(S, axis=1), axis=1) == 0).any(1)
    if loops.any():
        k = int(np.argmax(loops))
        raise ValueError(
            f"X: {name!r} of graph {i} must join different nodes, but row {k} has {np.asarray(scopes)[k].tolist()}: leave "
            "it out (nodes have scores of their own)"
        )
    return S


def _by_types(rows: IntArray) -> list[tuple[list[int], IntArray]]:
    if not len(rows):
        return []
    kinds, inverse = np.unique(rows, axis=0, return_inverse=True)
    return [(kind.tolist(), np.flatnonzero(inverse.ravel() == k)) for k, kind in enumerate(kinds)]


def _matrix(features: Any, what: str, rows: int | None = None) -> Any:
    refuse_times(f"X ({what})", features)
    F = sound_csr(f"X: {what}", features) if sp.issparse(features) else np.asarray(features)
    if F.ndim != 2 or F.dtype.kind not in "fiub" or (rows is not None and F.shape[0] != rows):
        wanted = "a row for each" if rows is None else f"{rows} rows"
        raise ValueError(f"X: {what} must be a matrix of numbers with {wanted}, got shape {F.shape} of {F.dtype}")
    F = F.astype(np.float64)
    if not np.isfinite(F.data if sp.issparse(F) else F).all():
        raise ValueError(f"X: {what} must be finite")
    return F


class _Columns:
    """Names of the columns of features, by what they are features of; `known` are those of training, None in training."""

    def __init__(self, known: Mapping[Any, Sequence[Hashable]] | None) -> None:
        self.names: dict[Any, list[Hashable]] = {key: list(names) for key, names in (known or {}).items()}
        self._training, self._unnamed = known is None, False

    def ordered(self, key: Any, features: Any) -> Any:
        """Features with their columns in the order in which they first came, without those that are ignored."""
        names = column_names(features)
        if names is None:
            self._unnamed |= not self._training and key in self.names
            return features
        if self._training:
            self.names.setdefault(key, names)
        if key not in self.names or self.names[key] == names:
            return features
        return take_columns(features, match_columns(self.names[key], names, "the model"))

    def warn(self) -> None:
        if self._unnamed:
            warn(
                "X does not have names of features, but GraphCRF was fitted with names: columns are taken as they come",
                UserWarning,
            )


def _stack(kind: Kind, pieces: list[tuple[IntArray, Any]], fit_intercept: bool) -> tuple[IntArray, Any]:
    scopes = np.concatenate([S for S, _ in pieces])
    widths = {None if F is None else F.shape[1] for _, F in pieces}
    if len(widths) > 1:
        raise ValueError(f"X: factors {kind} must have the same number of features in all graphs, got {widths}")
    if widths == {None}:
        return scopes, None
    matrices: list[Any] = [F for _, F in pieces]
    ones = np.ones((len(scopes), 1))
    if any(sp.issparse(F) for F in matrices):
        F = sp.vstack([sp.csr_matrix(F) for F in matrices], format="csr")
        return scopes, sp.hstack([F, ones], format="csr") if fit_intercept else F
    F = np.concatenate(matrices)
    return scopes, np.hstack([F, ones]) if fit_intercept else F


def base_tables(tables: Mapping[Any, Any] | None, kinds: Sequence[Kind], classes: Mapping[Hashable, Any]) -> list[Any]:
    """For every kind of factor, the table that is added to its potentials (None for none)."""
    given = dict(tables or {})
    out: list[Any] = []
    used = set()
    for kind in kinds:
        key = kind if kind in given else kind[0]
        if key not in given:
            out.append(None)
            continue
        used.add(key)
        table = np.asarray(given[key], dtype=np.float64)
        shape = tuple(len(classes[t]) for t in kind[1:])
        if table.shape != shape or not (table < np.inf).all():
            raise ValueError(
                f"tables[{key!r}] must have shape {shape} for factors {kind}, without NaN or +inf (-inf forbids); got "
                f"shape {table.shape}"
            )
        out.append(table.ravel())
    if set(given) - used:
        raise ValueError(f"tables has {min(map(repr, set(given) - used))}, but the factors of X are {list(kinds)}")
    return out


def flat_base(graph: FactorGraph, counts: Sequence[int], tables: Sequence[Any]) -> FloatArray | None:
    """Tables repeated for every factor of each kind, in order."""
    if all(table is None for table in tables):
        return None
    out, first = np.zeros(graph.size), 0
    for count, table in zip(counts, tables, strict=True):
        lo, hi = graph.offsets[first], graph.offsets[first + count]
        if table is not None:
            out[lo:hi] = np.tile(table, count)
        first += count
    return out
