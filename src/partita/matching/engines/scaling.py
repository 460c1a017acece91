"""Bethe's free energy of one large graph by numbers of vertices, where no edge has half of a vertex.

Where probabilities are at most 1/2 the entropy is a sum of concave terms, and its dual smooth and convex in one number for
each vertex: Newton's method takes a few steps. If no probability reaches 1/2 the solution is that of the whole problem.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray
from ..kernels.messages import scaling as kernels

#: Most steps of scaling, of Newton's method, trials of one step, and products for one step.
FIRST, STEPS, TRIALS, PRODUCTS = 30, 20, 5, 50
#: Newton's method begins where the logarithms of all degrees are at most so large.
CLOSE = 0.5
#: Certificates that rounding may leave, for a value of one.
ROUNDING = 1e-8


class Scaling:
    """``tau (1 - tau) = exp(w_e - v_i - v_j)`` for weights of edges, with numbers v of vertices at which degrees are one.

    If matchings need not be perfect, vertices stay alone with probability ``exp(-v_i)``.
    """

    def __init__(self, structure: Any, weights: FloatArray, tau: FloatArray) -> None:
        self._one, self._other = structure.one_other
        self._vertices, self._left, self._single = structure.n_vertices, structure.left, not structure.perfect
        self._weights, self._tau, self._curves = weights, tau, np.empty_like(tau)
        self._workers = structure.workers
        self._pieces = [slice(lo, hi) for lo, hi in Workers.ranges(len(tau), 20.0 * len(tau))]

    def solve(self, tol: float, start: FloatArray | None) -> tuple[float, float, int, FloatArray] | None:
        """The value, its certificate, how many steps, and the numbers of vertices; None if an edge reaches 1/2."""
        v = self._first() if start is None else start.copy()
        degrees = self._degrees(v)
        steps = 1
        while np.abs(np.log(degrees)).max() > CLOSE and steps < FIRST:
            v += 0.5 * np.log(degrees)
            degrees = self._degrees(v)
            steps += 1
        while self._certificate(v, degrees) > tol and steps < FIRST + STEPS:
            found = self._search(v, degrees)
            if found is None:
                degrees = self._degrees(v)
                break
            v, degrees = found
            steps += 1
        value, gap = self._value(v), self._certificate(v, degrees)
        if self._tau.max() >= 0.499 or not gap <= max(tol, ROUNDING * (1.0 + abs(value))):
            return None
        return value, gap, steps, v

    def _first(self) -> FloatArray:
        """Numbers at which no edge has more than 1/2."""
        top = np.full(self._vertices, -np.inf)
        np.maximum.at(top, self._one, self._weights)
        np.maximum.at(top, self._other, self._weights)
        return np.asarray(0.5 * np.where(top > -np.inf, top, 0.0) + np.log(2.0))

    def _sums(self, add: Callable[[slice, FloatArray], None]) -> FloatArray:
        """What a function adds to the vertices, over all edges."""
        out = np.zeros((len(self._pieces), self._vertices))
        self._workers.run(lambda k, part: add(part, out[k]), list(enumerate(self._pieces)))
        return np.asarray(out.sum(0))

    def _degrees(self, v: FloatArray) -> FloatArray:
        def add(part: slice, out: FloatArray) -> None:
            ends, tau = (self._one[part], self._other[part]), self._tau[part]
            kernels.shares(*ends, self._weights[part], v, tau, self._curves[part])
            kernels.add_degrees(*ends, tau, out)

        sums = self._sums(add)
        return np.maximum(sums + np.exp(-v) if self._single else sums, 1e-300)

    def _product(self, x: FloatArray) -> FloatArray:
        def add(part: slice, out: FloatArray) -> None:
            kernels.add_product(self._one[part], self._other[part], self._curves[part], x, out)

        return self._sums(add)

    def _search(self, v: FloatArray, degrees: FloatArray) -> tuple[FloatArray, FloatArray] | None:
        """The next point and its degrees: a part of Newton's step that brings them closer to one."""
        wrong = degrees - 1.0
        before = float(np.abs(wrong).sum())
        step, part = self._newton(v, wrong), 1.0
        for _ in range(TRIALS):
            trial = v + part * step
            found = self._degrees(trial)
            if np.abs(found - 1.0).sum() <= (1.0 - 0.1 * part) * before:
                return trial, found
            part *= 0.3
        return None

    def _newton(self, v: FloatArray, wrong: FloatArray) -> FloatArray:
        """By conjugate gradients. Degrees fall by the curves of edges as the numbers of both ends rise."""
        diagonal = self._product(np.ones(self._vertices)) + (np.exp(-v) if self._single else 0.0) + 1e-300
        x, r = np.zeros_like(v), wrong.copy()
        z = r / diagonal
        p, rz = z, float(r @ z)
        goal = rz * min(0.1, max(1e-4, float(np.abs(wrong).max()))) ** 2  # beyond, rounding may lead astray
        for _ in range(PRODUCTS):
            if rz <= goal:
                break
            q = diagonal * p + self._product(p)
            along = float(p @ q)
            if not along > 0.0:
                break
            x += rz / along * p
            r -= rz / along * q
            z = r / diagonal
            rz, last = float(r @ z), rz
            p = z + rz / last * p
        return x

    def _value(self, v: FloatArray) -> float:
        rests = self._workers.run(kernels.log_rests, [(self._tau[part],) for part in self._pieces])
        return float(v.sum() + np.sum(rests))

    def _certificate(self, v: FloatArray, degrees: FloatArray) -> float:
        """That of `kernels.messages.certificates.certify`, with a gradient that is equal to the dual numbers."""
        wrong, level = 1.0 - degrees, v - 1.0
        if not self._single:  # constants do not matter
            level -= level.mean()
            level[: self._left] -= level[: self._left].mean() if self._left else 0.0
            level[self._left :] -= level[self._left :].mean()
        return max(float(level @ wrong), 0.0) + float(np.abs(wrong) @ (1.0 + np.abs(level)))
