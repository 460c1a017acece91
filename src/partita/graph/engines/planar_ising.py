"""Exact sums over Ising models without fields on graphs drawn in the plane, by the determinant of Kac and Ward."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import splu

from ...core.results import FloatArray, IntArray, Result
from ..structure.factor_graph import FactorGraph
from .planar_layout import PlanarLayout

#: Right sides that are solved for at once.
_BLOCK = 256


def planar_log_partition(graph: FactorGraph, potentials: Any, positions: ArrayLike | None = None) -> FloatArray:
    """log Z of each row of potentials.

    Parameters
    ----------
    graph : FactorGraph
        Variables with two states, factors of at most two variables, and pairs that are edges of a planar graph.
    potentials
        Finite, and the same when all states change: such a model has no fields.
    positions : array of shape (variables, 2), optional
        See `PlanarLayout`.

    Notes
    -----
    ``Z = 2^n prod cosh J_e sqrt(det(1 - W))``, where W joins half-edges that follow each other, with the weight tanh J of
    the first and half of the angle between them as phase. The determinant becomes small where couplings are strong and
    contradict each other, and digits are lost: one that is visibly not a positive number is refused.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.graph.engines.planar_ising import planar_log_partition
    >>> from partita.structures import FactorGraph
    >>> graph, agree = FactorGraph.grid(2, 2), np.log([[2.0, 1.0], [1.0, 2.0]])
    >>> tables = [np.zeros(2)] * 4 + [agree] * 4
    >>> planar_log_partition(graph, tables).round(6), graph.log_partition(tables).round(6)
    (array([4.406719]), array([4.406719]))
    """
    layout = PlanarLayout(graph, positions)
    return np.array([_KacWard(layout, row).log_z for row in graph.potentials(potentials)])


def planar_infer(graph: FactorGraph, potentials: Any, positions: ArrayLike | None = None) -> Result:
    """`planar_log_partition`, and the probability of every entry of every table.

    This takes a solve with the factors of the matrix for each edge: a second or two for 1,000 edges, a minute for 5,000.
    """
    layout, rows = PlanarLayout(graph, positions), graph.potentials(potentials)
    sums = [_KacWard(layout, row) for row in rows]
    log_z = np.array([one.log_z for one in sums])
    marginals = np.array([layout.point(one.agreement()) for one in sums])
    single = isinstance(potentials, list | tuple) or np.ndim(potentials) == 1
    return Result(log_z, marginals[0] if single else marginals, lower=log_z, upper=log_z, engine="planar")


class _KacWard:
    """The factored matrix of one set of potentials."""

    def __init__(self, layout: PlanarLayout, potentials: FloatArray) -> None:
        J, constant = layout.couplings(potentials)
        self.layout, self.t = layout, np.tanh(J)
        self.log_z = constant + layout.graph.n_variables * np.log(2.0)
        if layout.n_edges:
            size = np.abs(J)
            self.log_z += float((size + np.log1p(np.exp(-2.0 * size)) - np.log(2.0)).sum())
            self.follow = _follow(layout)
            weights = sp.diags_array(np.tile(self.t, 2))
            self.factor: Any = splu((sp.eye_array(2 * layout.n_edges) - weights @ self.follow).tocsc())
            self.log_z += 0.5 * _log_determinant(self.factor)

    def agreement(self) -> FloatArray:
        """The mean of s_i s_j of every edge: the derivative of log Z, by the two rows of the matrix that have its weight."""
        m, out = self.layout.n_edges, self.t.copy()
        for lo in range(0, m, _BLOCK):
            block = np.arange(lo, min(lo + _BLOCK, m))
            right = np.zeros((2 * m, len(block)), dtype=np.complex128)
            right[block, block - lo] = 1.0
            columns = self.factor.solve(right)
            # The row of the half-edge that goes back has the conjugate.
            out[block] -= (1.0 - self.t[block] ** 2) * self.follow[block].multiply(columns.T).sum(axis=1).real
        return np.clip(out, -1.0, 1.0)


def _follow(layout: PlanarLayout) -> Any:
    """The phase of every half-edge that follows another and does not go back."""
    order, starts = layout.around
    counts = (starts[1:] - starts[:-1])[layout.heads]
    rows = np.repeat(np.arange(2 * layout.n_edges), counts)
    within = np.arange(len(rows)) - np.repeat(np.cumsum(counts) - counts, counts)
    columns = order[np.repeat(starts[layout.heads], counts) + within]
    on = columns != layout.reverse[rows]
    rows, columns = rows[on], columns[on]
    phases = np.exp(0.5j * layout.turn(rows, columns))
    return sp.csr_array((phases, (rows, columns)), shape=(2 * layout.n_edges, 2 * layout.n_edges))


def _log_determinant(factor: Any) -> float:
    diagonal = factor.U.diagonal()
    sign = _sign(factor.perm_r) * _sign(factor.perm_c)
    phase = sign * np.prod(diagonal / np.abs(diagonal)) if (diagonal != 0.0).all() else 0.0
    if not abs(phase - 1.0) < 1e-6:
        raise ValueError(
            "the determinant is not a positive number: couplings are too strong, and contradict each other too much, for "
            "double precision"
        )
    return float(np.log(np.abs(diagonal)).sum())


def _sign(permutation: IntArray) -> float:
    """1 if a permutation is even, else -1."""
    size = len(permutation)
    cycles, _ = connected_components(sp.csr_array((np.ones(size), (np.arange(size), permutation)), shape=(size, size)))
    return 1.0 - 2.0 * float((size - cycles) % 2)
