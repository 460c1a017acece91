"""Naive mean field: the best approximation by independent variables, and a lower bound on log Z."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.random import generator
from ...core.results import FloatArray, IntArray, Result, Status
from ...core.validation import check_count, check_real
from ..kernels import arc_consistency, mean_field as kernels
from ..kernels.factor_layout import Entries
from ..structure.factor_graph import FactorGraph
from ..structure.trivial_bounds import trivial_bounds
from .layout import Layout, given, layout

#: Choices that may be taken back in search of a configuration that is not forbidden.
SEARCH = 20_000


def mean_field(
    graph: FactorGraph,
    potentials: FloatArray,
    *,
    max_iter: int = 500,
    tol: float = 1e-6,
    n_starts: int = 1,
    random_state: Any = 0,
) -> Result:
    """Naive mean field: coordinate ascent on the evidence lower bound; ``log_z`` and ``lower`` are its value, below log Z.

    Parameters
    ----------
    graph, potentials
        A factor graph and a matrix of potentials, one set per row.
    max_iter, tol
        Sweeps, and the change of probabilities below which they end.
    n_starts, random_state
        Starts, the best of which counts (of each example); the first is uniform, the others random.

    Notes
    -----
    Where tables forbid, ascent begins at one configuration that is not forbidden and keeps to what is allowed. If none is
    found, the bound is -inf, and log Z is not known (NaN).
    """
    potentials, inner = given(graph, potentials), layout(graph)
    constant = inner.constant(potentials)
    states, tables = inner.scores(potentials)
    if not (inner.prune(states, tables) and (constant > -np.inf).all()):
        raise ValueError("potentials forbid every configuration: the partition function is zero")
    check_count("n_starts", n_starts, minimum=1)
    rng = generator(random_state)
    found: Ascent | None = None
    for start in range(n_starts):
        noise = rng.gumbel(size=states.shape) if start else np.zeros(states.shape)
        q = _softmax(inner, np.where(states > -np.inf, noise, -np.inf))
        new = ascend(graph, inner, states, tables, constant, q, max_iter=max_iter, tol=tol)
        found = new if found is None else found.better(new, inner)
    assert found is not None
    known = found.value > -np.inf
    result = Result(
        np.where(known, found.value, np.nan),
        inner.marginals(found.q, found.tables),
        found.status,
        False,
        lower=found.value,
        n_iter=found.n_iter,
        engine="mean_field",
        residual=found.residual,
        tol=tol,
        knows_log_z=bool(known.all()),
    )
    return result.within(*trivial_bounds(graph, potentials))


@dataclass(frozen=True)
class Ascent:
    """The end of an ascent: the bound of each example, probabilities of states and of table entries."""

    value: FloatArray
    q: FloatArray
    tables: FloatArray
    n_iter: int
    residual: float  # the largest change of a probability in the last sweep
    tol: float

    @property
    def status(self) -> Status:
        return Status.CONVERGED if self.residual <= self.tol else Status.UNSETTLED

    def better(self, other: Ascent, inner: Layout) -> Ascent:
        """The better one of each example."""
        rows = len(self.q)
        take = (other.value > self.value).reshape(rows, -1)
        of_states = np.repeat(take[:, inner.arrays.var_examples], np.diff(inner.var_offsets), axis=1)
        of_tables = np.repeat(take[:, inner.arrays.fac_examples], np.diff(inner.arrays.fac_offsets), axis=1)
        return Ascent(
            np.maximum(self.value, other.value),
            np.where(of_states, other.q, self.q),
            np.where(of_tables, other.tables, self.tables),
            max(self.n_iter, other.n_iter),
            max(self.residual, other.residual),
            self.tol,
        )


def ascend(
    graph: FactorGraph,
    inner: Layout,
    states: FloatArray,
    tables: FloatArray,
    constant: FloatArray,
    start: FloatArray,
    *,
    max_iter: int,
    tol: float,
) -> Ascent:
    """Ascent from given probabilities of states, after pruning."""
    check_count("max_iter", max_iter)
    check_real("tol", tol, minimum=0.0)
    rows = len(states)
    q, value = start.copy(), constant.copy()
    b_tables, sweeps, change = np.empty_like(tables), np.zeros(rows, np.int64), np.zeros(rows)
    widest = int(np.diff(inner.var_offsets).max())

    def work(first: int, last: int) -> None:
        T, g = np.empty(inner.largest), np.empty(widest)
        for row in range(first, last):
            if np.isneginf(tables[row]).any():
                y = configuration(inner, states[row], tables[row], start[row])
                if y is not None:
                    q[row] = 0.0
                    q[row][inner.var_offsets[:-1] + y] = 1.0
            scores, beliefs = Entries(states[row], tables[row]), Entries(q[row], b_tables[row])
            sweeps[row], change[row] = kernels.coordinate_ascent(inner.arrays, scores, max_iter, tol, q[row], T, g)
            kernels.evidence_lower_bound(inner.arrays, scores, beliefs, value[row], T)

    graph.workers.run(work, Workers.ranges(rows, 1e3 * inner.size * rows))
    last = float(change.max(initial=0.0))
    return Ascent(value.ravel(), q, b_tables, int(sweeps.max(initial=0)), last, tol)


def configuration(inner: Layout, states: FloatArray, tables: FloatArray, scores: FloatArray) -> IntArray | None:
    """A configuration of one row that is not forbidden, states of high score chosen first; None if none was found."""
    y = np.zeros(inner.n_variables, np.int64)
    sure = np.maximum.reduceat(scores, inner.var_offsets[:-1])[inner.var_order]
    # one example after another: what fails in one has its cause there
    order = inner.var_order[np.lexsort((-sure, inner.arrays.var_examples[inner.var_order]))]
    found = arc_consistency.search(inner.arrays, tables > -np.inf, states > -np.inf, order, scores, SEARCH, y)
    return y if found == 1 else None


def _softmax(inner: Layout, scores: FloatArray) -> FloatArray:
    """exp of scores, normalised for each variable; no row may be -inf for all states of a variable."""
    first, count = inner.var_offsets[:-1], np.diff(inner.var_offsets)
    top = np.repeat(np.maximum.reduceat(scores, first, axis=1), count, axis=1)
    p = np.exp(scores - top)
    out: FloatArray = p / np.repeat(np.add.reduceat(p, first, axis=1), count, axis=1)
    return out
