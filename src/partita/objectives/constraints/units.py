"""A set of weights in the units of a solver."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.results import FloatArray
from .feasible_set import Cone, FeasibleSet


def in_units(feasible: FeasibleSet, back: Any) -> FeasibleSet:
    """The set of z for which ``back @ z`` is feasible; `back` is an invertible sparse matrix, diagonal but for some rows.

    Bounds and ties of weights that are multiples of one entry of z stay bounds and ties; others become rows.
    """
    B = sp.csr_matrix(back)
    B.eliminate_zeros()
    single = np.diff(B.indptr) == 1
    where, factor = np.full(B.shape[0], -1), np.ones(B.shape[0])
    first = B.indptr[:-1][single]
    where[single], factor[single] = B.indices[first], B.data[first]
    lower, upper = np.full(B.shape[1], -np.inf), np.full(B.shape[1], np.inf)
    ends = np.sort(np.stack([feasible.lower, feasible.upper]) / factor, axis=0)
    lower[where[single]], upper[where[single]] = ends[:, single]
    parts = [] if feasible.rows is None else [(feasible.rows @ B, feasible.row_lower, feasible.row_upper)]
    mixed = np.flatnonzero(~single & (np.isfinite(feasible.lower) | np.isfinite(feasible.upper)))
    if len(mixed):
        parts.append((B[mixed], feasible.lower[mixed], feasible.upper[mixed]))
    ties = []
    for group in feasible.ties:
        if single[group].all() and (factor[group] == factor[group[0]]).all():
            ties.append(np.sort(where[group]))
        else:
            none = np.zeros(len(group) - 1)
            parts.append((B[group[1:]] - B[np.full(len(none), group[0])], none, none))
    rows, low, high = None, None, None
    if parts:
        rows = sp.csr_matrix(sp.vstack([part[0] for part in parts]))
        low, high = (np.concatenate([part[k] for part in parts]) for k in (1, 2))
    cones = tuple(_moved(cone, B) for cone in feasible.cones)
    return FeasibleSet(lower, upper, rows, low, high, cones, tuple(ties))


def _moved(cone: Cone, B: Any) -> Cone:
    def violation(z: FloatArray) -> float:
        return cone.violation(np.asarray(B @ z))

    return replace(cone, matrix=sp.csr_matrix(cone.matrix @ B), violation=violation, ball=None)
