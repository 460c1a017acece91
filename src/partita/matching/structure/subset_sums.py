"""Exact answers about matchings of two sides, by sums over the sets of vertices of the smaller one."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..kernels import covariances, many, permanent, rectangular
from .duals import RANGE, partial_duals, simple_duals


class Scaled(NamedTuple):
    """Weights as kernels take them: pairs of a vertex of the larger side and one of the smaller, what each has by itself,
    and the logarithm of what all matchings were divided by."""

    A: FloatArray
    alone: FloatArray
    spare: FloatArray
    shift: FloatArray


class SubsetSums:
    """Sums over the matchings of n rows and m columns.

    Parameters
    ----------
    n, m : int
    unmatched : bool
        All vertices may stay alone. Else all vertices of the smaller side are matched.
    workers : Workers
    """

    def __init__(self, n: int, m: int, unmatched: bool, workers: Workers) -> None:
        self.n, self.m, self.unmatched, self.workers = n, m, unmatched, workers
        self.square: bool = n == m and not unmatched
        self.larger, self.smaller = max(n, m), min(n, m)
        sets = 2.0 ** min(self.smaller, 1000)
        #: About the number of products that the marginals of one example take.
        self.work: float = float(self.smaller) * sets * (1.0 if self.square else float(self.larger))
        #: Numbers of workspace.
        self.room: float = sets * (2.0 if self.square else self.larger + 3.0)

    def log_z(self, flat: FloatArray, marginals: FloatArray | None) -> FloatArray:
        """log Z of each example, -inf where all is forbidden, and the probabilities of edges unless `marginals` is None."""
        scaled = self._scaled(flat)
        tau = np.zeros((0, self.larger, self.smaller)) if marginals is None else np.zeros_like(scaled.A)
        out = self._sums(scaled, tau) + scaled.shift
        if marginals is not None:
            marginals[:] = self._flat(tau)
        return np.asarray(out)

    def covariances(self, flat: FloatArray, directions: FloatArray) -> FloatArray:
        """The covariance of edges of each example, times a direction."""
        scaled, D = self._scaled(flat), self._sides(directions)
        size = np.abs(D).max(axis=(1, 2), keepdims=True)
        D = np.ascontiguousarray(D / np.where(size > 0.0, size, 1.0))
        out = np.empty_like(scaled.A)
        if self.square:
            self._run(covariances.assignments, len(flat), scaled.A, D, out)
        else:
            self._run(covariances.partial, len(flat), scaled.A, scaled.alone, scaled.spare, D, out)
        return self._flat(out * size)

    def draws(self, flat: FloatArray, size: int, random: np.random.Generator) -> IntArray | None:
        """Independent matchings of one example, for each row its column; None if all is forbidden."""
        scaled = self._scaled(flat)
        uniforms = random.random((size, self.larger))
        found = np.empty((size, self.larger), np.int64)
        if self.square:
            sums: FloatArray = np.empty(1 << self.n)
            permanent.assignments(scaled.A[0], sums)
            if not sums[-1] > 0.0:
                return None
            many.draw_assignments(scaled.A[0], sums, uniforms, found)
            return found
        sums = np.empty((self.larger + 1, 1 << self.smaller))
        rectangular.partial_assignments(scaled.A[0], scaled.alone[0], scaled.spare[0], sums)
        if not sums[0, -1] > 0.0:
            return None
        rectangular.draw_partial_assignments(scaled.A[0], scaled.alone[0], sums, uniforms, found)
        return found if self.n >= self.m else inverted(found, self.n)

    def _sides(self, flat: FloatArray) -> FloatArray:
        """Numbers of edges by vertices of the larger side."""
        W = flat.reshape(-1, self.n, self.m)
        return W if self.n >= self.m else W.transpose(0, 2, 1)

    def _flat(self, sides: FloatArray) -> FloatArray:
        given = sides if self.n >= self.m else sides.transpose(0, 2, 1)
        return given.reshape(len(sides), -1)

    def _run(self, kernel: Any, count: int, *state: Any) -> None:
        self.workers.run(lambda lo, hi: kernel(*state, lo, hi), Workers.ranges(count, 2.0 * count * self.work))

    def _sums(self, scaled: Scaled, tau: FloatArray) -> FloatArray:
        log_z = np.empty(len(scaled.A))
        if self.square:
            self._run(many.assignments, len(log_z), scaled.A, log_z, tau)
        else:
            self._run(rectangular.many_partial_assignments, len(log_z), *scaled[:3], log_z, tau)
        return log_z

    def _scaled(self, flat: FloatArray) -> Scaled:
        """Weights up to one, such that their sum is in range: nearly always at once, else by duals of the best matching."""
        W = self._sides(flat)
        u, v, safe = self._tops(W)
        scaled = self._divided(W, u, v)
        doubtful = np.flatnonzero(~safe)
        if len(doubtful):
            part = Scaled(*(rows[doubtful] for rows in scaled))
            far = doubtful[self._sums(part, np.zeros((0, self.larger, self.smaller))) < -RANGE]
            for b in far.tolist():
                self._rescale(W[b], Scaled(*(rows[b : b + 1] for rows in scaled)))
        return scaled

    def _rescale(self, W: FloatArray, out: Scaled) -> None:
        """The scaled weights of one example by duals of its best matching, which is one: rounding of large duals is left out
        there, or the sum could vanish."""
        u, v, best = partial_duals(W, not self.unmatched, self.workers)
        for whole, rows in zip(out, self._divided(W[None], u[None], v[None]), strict=True):
            whole[:] = rows
        matched = np.flatnonzero(best >= 0)
        score = float(W[matched, best[matched]].sum())
        if score == -np.inf:  # all is forbidden
            return
        out.A[0, matched, best[matched]] = 1.0
        if not self.square:
            out.alone[0, best < 0] = 1.0
        if self.unmatched:
            out.spare[0, np.setdiff1d(np.arange(self.smaller), best)] = 1.0
        out.shift[0] = score

    def _tops(self, W: FloatArray) -> tuple[FloatArray, FloatArray, Any]:
        """Numbers of vertices of both sides, and where the sum is sure to be in range."""
        if not self.square:
            u, v = simple_duals(W, not self.unmatched)
            if self.unmatched:
                return u, v, v.sum(1) < RANGE
        else:
            u = _finite(W.max(axis=2))
            v = _finite((W - u[:, :, None]).max(axis=1))
        low = (W - v[:, None, :] - u[:, :, None]).min(axis=(1, 2))
        return u, v, low * self.smaller > -RANGE

    def _divided(self, W: FloatArray, u: FloatArray, v: FloatArray) -> Scaled:
        A = np.exp(np.minimum(W - u[:, :, None] - v[:, None, :], 0.0))
        alone = np.zeros_like(u) if self.square else np.exp(-u)
        spare = np.exp(-v) if self.unmatched else np.zeros_like(v)
        return Scaled(np.ascontiguousarray(A), alone, spare, u.sum(1) + v.sum(1))


def _finite(values: FloatArray) -> FloatArray:
    return np.where(values > -np.inf, values, 0.0)


def inverted(partners: IntArray, n: int) -> IntArray:
    """The partners of the n vertices of the other side."""
    out = np.full((len(partners), n), -1, np.int64)
    rows, columns = np.nonzero(partners >= 0)
    out[rows, partners[rows, columns]] = columns
    return out
