"""Quadratics ``V' diag(S) V + diag(D)`` with few rows in V, for parameters too many to hold a matrix.

Ways to make one (`LOW_RANK`):

- ``"lanczos"``: the k largest eigenpairs of the dense bound by block Lanczos, and the next eigenvalue on the diagonal.
- ``"exact"``: one pass over the data; outer products are added exactly and only the dropped pairs are bounded by a diagonal.
- ``"corrected"``: paper 002's pass; a bound, but a loose one.
- ``"original"``: paper 000's pass, which is **not a bound** (it forgets a cross term); kept for the record.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp
from scipy import linalg

from ...core.contracts.capabilities import LowRankModel
from ...core.results import FloatArray
from ...core.validation import check_choice, check_count, check_low_rank
from ...numerics import low_rank as kernels
from ...numerics.linalg import CholeskyFactor, block_lanczos

_UPDATES = {"exact": kernels.EXACT, "corrected": kernels.CORRECTED, "original": kernels.ORIGINAL}
#: Part by which the first eigenvalue left out is raised: Ritz values lie below eigenvalues.
INFLATION = 0.02
#: Length of rows from which blocks are larger and fewer, and of the dropped pairs only so many may get a diagonal of their
#: own: their rows are long.
LONG, LOOKED_AT = 2000, 4
#: Eigenvalues below this part of the largest are rounding.
ROUNDING = 1e-13
#: Smallest diagonal relative to the largest curvature, where neither data nor penalty give one. Woodbury's formula loses as
#: many digits as this has zeros.
FLOOR = 1e-10

#: Products of a matrix with the columns of another.
BlockProduct = Callable[[FloatArray], FloatArray]


class Touching(Protocol):
    """A quadratic that touches an objective at its center."""

    @property
    def center(self) -> FloatArray: ...
    @property
    def value0(self) -> float: ...
    @property
    def gradient0(self) -> FloatArray: ...
    @property
    def is_bound(self) -> bool: ...


@dataclass
class LowRank:
    """``value0 + g'(x - center) + (x - center)' (V' diag(S) V + diag(D)) (x - center) / 2``; `D` holds the penalty too."""

    center: FloatArray
    value0: float
    gradient0: FloatArray
    V: FloatArray
    S: FloatArray
    D: FloatArray
    is_bound: bool = True
    _core: tuple[FloatArray, CholeskyFactor] | None = field(default=None, repr=False)

    def value(self, parameters: Any) -> float:
        """The quadratic at any parameters."""
        step = np.asarray(parameters, dtype=np.float64) - self.center
        return float(self.value0 + self.gradient0 @ step + 0.5 * (step @ self.matvec(step)))

    def matvec(self, vector: FloatArray) -> FloatArray:
        return np.asarray((self.S * (self.V @ vector)) @ self.V + self.D * vector)

    def matrix(self) -> FloatArray:
        return np.asarray((self.V.T * self.S) @ self.V + np.diag(self.D))

    def trace(self) -> float:
        return float(self.S @ np.einsum("ij,ij->i", self.V, self.V) + self.D.sum())

    def solve(self, vector: FloatArray) -> FloatArray:
        """Woodbury through I + S^1/2 V D^-1 V' S^1/2, which exists when S is singular."""
        if self._core is None:
            root = np.sqrt(self.S)[:, None] * self.V
            self._core = root, CholeskyFactor(np.eye(len(root)) + (root / self.D) @ root.T)
        root, core = self._core
        scaled = vector / self.D
        return np.asarray(scaled - (core.solve(root @ scaled) @ root) / self.D)

    def inflated(self) -> LowRank:
        """The same with twice the diagonal, for when an estimated eigenvalue was too small."""
        return LowRank(self.center, self.value0, self.gradient0, self.V, self.S, 2.0 * self.D, self.is_bound)


class StreamingLowRank:
    """Sums outer products ``r r'`` that arrive in blocks of rows, in memory for `rank` + 1 of them.

    Parameters
    ----------
    size : int
        Length of r.
    rank : int
        Pairs kept.
    method : {"exact", "corrected", "original"}
        See the module.
    block : int, optional
        How many rows are absorbed at once; with ``"exact"``, more are faster and give a tighter bound. Default: four times
        the rank, at least 64, or 256 of long rows. One is the update in its simplest form.
    start : array of shape (rank, size), optional
        Orthonormal rows to begin with; zeros otherwise.
    """

    def __init__(self, size: int, rank: int, method: str = "exact", block: int | None = None, start: Any = None) -> None:
        self.rank: int = min(check_count("rank", rank, minimum=1), size)
        self.method: int = _UPDATES[check_choice("low_rank", method, tuple(_UPDATES))]
        self.block: int = (
            check_count("block", block, minimum=1) if block is not None else max(256 if size > LONG else 64, 4 * self.rank)
        )
        self.V = np.zeros((self.rank, size)) if start is None else np.array(start, dtype=np.float64)
        self.S, self.D = np.zeros(self.rank), np.zeros(size)

    def copy(self) -> StreamingLowRank:
        """One that can be added to while this one stays as it is."""
        twin = copy.copy(self)
        twin.V, twin.S, twin.D = self.V.copy(), self.S.copy(), self.D.copy()
        return twin

    def decay(self, factor: float) -> None:
        """Multiply the sum by a factor."""
        self.S *= factor
        self.D *= factor

    def add(self, R: Any) -> None:
        """Add ``R' R``, for a dense R or a sparse one by rows."""
        if self.method != kernels.EXACT or self.block == 1:
            for first in range(0, R.shape[0], self.block):
                part = R[first : first + self.block]
                rows = part.toarray() if sp.issparse(part) else part
                kernels.stream(self.method, np.ascontiguousarray(rows), self.V, self.S, self.D)
            return
        for first in range(0, R.shape[0], self.block):
            self._absorb(R[first : first + self.block])

    def _absorb(self, R: Any) -> None:
        """Eigendecompose ``V' diag(S) V + R' R``; what is dropped is bounded by a diagonal."""
        if sp.issparse(R) or R.shape[1] > LONG:
            self._absorb_by_products(R)
        else:
            self._absorb_rows(R)

    def _absorb_rows(self, R: FloatArray) -> None:
        """Within the span of V and R, by orthonormal rows: exact to rounding, whatever the scales of columns."""
        known = np.flatnonzero(self.V.any(axis=1))  # rows that are zero would be mixed with others
        V = self.V[known]
        P = R @ V.T
        rest = R - P @ V
        again = rest @ V.T  # what rounding left along V would count twice
        P, rest = P + again, rest - again @ V
        Q, T, order = linalg.qr(rest.T, mode="economic", pivoting=True, check_finite=False)
        rank = int(np.count_nonzero(np.abs(np.diag(T)) > kernels.NEGLIGIBLE * np.abs(R).max(initial=0.0)))
        Q, T = Q[:, :rank], T[:rank, np.argsort(order)]
        basis = np.vstack([V, (Q - V.T @ (V @ Q)).T])
        rows = np.hstack([P, T.T])
        M = rows.T @ rows
        M[np.arange(len(known)), np.arange(len(known))] += self.S[known]
        values, W = np.linalg.eigh(M)
        values, rotated = np.maximum(values[::-1], 0.0), (W.T @ basis)[::-1]
        kept = min(self.rank, len(values))
        left = values[kept:]
        self.D += _diagonal_above(left, np.sqrt(left)[:, None] * np.abs(rotated[kept:]))
        self.S, self.V = np.zeros_like(self.S), np.zeros_like(self.V)
        self.S[:kept], self.V[:kept] = values[:kept], rotated[:kept]

    def _absorb_by_products(self, R: Any) -> None:
        """By the products of rows with each other, which leaves sparse rows as they are."""
        k, L = self.rank, np.sqrt(self.S)[:, None] * self.V
        G = np.empty((k + R.shape[0],) * 2)
        G[:k, :k] = L @ L.T
        G[k:, :k] = R @ L.T
        G[k:, k:] = (R @ R.T).toarray() if sp.issparse(R) else R @ R.T
        seen = min(len(G), k + LOOKED_AT + 1) if self.V.shape[1] > LONG else len(G)
        values, W = linalg.eigh(G, subset_by_index=(len(G) - seen, len(G) - 1), overwrite_a=True, check_finite=False)
        values, W = np.maximum(values[::-1], 0.0), np.ascontiguousarray(W[:, ::-1])
        used = max(k, seen - 1) if seen < len(G) else seen
        rows = W[:k, :used].T @ L + (R.T @ W[k:, :used]).T
        self.D += _diagonal_above(values[k:], np.abs(rows[k:]))
        real = values[:k] > ROUNDING * values[0]
        scale = np.where(real, 1.0 / np.sqrt(np.where(real, values[:k], 1.0)), 0.0)
        self.V, self.S = np.ascontiguousarray(rows[:k] * scale[:, None]), np.where(real, values[:k], 0.0)


def _diagonal_above(c: FloatArray, rows: FloatArray) -> FloatArray:
    """A diagonal above ``sum_i r_i r_i'`` for orthogonal r_i of squared lengths c, descending, given by absolute values, of
    the first of them at least.

    Each is below ``|r|_1 diag|r|``; all from the j-th on together are below ``c_j I``. The j of the smallest trace is taken.
    """
    lengths, after = rows.sum(1), np.append(c, 0.0)[: len(rows) + 1]
    j = int(np.argmin(np.concatenate(([0.0], np.cumsum(lengths**2))) + after * rows.shape[1]))
    return np.asarray(lengths[:j] @ rows[:j] + after[j])


def low_rank_quadratic(
    model: Touching,
    data: BlockProduct,
    penalty: FloatArray,
    rank: int,
    method: str,
    allow_invalid: bool = False,
    start: LowRankModel | None = None,
    *,
    roots: Callable[[], Iterable[FloatArray]],
    trace: float = np.inf,
) -> LowRank:
    """A low-rank quadratic above another one, whose curvature is never formed.

    Parameters
    ----------
    model : Touching
        What it touches, and whether that is a bound.
    data : callable
        Products of its curvature without the penalty with the columns of a matrix.
    penalty : array
        What is added to its diagonal.
    rank : int
        Rows of V.
    method : str
        See the module.
    start : LowRankModel, optional
        A model at a point nearby, whose directions are a good start for block Lanczos.
    roots : callable
        Blocks of rows r with ``sum r r'`` the curvature without the penalty, for the streaming methods.
    trace : float
        The trace of the curvature without the penalty, if known.
    """
    check_low_rank(method, allow_invalid)
    size = len(penalty)
    rank = min(check_count("rank", rank, minimum=1), size)
    if method == "lanczos":
        V, S, D = top_pairs(data, size, rank, None if start is None else start.V, trace)
    else:
        stream = StreamingLowRank(size, rank, method)
        for rows in roots():
            stream.add(rows)
        V, S, D = stream.V, stream.S, stream.D
    D = np.maximum(D + penalty, FLOOR * max(1e-300, S.max(initial=0.0)))
    return LowRank(model.center, model.value0, model.gradient0, V, S, D, model.is_bound and method != "original")


def top_pairs(
    data: BlockProduct, size: int, rank: int, start: FloatArray | None, trace: float = np.inf
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """V, S, D from the largest `rank` Ritz pairs: S + D is the Ritz value along V, and D is above the rest elsewhere.

    With the first Ritz value left out t and residual norm e, the rest of the spectrum is below t plus what Ritz values miss
    (`INFLATION`); it is also below the part of the trace that V does not explain, which needs no trust in convergence. Where
    V is not exact, adding e everywhere pays for the coupling.
    """
    V, values, residual = block_lanczos(data, size, rank, start)
    kept = np.maximum(values[:rank], 0.0)
    following = max(0.0, float(values[rank])) if len(values) > rank else 0.0
    unexplained = max(0.0, trace - float(kept.sum()))
    rest = min((1.0 + INFLATION) * following, unexplained)
    return V, np.maximum(kept - rest, 0.0), np.full(size, rest + residual)
