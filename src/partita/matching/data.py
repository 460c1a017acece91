"""Examples of matchings as they come from users: features of edges or of vertices, and who is matched with whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..core.results import FloatArray, IntArray
from .features import AloneFeatures, EdgeFeatures, EdgeMap, NodePairs
from .structure.bipartite import BipartiteMatching
from .structure.general import Matching

BoolArray = NDArray[np.bool_]
#: What to do with vertices that stay alone.
UNMATCHED = ". Where rows or columns may stay alone, set allow_unmatched=True"
#: Keys that an example may have besides its features, with two kinds of vertices and with one.
BESIDE = {True: ("forbidden", "row_features", "column_features"), False: ("forbidden", "vertex_features")}


@dataclass(frozen=True)
class Reading:
    """How examples are read: the parameters of the estimator that say so."""

    bipartite: bool
    allow_unmatched: bool
    n_jobs: int | None


@dataclass(frozen=True)
class Layout:
    """The parameters: the shape of those of edges, and how many those of staying alone are, of rows (or of vertices of one
    kind) and of columns. `kind` is ``"edges"`` or ``"nodes"``, whose features the former belong to."""

    kind: str
    shape: tuple[int, ...]
    alone: tuple[int, int]

    def split(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Parameters of edges, of staying alone of rows, and of columns."""
        first = int(np.prod(self.shape))
        edges, rows, columns = np.split(np.array(theta), [first, first + self.alone[0]])
        return edges.reshape(self.shape), rows, columns

    def describe(self) -> str:
        """For messages."""
        more = f", and {self.alone[0]} and {self.alone[1]} of staying alone" if any(self.alone) else ""
        return f"{self.kind} with {self.shape} features{more}"


@dataclass(frozen=True)
class Batch:
    """Examples on the same graph: their places in the data, the structure, the map from parameters to weights of edges, and
    which edges are forbidden, (examples, edges), if any are. Sides without a vertex have one here, to which all is
    forbidden: `sides` are the numbers of rows and columns as they came."""

    places: list[int]
    structure: BipartiteMatching | Matching
    features: EdgeMap
    forbidden: BoolArray | None
    sides: tuple[int, int] | None = None

    def rows(self, found: IntArray) -> IntArray:
        """Matchings, in the last axis, without vertices that were not there."""
        return found if self.sides is None else found[..., : self.sides[0]]

    def matrices(self, values: FloatArray) -> FloatArray:
        """Numbers of edges as they are given to users."""
        given = self.structure.as_given(values)
        return given if self.sides is None else given[:, : self.sides[0], : self.sides[1]]

    def weights(self, theta: FloatArray) -> FloatArray:
        """Weights of edges, -inf where they are forbidden."""
        W = self.features.forward(theta)
        return W if self.forbidden is None else np.where(self.forbidden, -np.inf, W)


@dataclass(frozen=True)
class _Example:
    key: Any  # examples with the same key are on the same graph
    parts: tuple[FloatArray, ...]
    graph: Any  # the numbers of rows and columns, the number of vertices of a complete graph, or pairs of vertices
    shape: tuple[int, ...]  # of the parameters of edges
    alone: FloatArray  # features of staying alone, (features, vertices)
    counts: tuple[int, int]
    forbidden: BoolArray | None  # in the shape that it came in


def read_examples(X: Any, how: Reading) -> tuple[list[Batch], Layout]:
    """Examples by graph, and the layout of the parameters."""
    if not isinstance(X, Sequence | np.ndarray) or isinstance(X, str) or len(X) == 0:
        raise ValueError("X must be a list of examples, each an array of shape (features, n, m) or a dict")
    examples = [_read(x, i, how) for i, x in enumerate(X)]
    kinds = {example.key[0] for example in examples}
    if len(kinds) > 1:
        raise ValueError(f"X mixes kinds of examples: {sorted(kinds)}")
    for what in ("shape", "counts"):
        found = {getattr(example, what) for example in examples}
        if len(found) > 1:
            of = "features" if what == "shape" else "features of staying alone (of rows, of columns)"
            raise ValueError(f"X has examples with different numbers of {of}: {sorted(found)}")
    groups: dict[Any, list[int]] = {}
    for i, example in enumerate(examples):
        groups.setdefault(example.key, []).append(i)
    batches = []
    for places in groups.values():
        mine = [examples[i] for i in places]
        structure = _structure(mine[0], how, places[0])
        sides = mine[0].graph if how.bipartite and 0 in mine[0].graph else None
        batches.append(Batch(places, structure, _features(mine, structure), _forbidden(mine, structure), sides))
    return batches, Layout(kinds.pop(), examples[0].shape, examples[0].counts)


