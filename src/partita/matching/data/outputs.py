"""Who is matched with whom, as users say it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...core.results import IntArray
from ..structure.b_matching import BMatching
from ..structure.bipartite import BipartiteMatching
from ..structure.general import Matching
from .batches import UNMATCHED, Batch


def check_length(y: Any, batches: list[Batch]) -> None:
    """Raise a ValueError unless y has a matching for each example."""
    count = sum(len(batch.places) for batch in batches)
    if not isinstance(y, Sequence | np.ndarray) or len(y) != count:
        raise ValueError(f"y must have a matching for each of {count} examples")


def check_allowed(batch: Batch, rows: IntArray) -> None:
    """Raise a ValueError if a matching has an edge that is forbidden."""
    if batch.forbidden is None:
        return
    wrong = (batch.structure.indicators(rows) > 0.0) & np.asarray(batch.forbidden)
    if wrong.any():
        b, e = np.argwhere(wrong)[0].tolist()
        i, j = batch.structure.ends[e].tolist()
        raise ValueError(
            f"y: example {batch.places[b]} matches {i} with {j - batch.structure.left}, which 'forbidden' rules out"
        )


def read_matching(value: Any, batch: Batch, i: int) -> IntArray:
    """A row of columns or partners, or a table of zeros and ones, of example i; edges are read too, as lists of pairs."""
    s = batch.structure
    if not isinstance(s, BMatching):
        return _row(value, s, i)
    try:
        chosen = s.indicators(s.as_given(_edges(value, s, batch.sides))[0])
    except ValueError as error:
        raise ValueError(f"y: example {i}: {error}") from None
    return np.asarray(s.as_given(chosen)[0], dtype=np.int64)


def _edges(value: Any, structure: BMatching, sides: tuple[int, int] | None) -> Any:
    """Numbers of edges, from a table (symmetric, of a complete graph) or from pairs. What has a table's shape is one."""
    found, n = np.asarray(value), structure.n_vertices
    shape = sides or structure.table or ((n, n) if structure.complete else (structure.n_edges,))
    if found.shape == shape and found.size:
        if not structure.complete:
            return found
        i, j = structure.ends.T
        if (found != found.T).any() or found.diagonal().any():
            raise ValueError("a table of vertices of one kind must be symmetric, with zeros in its diagonal")
        return np.asarray(found[i, j])
    chosen = np.zeros(structure.n_edges, np.int64)
    if not found.size:
        return chosen
    if found.ndim != 2 or found.shape[1] != 2:
        raise ValueError(f"y must be a table of zeros and ones of shape {shape}, or pairs; got shape {found.shape}")
    return _put_pairs(_checked_pairs(found, structure), structure, chosen)


def _put_pairs(pairs: IntArray, structure: BMatching, chosen: IntArray) -> IntArray:
    """`chosen` with ones for the edges that are pairs."""
    n = structure.n_vertices
    ends = pairs + np.array([0, structure.left]) if structure.left else np.sort(pairs, axis=1)
    wanted, there = ends @ [n, 1], structure.ends @ [n, 1]
    order = np.argsort(there, kind="stable")
    places = order[np.minimum(np.searchsorted(there[order], wanted), len(order) - 1)]
    missing = np.flatnonzero(there[places] != wanted)
    if len(missing):
        raise ValueError(f"y has the pair {pairs[missing[0]].tolist()}, which is no edge of the graph")
    np.add.at(chosen, places, 1)
    if chosen.max() > 1:
        again = (structure.ends[int(np.argmax(chosen))] - [0, structure.left]).tolist()
        raise ValueError(f"y has the pair {again} twice")
    return chosen


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


def _checked_pairs(pairs: Any, structure: Any) -> IntArray:
    n = structure.left or structure.n_vertices
    sizes = (n, structure.n_vertices - structure.left)
    if pairs.dtype.kind not in "iu" or pairs.min(initial=0) < 0 or (pairs >= sizes).any():
        limits = f"from 0 to {n - 1}" if sizes[0] == sizes[1] else f"a row below {sizes[0]} and a column below {sizes[1]}"
        raise ValueError(f"pairs must be integers, {limits}")
    return np.asarray(pairs, dtype=np.int64)


def _from_pairs(found: Any, structure: BipartiteMatching | Matching) -> IntArray:
    pairs, n = _checked_pairs(found, structure), structure.left or structure.n_vertices
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
