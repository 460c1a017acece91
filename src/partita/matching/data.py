"""Examples of matchings as they come from users: features of edges or of vertices, and who is matched with whom."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.results import FloatArray, IntArray
from .features import EdgeFeatures, EdgeMap, NodePairs
from .structure.bipartite import BipartiteMatching
from .structure.general import Matching

#: What to do with sides of different sizes, and with vertices that stay alone.
UNEQUAL = (
    ". For sides of different sizes, or rows without a partner, set bipartite=False and perfect=False, and give 'edges' "
    "between the two sides with their 'features'"
)


@dataclass(frozen=True)
class Batch:
    """Examples on the same graph: their places in the data, the structure, the map from parameters to weights of edges."""

    places: list[int]
    structure: BipartiteMatching | Matching
    features: EdgeMap


@dataclass(frozen=True)
class _Example:
    key: Any  # examples with the same key are on the same graph
    parts: tuple[FloatArray, ...]
    graph: Any  # the number of vertices of a complete graph, or pairs of vertices
    width: tuple[int, ...]  # of the parameters


def read_examples(X: Any, bipartite: bool, perfect: bool, n_jobs: int | None) -> tuple[list[Batch], tuple[int, ...], str]:
    """Examples by graph, the shape of the parameters, and the kind of features: ``"edges"`` or ``"nodes"``."""
    if not isinstance(X, Sequence | np.ndarray) or isinstance(X, str) or len(X) == 0:
        raise ValueError("X must be a list of examples, each an array of shape (features, n, n) or a dict")
    examples = [_read(x, i, bipartite) for i, x in enumerate(X)]
    kinds = {example.key[0] for example in examples}
    if len(kinds) > 1:
        raise ValueError(f"X mixes kinds of examples: {sorted(kinds)}")
    widths = {example.width for example in examples}
    if len(widths) > 1:
        raise ValueError(f"X has examples with different numbers of features: {sorted(widths)}")
    groups: dict[Any, list[int]] = {}
    for i, example in enumerate(examples):
        groups.setdefault(example.key, []).append(i)
    batches = []
    for places in groups.values():
        mine = [examples[i] for i in places]
        structure = _structure(mine[0], bipartite, perfect, n_jobs, places[0])
        batches.append(Batch(places, structure, _features(mine, structure)))
    return batches, examples[0].width, kinds.pop()


def _array(value: Any, name: str, i: int, ndim: int) -> FloatArray:
    try:
        array = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"X: {name} of example {i} must be an array of numbers with {ndim} axes") from None
    if array.ndim != ndim:
        meaning = "a matrix for each feature: (features, n, n)" if ndim == 3 else "a row of features for each"
        one = f"; one feature alone is x[None], of shape {(1, *array.shape)}" if ndim == 3 and array.ndim == 2 else ""
        raise ValueError(f"X: {name} of example {i} must have {ndim} axes, {meaning}; got shape {array.shape}{one}")
    if not np.isfinite(array).all():
        raise ValueError(f"X: {name} of example {i} must not hold NaN or inf")
    return array


def _read(x: Any, i: int, bipartite: bool) -> _Example:
    if not isinstance(x, Mapping):
        F = _array(x, "the array", i, 3)
        if F.shape[1] != F.shape[2] or F.size == 0:
            raise ValueError(f"X: example {i} must have shape (features, n, n), got {F.shape}{UNEQUAL if bipartite else ''}")
        if not bipartite and not np.allclose(F, F.transpose(0, 2, 1), rtol=1e-9, atol=1e-9):
            raise ValueError(f"X: example {i} must have symmetric matrices of features (or set bipartite=True)")
        return _Example(("edges", F.shape[1]), (F,), F.shape[1], (F.shape[0],))
    keys = set(x)
    if keys - {"n_vertices"} == {"edges", "features"} and not bipartite:
        F = _array(x["features"], "features", i, 2)
        graph = _graph(i, x["edges"], perfect=False, n_vertices=x.get("n_vertices"))
        if len(F) != graph.n_edges:
            raise ValueError(f"X: example {i} has {graph.n_edges} edges and {len(F)} rows of features")
        return _Example(("edges", graph.ends.tobytes(), graph.n_vertices), (F,), graph.ends, (F.shape[1],))
    if keys == {"nodes"} and not bipartite:
        N = _array(x["nodes"], "nodes", i, 2)
        return _Example(("nodes", len(N)), (N, N), len(N), (N.shape[1], N.shape[1]))
    if keys == {"rows", "columns"} and bipartite:
        L, R = _array(x["rows"], "rows", i, 2), _array(x["columns"], "columns", i, 2)
        if len(L) != len(R):
            raise ValueError(
                f"X: example {i} has {len(L)} rows and {len(R)} columns; perfect matchings need as many{UNEQUAL}"
            )
        return _Example(("nodes", len(L)), (L, R), len(L), (L.shape[1], R.shape[1]))
    wanted = "'rows' and 'columns'" if bipartite else "'nodes', or 'edges' and 'features'"
    raise ValueError(
        f"X: example {i} must be an array (features, n, n) or a dict with {wanted}; got keys {sorted(map(str, keys))}"
    )


def _structure(
    example: _Example, bipartite: bool, perfect: bool, n_jobs: int | None, i: int
) -> BipartiteMatching | Matching:
    if bipartite:
        return BipartiteMatching(example.graph, n_jobs=n_jobs)
    n = example.key[2] if np.ndim(example.graph) else None
    return _graph(i, example.graph, perfect=perfect, n_vertices=n, n_jobs=n_jobs)


def _graph(i: int, *args: Any, **options: Any) -> Matching:
    """A structure, with the number of the example in what it may complain of."""
    try:
        return Matching(*args, **options)
    except ValueError as error:
        raise type(error)(f"X: example {i}: {error}") from None


def _features(examples: list[_Example], structure: BipartiteMatching | Matching) -> EdgeMap:
    first = examples[0]
    if first.key[0] == "nodes":
        rows, columns = (np.array([example.parts[k] for example in examples]) for k in range(2))
        return NodePairs(rows, columns, structure.ends if isinstance(structure, Matching) else None)
    if np.ndim(first.graph):
        return EdgeFeatures(np.array([example.parts[0].T for example in examples]).transpose(1, 0, 2))
    stacked = np.array([example.parts[0] for example in examples]).transpose(1, 0, 2, 3)
    if isinstance(structure, Matching):
        return EdgeFeatures(stacked[:, :, structure.ends[:, 0], structure.ends[:, 1]])
    return EdgeFeatures(stacked.reshape(*stacked.shape[:2], -1))


def read_matchings(y: Any, batches: list[Batch]) -> list[IntArray]:
    """For each batch, rows of columns or partners; edges are read too, as lists of pairs."""
    count = sum(len(batch.places) for batch in batches)
    if not isinstance(y, Sequence | np.ndarray) or len(y) != count:
        raise ValueError(f"y must have a matching for each of {count} examples")
    out = []
    for batch in batches:
        rows = [_row(y[i], batch.structure, i) for i in batch.places]
        out.append(np.array(rows, dtype=np.int64))
    return out


def _row(value: Any, structure: BipartiteMatching | Matching, i: int) -> IntArray:
    found = np.asarray(value)
    try:
        if found.size == 0:
            found = np.zeros((0, 2), np.int64)
        if found.ndim == 2 and found.shape[1] == 2:
            found = _from_pairs(found, structure)
        if isinstance(structure, BipartiteMatching):
            return np.asarray(structure.permutations(found)[0])
        partners = structure.partners(found)
        structure.score(np.zeros(structure.n_edges), partners)  # refuses edges that the graph has not
        return np.asarray(partners[0])
    except ValueError as error:
        alone = isinstance(structure, BipartiteMatching) and found.dtype.kind in "if" and (found == -1).any()
        cure = UNEQUAL if alone else ""
        raise ValueError(f"y: example {i}: {error}{cure}") from None


def _from_pairs(pairs: Any, structure: BipartiteMatching | Matching) -> IntArray:
    n = structure.n if isinstance(structure, BipartiteMatching) else structure.n_vertices
    if pairs.dtype.kind not in "iu" or pairs.min(initial=0) < 0 or pairs.max(initial=0) >= n:
        raise ValueError(f"pairs must be integers from 0 to {n - 1}")
    out = np.full(n, -1, np.int64)
    if isinstance(structure, BipartiteMatching):
        if len(np.unique(pairs[:, 0])) < len(pairs):
            raise ValueError("pairs must be a matching: a row is in two of them")
        out[pairs[:, 0]] = pairs[:, 1]
        return out
    if len(np.unique(pairs)) < pairs.size:
        raise ValueError("pairs must be a matching: a vertex is in two of them")
    out[pairs[:, 0]], out[pairs[:, 1]] = pairs[:, 1], pairs[:, 0]
    return out
