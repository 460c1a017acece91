"""Marginals through a solver for the best configuration only: Frank-Wolfe on a concave free energy.

Every point is a mean of configurations that the solver has found (the active ones). The gap, what the solver's answer says a
step could gain at most, is above the distance to the largest value: it is the certificate, and the reason to stop.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from ..core.results import FloatArray, Result, Status
from ..core.validation import check_choice, check_count, check_real

#: Plain with line search; exchanges between active configurations and the best; the same among active ones only, as long as
#: that pays, without asking the solver.
VARIANTS = ("plain", "pairwise", "blended")


class FreeEnergy(Protocol):
    """A concave function on the convex hull of configurations."""

    def value(self, tau: FloatArray) -> float: ...
    def gradient(self, tau: FloatArray) -> FloatArray: ...
    def best(self, scores: FloatArray) -> FloatArray:
        """The configuration of largest score, as a point."""
        ...

    def start(self) -> FloatArray:
        """Configurations whose mean has no zero that can be avoided, one per row."""
        ...


@dataclass
class _State:
    """A mean of configurations."""

    active: FloatArray  # one configuration per row
    shares: FloatArray
    tau: FloatArray

    def add(self, vertex: FloatArray) -> int:
        """The row of a configuration, a new one if need be."""
        same = np.flatnonzero((self.active == vertex).all(1))
        if len(same):
            return int(same[0])
        self.active = np.vstack([self.active, vertex])
        self.shares = np.append(self.shares, 0.0)
        return len(self.shares) - 1

    def exchange(self, giver: int, taker: int, step: float) -> None:
        """Move a share from one configuration to another."""
        self.shares[giver] -= step
        self.shares[taker] += step
        self._tidy()

    def toward(self, taker: int, step: float) -> None:
        """Move a share of everything to one configuration."""
        self.shares *= 1.0 - step
        self.shares[taker] += step
        self._tidy()

    def _tidy(self) -> None:
        kept = self.shares > 1e-15
        if not kept.all():
            self.active, self.shares = self.active[kept], self.shares[kept]
        self.shares /= self.shares.sum()
        self.tau = self.shares @ self.active


def maximize(
    energy: FreeEnergy, variant: str = "blended", tol: float = 1e-6, max_iter: int = 10_000
) -> tuple[FloatArray, float, float, int]:
    """The point of the largest value found, that value, its certificate, and how often the solver was asked.

    Parameters
    ----------
    energy : FreeEnergy
    variant : {"plain", "pairwise", "blended"}
    tol : float
        Stop when the certificate is at most so large.
    max_iter : int
        Most calls of the solver.
    """
    check_choice("variant", variant, VARIANTS)
    check_real("tol", tol, minimum=0.0)
    check_count("max_iter", max_iter, minimum=1)
    first = energy.start()
    state = _State(first, np.full(len(first), 1.0 / len(first)), first.mean(0))
    calls, promise, certificate = 0, np.inf, np.inf
    while calls < max_iter:
        gradient = energy.gradient(state.tau)
        scores = state.active @ gradient
        worst, local = int(np.argmin(scores)), int(np.argmax(scores))
        if variant == "blended" and scores[local] - scores[worst] >= promise and local != worst:
            direction = state.active[local] - state.active[worst]
            step = _line_search(energy, state.tau, direction, float(state.shares[worst]))
            state.exchange(worst, local, step)
            continue
        vertex = energy.best(gradient)
        calls += 1
        gap = float(gradient @ (vertex - state.tau))
        certificate = gap
        if gap <= tol:
            break
        if variant == "blended":
            if gap < 0.5 * promise and np.isfinite(promise):
                promise = 0.5 * min(promise, gap) if gap > 0.0 else 0.5 * promise
            elif not np.isfinite(promise):
                promise = 0.5 * gap
        taker = state.add(vertex)
        if variant == "pairwise":
            direction = vertex - state.active[worst]
            step = _line_search(energy, state.tau, direction, float(state.shares[worst]))
            state.exchange(worst, taker, step)
        else:
            step = _line_search(energy, state.tau, vertex - state.tau, 1.0)
            state.toward(taker, step)
    return state.tau, energy.value(state.tau), max(certificate, 0.0), calls


def _line_search(energy: FreeEnergy, tau: FloatArray, direction: FloatArray, longest: float) -> float:
    """The step at which a concave function is largest."""

    def slope(step: float) -> float:
        return float(energy.gradient(tau + step * direction) @ direction)

    lo, hi = 0.0, longest
    if slope(hi) >= 0.0:
        return hi
    for _ in range(60):
        middle = 0.5 * (lo + hi)
        if slope(middle) > 0.0:
            lo = middle
        else:
            hi = middle
        if hi - lo <= 1e-12 * longest:
            break
    return lo if lo > 0.0 else hi


class MatchingEnergy:
    """Weights plus the entropy of matchings (see `inference.matching_bethe`), over the hull of perfect matchings, or of all.

    Parameters
    ----------
    structure : BipartiteMatching or Matching
    weights : array of shape (edges,)
        All finite.
    rho : float, from 0 to 1
    """

    def __init__(self, structure: Any, weights: FloatArray, rho: float = 1.0) -> None:
        self.structure, self.weights, self.rho = structure, weights, rho

    def _parts(self, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        tau = np.maximum(tau, 1e-300)
        s = self.structure
        if s.perfect:
            return tau, np.maximum(1.0 - tau, 1e-16), np.ones(0)
        degrees = np.bincount(s.ends.ravel(), weights=np.repeat(tau, 2), minlength=s.n_vertices)
        return tau, np.maximum(1.0 - tau, 1e-16), np.maximum(1.0 - degrees, 1e-300)

    def value(self, tau: FloatArray) -> float:
        t, rest, alone = self._parts(tau)
        out = self.weights @ tau - tau @ np.log(t) + (2.0 * self.rho - 1.0) * (rest @ np.log(rest))
        return float(out - self.rho * (alone @ np.log(alone)))

    def gradient(self, tau: FloatArray) -> FloatArray:
        t, rest, alone = self._parts(tau)
        out = self.weights - np.log(t) - 1.0 - (2.0 * self.rho - 1.0) * (np.log(rest) + 1.0)
        if len(alone):
            logs = 1.0 + np.log(alone)
            out = out + self.rho * (logs[self.structure.ends[:, 0]] + logs[self.structure.ends[:, 1]])
        return np.asarray(out)

    def best(self, scores: FloatArray) -> FloatArray:
        y = self.structure.best(scores[None])
        return np.asarray(self.structure._edges(y)[0])

    def start(self) -> FloatArray:
        return np.asarray(self.structure._edges(covering(self.structure)))


def covering(structure: Any) -> Any:
    """Matchings that have every edge of a complete graph: shifts of rows, or the days of a tournament. On other graphs, best
    matchings for the edges not yet had."""
    if structure.left:
        n = structure.left
        return (np.arange(n) + np.arange(n)[:, None]) % n
    if structure.complete:
        return _tournament(structure)
    had, rows = np.zeros(structure.n_edges, bool), []
    while True:
        y = structure.best(np.where(had, 0.0, 1.0)[None] + (0.0 if structure.perfect else 1e-9))
        new = structure._edges(y)[0] > 0.0
        if not (new & ~had).any():
            break
        had |= new
        rows.append(y[0])
    if not structure.perfect:
        rows.append(np.full(structure.n_vertices, -1))
    return np.array(rows)


def _tournament(structure: Any) -> Any:
    """Everyone meets everyone: with an odd number one stays alone each day."""
    n = structure.n_vertices
    even = n + n % 2
    rows = []
    for day in range(even - 1):
        circle = [even - 1, *((day + k) % (even - 1) for k in range(even - 1))]
        partners = np.full(even, -1)
        partners[circle[0]], partners[circle[1]] = circle[1], circle[0]
        for k in range(1, even // 2):
            a, b = circle[1 + k], circle[even - k]
            partners[a], partners[b] = b, a
        partners = partners[:n]
        rows.append(np.where(partners >= n, -1, partners))
    if not structure.perfect:
        rows.append(np.full(n, -1))
    return np.array(rows)


def matching_frank_wolfe(
    structure: Any,
    weights: FloatArray,
    rho: float = 1.0,
    variant: str = "blended",
    tol: float = 1e-6,
    max_iter: int = 10_000,
) -> Result:
    """Free energies of matchings as in `matching_bethe`, through best matchings only.

    On graphs that are not bipartite, the maximum is over the hull of matchings, which is smaller than what messages see.
    """
    if not 0.0 <= check_real("rho", rho) <= 1.0:
        raise ValueError(f"rho must be from 0 to 1, got {rho}")
    if not np.isfinite(weights).all():
        raise ValueError("Frank-Wolfe takes finite potentials: leave forbidden edges out of the graph")
    found = [maximize(MatchingEnergy(structure, row, rho), variant, tol, max_iter) for row in weights]
    value, gap = np.array([one[1] for one in found]), np.array([one[2] for one in found])
    status = Status.CONVERGED if (gap <= tol).all() else Status.UNSETTLED
    calls = max(one[3] for one in found)
    return Result(value, np.array([one[0] for one in found]), status, exact=False, n_iter=calls, certificate=gap)