def _array(value: Any, name: str, i: int, ndim: int, ignored: BoolArray | None = None) -> FloatArray:
    """Finite numbers; those of forbidden edges, in the last axes, do not matter."""
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"X: {name} of example {i} must be an array of numbers with {ndim} axes") from None
    if array.ndim != ndim:
        meaning = "a matrix for each feature: (features, n, m)" if ndim == 3 else "a row of features for each"
        one = f"; one feature alone is x[None], of shape {(1, *array.shape)}" if ndim == 3 and array.ndim == 2 else ""
        raise ValueError(f"X: {name} of example {i} must have {ndim} axes, {meaning}; got shape {array.shape}{one}")
    if ignored is not None and array.shape[1:] == ignored.shape:
        array = np.where(ignored, 0.0, array)
    if not np.isfinite(array).all():
        raise ValueError(f"X: {name} of example {i} must not hold NaN or inf (pairs that cannot be are 'forbidden')")
    return array


def _mask(x: Mapping[str, Any], i: int, shape: tuple[int, ...]) -> BoolArray | None:
    """Which edges are forbidden."""
    if "forbidden" not in x:
        return None
    mask = np.asarray(x["forbidden"])
    if mask.dtype != bool or mask.shape != shape:
        raise ValueError(
            f"X: forbidden of example {i} must be True and False of shape {shape}; got {mask.shape} of {mask.dtype}"
        )
    return mask if mask.any() else None


def _read(x: Any, i: int, how: Reading) -> _Example:
    given = x if isinstance(x, Mapping) else {"features": x}
    keys = set(given) - set(BESIDE[how.bipartite]) - {"n_vertices"}
    if keys == {"features"} and "n_vertices" not in given:
        return _read_matrices(x, given, i, how)
    if keys == {"rows", "columns"} and how.bipartite and "n_vertices" not in given:
        L, R = _array(x["rows"], "rows", i, 2), _array(x["columns"], "columns", i, 2)
        n, m = len(L), len(R)
        alone, mask = _alone(given, i, how, n, m), _mask(given, i, (n, m))
        L, R, mask = _occupied(L, (n,), i, how), _occupied(R, (m,), i, how), _occupied_mask(mask, n, m)
        return _Example(("nodes", n, m), (L, R), (n, m), (L.shape[1], R.shape[1]), *alone, mask)
    if keys == {"edges", "features"} and not how.bipartite:
        F = _array(x["features"], "features", i, 2)
        graph = _graph(i, x["edges"], perfect=False, n_vertices=x.get("n_vertices"))
        if len(F) != graph.n_edges:
            raise ValueError(f"X: example {i} has {graph.n_edges} edges and {len(F)} rows of features")
        key = ("edges", graph.ends.tobytes(), graph.n_vertices)
        alone = _alone(given, i, how, graph.n_vertices, 0)
        return _Example(key, (F,), graph.ends, (F.shape[1],), *alone, _mask(given, i, (len(F),)))
    if keys == {"nodes"} and not how.bipartite and "n_vertices" not in given:
        N = _array(x["nodes"], "nodes", i, 2)
        n, p = N.shape
        return _Example(("nodes", n), (N, N), n, (p, p), *_alone(given, i, how, n, 0), _mask(given, i, (n, n)))
    wanted = "'features', or 'rows' and 'columns'" if how.bipartite else "'features', 'nodes', or 'edges' and 'features'"
    beside = ", ".join(f"'{key}'" for key in BESIDE[how.bipartite])
    raise ValueError(
        f"X: example {i} must be an array (features, n, {'m' if how.bipartite else 'n'}) or a dict with {wanted}, and "
        f"perhaps {beside}; got keys {sorted(map(str, given))}"
    )


