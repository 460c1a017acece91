"""Which features pushed which partner."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...report.explanation import Explanation, explained
from ..data import Batch
from ..structure.b_matching import BMatching


def explain_matching(batch: Batch, P: FloatArray, found: IntArray, shares: list[tuple[str, FloatArray]]) -> Explanation:
    """Why the rows, or vertices, of an example have their partners.

    Parameters
    ----------
    P : array
        Probabilities of edges.
    found : array
        The best matching.
    shares : list of (name, array)
        What each feature adds to the weights of edges.
    """
    structure: Any = batch.structure
    ends = np.asarray(structure.ends) - [0, structure.left]
    if isinstance(structure, BMatching):
        return _edges(ends, P.ravel(), structure.indicators(found[None]).ravel(), shares)
    entries = []
    alone = np.ones(structure.n_vertices, bool) & structure.may_stay_alone
    count = len(found) if batch.sides is None else batch.sides[0]
    for v in range(count):
        at = np.flatnonzero((ends[:, 0] == v) | ((ends[:, 1] == v) & (structure.left == 0)))
        partners: list[int | None] = np.where(ends[at, 0] == v, ends[at, 1], ends[at, 0]).tolist()
        p, rows = P.ravel()[at], [(name, share[at]) for name, share in shares]
        if alone[v]:
            partners.append(None)
            p = np.append(p, max(0.0, 1.0 - float(p.sum())))
            rows = [(name, np.append(row, 0.0)) for name, row in rows]
        if partners:
            best = partners.index(None if found[v] < 0 else int(found[v]))
            entries.append(explained(v, partners, p, rows, best, what="row" if structure.left else "vertex"))
    return Explanation(tuple(entries))


def _edges(ends: IntArray, p: FloatArray, chosen: FloatArray, shares: list[tuple[str, FloatArray]]) -> Explanation:
    """Why edges are in a set, or not."""
    entries = []
    for e, (i, j) in enumerate(ends.tolist()):
        rows = [(name, np.array([0.0, share[e]])) for name, share in shares]
        probabilities = np.array([1.0 - p[e], p[e]])
        entries.append(explained((i, j), ["out", "in"], probabilities, rows, int(chosen[e] > 0.5), what="edge"))
    return Explanation(tuple(entries))
