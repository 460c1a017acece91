"""Matchings of which not all is known: partners that are unknown, or one of a set."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.arrays.unknown import is_unknown
from ...core.results import FloatArray, IntArray
from ..structure.b_matching import BMatching
from ..structure.evidence import Evidence
from .batches import Batch
from .outputs import check_allowed, check_length, read_matching


class Known(NamedTuple):
    """What is known of the examples on one graph: matchings (as good as any where not all is known), and the rest."""

    matchings: IntArray
    evidence: Evidence | None
    sets: list[list[Any]]  # of each example with evidence, the partners that each row or vertex may have; None for any

    def right(self, found: IntArray, same: Any) -> Any:
        """Whether best partners are right, one of the set where y has a set; those that are unknown are left out."""
        if self.evidence is None:
            return same.ravel()
        keep = np.ones(same.shape, bool)
        same = same.copy()
        for i, sets in zip(self.evidence.rows.tolist(), self.sets, strict=True):
            for v, allowed in enumerate(sets):
                keep[i, v] = allowed is not None
                same[i, v] = allowed is not None and int(found[i, v]) in allowed
        return same[keep]


def read_known(y: Any, batches: list[Batch]) -> list[Known]:
    """For each batch what is known of its matchings: an entry may be None (any partner, or none) or a set of partners."""
    check_length(y, batches)
    out = []
    for batch in batches:
        open_ = [k for k, i in enumerate(batch.places) if _is_open(y[i])]
        known = [np.asarray(read_matching(y[i], batch, i)) for k, i in enumerate(batch.places) if k not in set(open_)]
        if not open_:
            matchings = np.array(known, dtype=np.int64)
            check_allowed(batch, matchings)
            out.append(Known(matchings, None, []))
            continue
        if isinstance(batch.structure, BMatching):
            raise ValueError(
                f"y: example {batch.places[open_[0]]} has None or sets: where b is above one, tables are all known"
            )
        sets = [_sets(y[batch.places[k]], batch, batch.places[k]) for k in open_]
        pairs = [_demands(own, batch, batch.places[k]) for own, k in zip(sets, open_, strict=True)]
        demands = np.array([row for row, _ in pairs])
        if batch.forbidden is not None:
            demands = np.where(batch.forbidden[open_], -np.inf, demands)
        totals = np.array([total for _, total in pairs], dtype=np.float64)
        evidence = Evidence(np.array(open_), demands, totals, batch.structure.n_vertices)
        matchings = _agreeing(batch, evidence)
        rest = np.setdiff1d(np.arange(len(batch.places)), open_)
        whole = np.zeros((len(batch.places), matchings.shape[1]), np.int64)
        whole[open_] = matchings
        if len(rest):
            whole[rest] = np.array(known, dtype=np.int64)
            check_allowed(batch, whole)
        out.append(Known(whole, evidence, sets))
    return out


def _is_open(value: Any) -> bool:
    """Whether a matching has entries that are unknown or sets."""
    if not isinstance(value, list | tuple | np.ndarray) or (isinstance(value, np.ndarray) and value.dtype.kind != "O"):
        return isinstance(value, np.ndarray) and value.dtype.kind == "f" and value.ndim == 1 and bool(np.isnan(value).any())
    return any(isinstance(entry, set | frozenset) or is_unknown(entry) for entry in value)


def _sets(value: Any, batch: Batch, i: int) -> list[Any]:
    """The partners that each row (or vertex) may have, -1 for none; None for any."""
    structure: Any = batch.structure
    n = batch.sides[0] if batch.sides else structure.left or structure.n_vertices
    most = structure.n_vertices - structure.left
    if len(value) != n:
        raise ValueError(f"y: example {i} must have {n} entries, a partner for each; got {len(value)}")
    out: list[Any] = []
    for v, entry in enumerate(value):
        if is_unknown(entry):
            out.append(None)
            continue
        own = entry if isinstance(entry, set | frozenset) else {entry}
        whole = {int(j) for j in own if isinstance(j, int | float | np.number) and not isinstance(j, bool) and j == int(j)}
        if not own or len(whole) < len(own) or min(whole) < -1 or max(whole) >= most:
            raise ValueError(
                f"y: example {i} has {entry!r} for {v}: partners are integers below {most}, -1 for none; None stands for "
                "any partner, or none, and a set for one of these"
            )
        if -1 in whole and not structure.may_stay_alone[v]:
            raise ValueError(f"y: example {i} lets {v} stay alone, which none may here; set allow_unmatched=True")
        out.append(whole)
    return out


def _demands(sets: list[Any], batch: Batch, i: int) -> tuple[FloatArray, int]:
    """-inf for edges that are ruled out, else how many vertices must have one such; and how many must have a partner."""
    structure: Any = batch.structure
    ends = np.asarray(structure.ends) - [0, structure.left]
    demands, total = np.zeros(structure.n_edges), 0
    for v, allowed in enumerate(sets):
        if allowed is None:
            continue
        at = np.flatnonzero((ends[:, 0] == v) | ((ends[:, 1] == v) & (structure.left == 0)))
        partners = np.where(ends[at, 0] == v, ends[at, 1], ends[at, 0])
        inside = np.isin(partners, list(allowed))
        demands[at[~inside]] = -np.inf
        if -1 not in allowed:
            if not inside.any():
                raise ValueError(f"y: example {i} has {sorted(allowed)} for {v}, which is no edge of the graph")
            if structure.may_stay_alone[v]:
                demands[at[inside]] += 1.0
                total += 1
    return demands, total


def _agreeing(batch: Batch, evidence: Evidence) -> IntArray:
    """A matching of each example that agrees with what is known; a ValueError where there is none."""
    structure: Any = batch.structure
    W, _ = evidence.weights(np.zeros((len(batch.places), structure.n_edges)))
    found: list[IntArray] = []
    for k, row, total in zip(evidence.rows.tolist(), W, evidence.totals, strict=True):
        demands = evidence.demands[len(found)]
        try:
            y = np.asarray(structure.best(row[None]))[0]
            met = float(demands[structure.indicators(y[None])[0] > 0.0].sum())
        except ValueError:
            met = -np.inf
        if met != total:
            raise ValueError(f"y: no matching agrees with what is said of example {batch.places[k]}")
        found.append(y)
    return np.array(found)
