"""Examples of matchings as they come from users: features of edges or of vertices, or attributes of vertices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.results import FloatArray
from ..features import AloneFeatures, Attribute, EdgeFeatures, EdgeMap, NodePairs, Side, attribute_pairs, read_attributes
from ..structure.b_matching import BMatching
from ..structure.bipartite import BipartiteMatching
from ..structure.general import Matching
from .batches import UNMATCHED, Batch, BoolArray, Layout, Reading

#: Keys that an example may have besides its features, with two kinds of vertices and with one.
BESIDE = {True: ("forbidden", "row_features", "column_features"), False: ("forbidden", "vertex_features")}


@dataclass(frozen=True)
class _Example:
    key: Any  # examples with the same key are on the same graph
    parts: tuple[Any, ...]  # features, or sides with attributes
    graph: Any  # the numbers of rows and columns, the number of vertices of a complete graph, or pairs of vertices
    shape: tuple[int, ...]  # of the parameters of edges
    alone: FloatArray  # features of staying alone, (features, vertices)
    counts: tuple[int, int]
    forbidden: BoolArray | None  # in the shape that it came in


def read_examples(X: Any, how: Reading) -> tuple[list[Batch], Layout]:
    """Examples by graph, and the layout of the parameters."""
    if not isinstance(X, Sequence | np.ndarray) or isinstance(X, str) or len(X) == 0:
        raise ValueError("X must be a list of examples, each an array of shape (features, n, m) or a dict")
    attributes, sides = _attributes(X, how)
    examples = [_read(x, i, how, sides[i]) for i, x in enumerate(X)]
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
        empty = mine[0].graph if how.bipartite and 0 in mine[0].graph else None
        maps = _features(mine, structure, attributes)
        batches.append(Batch(places, structure, maps, _forbidden(mine, structure), empty))
    shape = examples[0].shape if attributes is None else (batches[0].features.size - sum(examples[0].counts),)
    return batches, Layout(kinds.pop(), shape, examples[0].counts, attributes or ())


def _attributes(X: Any, how: Reading) -> tuple[tuple[Attribute, ...] | None, Sequence[tuple[Side, ...] | None]]:
    """The attributes of vertices, if examples have any, and the sides of each example."""
    if not any(isinstance(x, Mapping) and "attributes" in x for x in X):
        return None, [None] * len(X)
    tables = [
        {key: value for key, value in x.items() if key not in BESIDE[how.bipartite]} if isinstance(x, Mapping) else x
        for x in X
    ]
    return read_attributes(tables, how.bipartite, how.attributes)


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


def _mask(x: Any, i: int, shape: tuple[int, ...], how: Reading) -> BoolArray | None:
    """Which edges are forbidden, by the example or by the estimator."""
    masks = []
    if isinstance(x, Mapping) and "forbidden" in x:
        masks.append(_checked_mask(x["forbidden"], f"X: forbidden of example {i}", shape))
    if callable(how.forbidden):
        try:
            found = how.forbidden(x)
        except Exception as error:
            raise ValueError(f"forbidden failed for example {i} of X: {type(error).__name__}: {error}") from error
        if found is not None:
            masks.append(_checked_mask(found, f"what forbidden returns for example {i} of X", shape, "None, or "))
    elif how.forbidden is not None:
        what = f"forbidden (a function, where sizes differ), for example {i} of X,"
        masks.append(_checked_mask(how.forbidden, what, shape))
    both = np.logical_or.reduce(masks) if masks else np.zeros(shape, bool)
    return both if both.any() else None


def _checked_mask(value: Any, what: str, shape: tuple[int, ...], either: str = "") -> BoolArray:
    mask = np.asarray(value)
    if mask.dtype != bool or mask.shape != shape:
        raise ValueError(f"{what} must be {either}True and False of shape {shape}; got {mask.shape} of {mask.dtype}")
    return mask


def _read(x: Any, i: int, how: Reading, sides: tuple[Side, ...] | None) -> _Example:
    given = x if isinstance(x, Mapping) else {"features": x}
    keys = set(given) - set(BESIDE[how.bipartite]) - {"n_vertices"}
    if sides is not None:
        sizes = [side.levels.shape[1] for side in sides]
        n, m = sizes[0], sizes[-1]
        alone, mask = _alone(given, i, how, n, m if how.bipartite else 0), _mask(x, i, (n, m), how)
        return _Example(("attributes", *sizes), sides, tuple(sizes) if how.bipartite else n, (), *alone, mask)
    if keys == {"features"} and "n_vertices" not in given:
        return _read_matrices(x, given, i, how)
    if keys == {"rows", "columns"} and how.bipartite and "n_vertices" not in given:
        L, R = _array(x["rows"], "rows", i, 2), _array(x["columns"], "columns", i, 2)
        n, m = len(L), len(R)
        alone, mask = _alone(given, i, how, n, m), _mask(x, i, (n, m), how)
        L, R, mask = _occupied(L, (n,), i, how), _occupied(R, (m,), i, how), _occupied_mask(mask, n, m)
        return _Example(("nodes", n, m), (L, R), (n, m), (L.shape[1], R.shape[1]), *alone, mask)
    if keys == {"edges", "features"} and not how.bipartite:
        F = _array(x["features"], "features", i, 2)
        graph = _graph(i, x["edges"], perfect=False, n_vertices=x.get("n_vertices"))
        if len(F) != graph.n_edges:
            raise ValueError(f"X: example {i} has {graph.n_edges} edges and {len(F)} rows of features")
        key = ("edges", graph.ends.tobytes(), graph.n_vertices)
        alone = _alone(given, i, how, graph.n_vertices, 0)
        return _Example(key, (F,), graph.ends, (F.shape[1],), *alone, _mask(x, i, (len(F),), how))
    if keys == {"nodes"} and not how.bipartite and "n_vertices" not in given:
        N = _array(x["nodes"], "nodes", i, 2)
        n, p = N.shape
        return _Example(("nodes", n), (N, N), n, (p, p), *_alone(given, i, how, n, 0), _mask(x, i, (n, n), how))
    wanted = (
        "'features', 'attributes', or 'rows' and 'columns'"
        if how.bipartite
        else "'features', 'attributes', 'nodes', or 'edges' and 'features'"
    )
    beside = ", ".join(f"'{key}'" for key in BESIDE[how.bipartite])
    raise ValueError(
        f"X: example {i} must be an array (features, n, {'m' if how.bipartite else 'n'}) or a dict with {wanted}, and "
        f"perhaps {beside}; got keys {sorted(map(str, given))}"
    )


def _read_matrices(x: Any, given: Mapping[str, Any], i: int, how: Reading) -> _Example:
    """Features of all pairs."""
    name = "features" if isinstance(x, Mapping) else "the array"
    shape = np.shape(given["features"])[1:] if np.ndim(given["features"]) == 3 else ()
    mask = _mask(x, i, shape, how) if shape else None
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


def _structure(example: _Example, how: Reading, i: int) -> BipartiteMatching | Matching | BMatching:
    count = example.key[2] if not how.bipartite and np.ndim(example.graph) else None
    if how.b not in (1, (1, 1)):
        return _sets(i, example.graph, how, count)
    if how.bipartite:
        n, m = example.graph
        return BipartiteMatching(max(n, 1), max(m, 1), how.allow_unmatched, how.n_jobs)
    return _graph(i, example.graph, perfect=not how.allow_unmatched, n_vertices=count, n_jobs=how.n_jobs)


def _sets(i: int, graph: Any, how: Reading, count: int | None) -> BMatching:
    """b-matchings; vertices that have fewer edges than b can only be where vertices may have less."""
    sides = tuple(max(size, 1) for size in graph) if how.bipartite else graph
    try:
        return BMatching(sides, how.b, not how.allow_unmatched, count, how.n_jobs)
    except ValueError as error:
        said = str(error).replace("take perfect=False", "perfect=False").replace("perfect=False", "set allow_unmatched=True")
        raise type(error)(f"X: example {i}: {said}") from None


def _graph(i: int, *args: Any, **options: Any) -> Matching:
    """A structure, with the number of the example in what it may complain of."""
    try:
        return Matching(*args, **options)
    except ValueError as error:
        cure = UNMATCHED if "even number" in str(error) else ""
        raise type(error)(f"X: example {i}: {error}{cure}") from None


def _features(examples: list[_Example], structure: Any, attributes: tuple[Attribute, ...] | None) -> EdgeMap:
    if attributes is None:
        edges = _edge_features(examples, structure)
    else:
        edges = attribute_pairs(attributes, [example.parts for example in examples], structure)
    if not len(examples[0].alone):
        return edges
    return AloneFeatures(edges, np.array([example.alone for example in examples]), structure.ends)


def _edge_features(examples: list[_Example], structure: Any) -> EdgeMap:
    first = examples[0]
    if first.key[0] == "nodes":
        rows, columns = (np.array([example.parts[k] for example in examples]) for k in range(2))
        return NodePairs(rows, columns, None if structure.left else structure.ends)
    if first.parts[0].ndim == 2:
        return EdgeFeatures(np.array([example.parts[0].T for example in examples]).transpose(1, 0, 2))
    stacked = np.array([example.parts[0] for example in examples]).transpose(1, 0, 2, 3)
    if not structure.left:
        return EdgeFeatures(stacked[:, :, structure.ends[:, 0], structure.ends[:, 1]])
    return EdgeFeatures(stacked.reshape(*stacked.shape[:2], -1))


def _forbidden(examples: list[_Example], structure: Any) -> BoolArray | None:
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