def _read_matrices(x: Any, given: Mapping[str, Any], i: int, how: Reading) -> _Example:
    """Features of all pairs."""
    name = "features" if isinstance(x, Mapping) else "the array"
    shape = np.shape(given["features"])[1:] if np.ndim(given["features"]) == 3 else ()
    mask = _mask(given, i, shape) if shape else None
    F = _array(given["features"], name, i, 3, mask)
    n, m = F.shape[1:]
    if F.size == 0 and (len(F) == 0 or not how.bipartite):
        raise ValueError(f"X: example {i} must have shape (features, n, m), none of them zero; got {F.shape}")
    if how.bipartite:
        alone = _alone(given, i, how, n, m)
        F, mask = _occupied(F, (n, m), i, how), _occupied_mask(mask, n, m)
        return _Example(("edges", n, m), (F,), (n, m), (F.shape[0],), *alone, mask)
    if n != m:
        raise ValueError(f"X: example {i} must have shape (features, n, n), got {F.shape} (or set bipartite=True)")
    if not np.allclose(F, F.transpose(0, 2, 1), rtol=1e-9, atol=1e-9):
        raise ValueError(f"X: example {i} must have symmetric matrices of features (or set bipartite=True)")
    return _Example(("edges", n), (F,), n, (F.shape[0],), *_alone(given, i, how, n, 0), mask)


def _occupied(array: FloatArray, sides: tuple[int, ...], i: int, how: Reading) -> FloatArray:
    """The array with a vertex, of zeros, on sides that have none; `sides` are its last axes, or its first."""
    if 0 not in sides:
        return array
    if not how.allow_unmatched:
        raise ValueError(
            f"X: example {i} has no rows, or no columns, and nobody to match: leave it out, or set allow_unmatched=True"
        )
    return np.zeros((len(array), *np.maximum(sides, 1))) if len(sides) == 2 else np.zeros((1, array.shape[1]))


def _occupied_mask(mask: BoolArray | None, n: int, m: int) -> BoolArray | None:
    return mask if n and m else np.ones((max(n, 1), max(m, 1)), bool)


def _alone(x: Mapping[str, Any], i: int, how: Reading, n: int, m: int) -> tuple[FloatArray, tuple[int, int]]:
    """Features of staying alone, (features, vertices), and how many of them are of rows and of columns.

    With two sides and none given, an intercept of rows: where they are alone, as many columns are, but for a constant.
    """
    names = ("row_features", "column_features") if how.bipartite else ("vertex_features", "")
    given = [name for name in names if name in x]
    if given and not how.allow_unmatched:
        raise ValueError(f"X: {given[0]} of example {i} are features of staying alone: set allow_unmatched=True")
    if not given:
        count = int(how.allow_unmatched and how.bipartite)
        return (np.arange(_vertices(n, m) if how.bipartite else n) < n).astype(np.float64)[None][:count], (count, 0)
    parts = []
    for name, size in zip(names, (n, m), strict=True):
        part = _array(x[name], name, i, 2) if name in x else np.zeros((0, size))
        if part.shape[1] != size:
            raise ValueError(f"X: {name} of example {i} must have shape (features, {size}), got {part.shape}")
        parts.append(part)
    vertices, left = (_vertices(n, m), max(n, 1)) if how.bipartite else (n, n)
    out = np.zeros((len(parts[0]) + len(parts[1]), vertices))
    out[: len(parts[0]), :n], out[len(parts[0]) :, left : left + m] = parts
    return out, (len(parts[0]), len(parts[1]))


def _vertices(n: int, m: int) -> int:
    """How many a structure with two sides has: sides without one have one."""
    return max(n, 1) + max(m, 1)


def _structure(example: _Example, how: Reading, i: int) -> BipartiteMatching | Matching:
    if how.bipartite:
        n, m = example.graph
        return BipartiteMatching(max(n, 1), max(m, 1), how.allow_unmatched, how.n_jobs)
    count = example.key[2] if np.ndim(example.graph) else None
    return _graph(i, example.graph, perfect=not how.allow_unmatched, n_vertices=count, n_jobs=how.n_jobs)


def _graph(i: int, *args: Any, **options: Any) -> Matching:
    """A structure, with the number of the example in what it may complain of."""
    try:
        return Matching(*args, **options)
    except ValueError as error:
        cure = UNMATCHED if "even number" in str(error) else ""
        raise type(error)(f"X: example {i}: {error}{cure}") from None


def _features(examples: list[_Example], structure: BipartiteMatching | Matching) -> EdgeMap:
    edges = _edge_features(examples, structure)
    if not len(examples[0].alone):
        return edges
    return AloneFeatures(edges, np.array([example.alone for example in examples]), structure.ends)


def _edge_features(examples: list[_Example], structure: BipartiteMatching | Matching) -> EdgeMap:
    first = examples[0]
    if first.key[0] == "nodes":
        rows, columns = (np.array([example.parts[k] for example in examples]) for k in range(2))
        return NodePairs(rows, columns, structure.ends if isinstance(structure, Matching) else None)
    if first.parts[0].ndim == 2:
        return EdgeFeatures(np.array([example.parts[0].T for example in examples]).transpose(1, 0, 2))
    stacked = np.array([example.parts[0] for example in examples]).transpose(1, 0, 2, 3)
    if isinstance(structure, Matching):
        return EdgeFeatures(stacked[:, :, structure.ends[:, 0], structure.ends[:, 1]])
    return EdgeFeatures(stacked.reshape(*stacked.shape[:2], -1))


def _forbidden(examples: list[_Example], structure: BipartiteMatching | Matching) -> BoolArray | None:
    """The forbidden edges of all examples, or None."""
    if all(example.forbidden is None for example in examples):
        return None
    out = np.zeros((len(examples), structure.n_edges), bool)
    i, j = structure.ends.T - [[0], [structure.left]]
    for row, example in zip(out, examples, strict=True):
        mask = example.forbidden
        if mask is not None and mask.ndim == 2:
            row[:] = mask[i, j] if structure.left else mask[i, j] | mask[j, i]
        elif mask is not None:
            row[:] = mask
    return out


def read_matchings(y: Any, batches: list[Batch]) -> list[IntArray]:
    """For each batch, rows of columns or partners; edges are read too, as lists of pairs."""
    count = sum(len(batch.places) for batch in batches)
    if not isinstance(y, Sequence | np.ndarray) or len(y) != count:
        raise ValueError(f"y must have a matching for each of {count} examples")
    out = []
    for batch in batches:
        rows = np.array([_row(y[i], batch.structure, i) for i in batch.places], dtype=np.int64)
        if batch.forbidden is not None:
            _check_allowed(batch, rows)
        out.append(rows)
    return out


def _check_allowed(batch: Batch, rows: IntArray) -> None:
    wrong = (batch.structure.indicators(rows) > 0.0) & np.asarray(batch.forbidden)
    if wrong.any():
        b, e = np.argwhere(wrong)[0].tolist()
        i, j = batch.structure.ends[e].tolist()
        raise ValueError(
            f"y: example {batch.places[b]} matches {i} with {j - batch.structure.left}, which 'forbidden' of X rules out"
        )


def _row(value: Any, structure: BipartiteMatching | Matching, i: int) -> IntArray:
    found = np.asarray(value)
    try:
        if found.size == 0:
            found = np.zeros((0, 2), np.int64)
        if found.ndim == 2 and found.shape[1] == 2:
            found = _from_pairs(found, structure)
        if isinstance(structure, BipartiteMatching):
            return np.asarray(structure.columns(found)[0])
        partners = structure.partners(found)
        structure.score(np.zeros(structure.n_edges), partners)  # refuses edges that the graph has not
        return np.asarray(partners[0])
    except ValueError as error:
        alone = not structure.may_stay_alone.all() and found.dtype.kind in "if" and (found == -1).any()
        cure = UNMATCHED if alone else ""
        raise ValueError(f"y: example {i}: {error}{cure}") from None


def _from_pairs(pairs: Any, structure: BipartiteMatching | Matching) -> IntArray:
    n = structure.left or structure.n_vertices
    sizes = (n, structure.n_vertices - structure.left)
    if pairs.dtype.kind not in "iu" or pairs.min(initial=0) < 0 or (pairs >= sizes).any():
        limits = f"from 0 to {n - 1}" if sizes[0] == sizes[1] else f"a row below {sizes[0]} and a column below {sizes[1]}"
        raise ValueError(f"pairs must be integers, {limits}")
    out = np.full(n, -1, np.int64)
    if structure.left:
        if len(np.unique(pairs[:, 0])) < len(pairs):
            raise ValueError("pairs must be a matching: a row is in two of them")
        out[pairs[:, 0]] = pairs[:, 1]
        return out
    if len(np.unique(pairs)) < pairs.size:
        raise ValueError("pairs must be a matching: a vertex is in two of them")
    out[pairs[:, 0]], out[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return out
