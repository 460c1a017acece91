"""Marginals through a solver for the best configuration only: Frank-Wolfe on a concave free energy.

Every point is a mean of configurations that the solver has found (the active ones). The gap, what the solver's answer says a
step could gain at most, is above the distance to the largest value: it is the certificate, and the reason to stop.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from ..core.errors import NumericalError
from ..core.results import FloatArray, Result, Status
from ..core.validation import check_choice, check_count, check_real

#: Plain with line search; exchanges between active configurations and the best; the same among active ones only, as long as
#: that pays, without asking the solver.
VARIANTS = ("plain", "pairwise", "blended")
#: Exchanges go on among active configurations as long as they promise this part of the last certificate, at most so often.
LAZY, TURNS = 0.5, 1000
#: What stands for zero in logarithms: of tau, and of 1 - tau. Steps that leave an edge without any share then never pay.
TINY, REST = 1e-300, 1e-16
#: What a solver may be wrong by, in parts of the scores: linear programs are the least exact.
NOISE = 1e-7


class FreeEnergy(Protocol):
    """A concave function on the convex hull of configurations.

    `solver` is what finds the best configuration, for messages, and `delta` how far below the best its answers may be.
    """

    solver: str
    delta: float

    def value(self, tau: FloatArray) -> float: ...
    def gradient(self, tau: FloatArray) -> FloatArray: ...
    def best(self, scores: FloatArray) -> FloatArray:
        """The configuration of largest score, as a point."""
        ...

    def rival(self, scores: FloatArray, vertex: FloatArray) -> float:
        """The score of a configuration that is found without the solver, which may not be better than its answer."""
        ...

    def start(self) -> FloatArray:
        """Configurations whose mean has no zero that can be avoided, one per row."""
        ...


class _State:
    """A mean of configurations, with a little of the first mean in it that stays: logarithms remain finite."""

    def __init__(self, first: FloatArray, floor: float) -> None:
        self.active = first  # one configuration per row
        self.shares = np.full(len(first), 1.0 / len(first))
        self.floor, self._first = floor, first.mean(0)
        self._tidy()

    def add(self, vertex: FloatArray) -> int:
        """The row of a configuration, a new one if need be."""
        same = np.flatnonzero((self.active == vertex).all(1))
        if len(same):
            return int(same[0])
        self.active = np.vstack([self.active, vertex])
        self.shares = np.append(self.shares, 0.0)
        return len(self.shares) - 1

    def exchange(self, giver: int, taker: int, energy: FreeEnergy) -> bool:
        """Move what is best of a share from one configuration to another; False if that is nothing."""
        direction = (1.0 - self.floor) * (self.active[taker] - self.active[giver])
        step = _line_search(energy, self.tau, direction, float(self.shares[giver]))
        self.shares[taker] += step
        self.shares[giver] -= step
        self._tidy()
        return step > 0.0

    def toward(self, taker: int, energy: FreeEnergy) -> bool:
        """Move what is best of everything to one configuration; False if that is nothing."""
        direction = (1.0 - self.floor) * (self.active[taker] - self.shares @ self.active)
        step = _line_search(energy, self.tau, direction, 1.0)
        self.shares *= 1.0 - step
        self.shares[taker] += step
        self._tidy()
        return step > 0.0

    def _tidy(self) -> None:
        kept = self.shares > 1e-15
        if not kept.all():
            self.active, self.shares = self.active[kept], self.shares[kept]
        self.shares /= self.shares.sum()
        self.tau = self.floor * self._first + (1.0 - self.floor) * (self.shares @ self.active)


def maximize(
    energy: FreeEnergy, variant: str = "blended", tol: float = 1e-6, max_iter: int = 10_000
) -> tuple[FloatArray, float, float, int]:
    """The point of the largest value found, that value, its certificate, and how often the solver was asked.

    It also ends where no step gains anything, which rounding may bring about; the certificate then is above `tol`.

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
    if variant == "plain":
        return _plain(energy, first.mean(0), tol, max_iter)
    state = _State(first, _floor(energy, first.mean(0), tol))
    calls, turns, promise, certificate = 1, 0, np.inf, np.inf  # one for the floor
    while calls < max_iter:
        gradient = energy.gradient(state.tau)
        scores = state.active @ gradient
        worst, local = int(np.argmin(scores)), int(np.argmax(scores))
        lazy = variant == "blended" and scores[local] - scores[worst] >= promise and turns < TURNS
        if lazy and state.exchange(worst, local, energy):
            turns += 1
            continue
        vertex = energy.best(gradient)
        calls, turns = calls + 1, 0
        certificate = certified(energy, gradient, vertex, state.tau, float(scores[local]))
        if certificate <= tol:
            certified(energy, gradient, vertex, state.tau, energy.rival(gradient, vertex))
            break
        if certificate < promise:
            promise = LAZY * certificate
        taker = state.add(vertex)
        if variant == "pairwise" and state.exchange(worst, taker, energy):
            continue
        if not state.toward(taker, energy):
            break
    return state.tau, energy.value(state.tau), max(certificate, 0.0), calls


def _plain(energy: FreeEnergy, tau: FloatArray, tol: float, max_iter: int) -> tuple[FloatArray, float, float, int]:
    """Without a list of configurations: every step is towards the best one, and not quite all the way."""
    certificate, calls = np.inf, 0
    while calls < max_iter:
        gradient = energy.gradient(tau)
        vertex = energy.best(gradient)
        direction = vertex - tau
        calls, certificate = calls + 1, certified(energy, gradient, vertex, tau)
        if certificate <= tol:
            certified(energy, gradient, vertex, tau, energy.rival(gradient, vertex))
        step = _line_search(energy, tau, direction, 1.0 - 1e-6) if certificate > tol else 0.0
        if step <= 0.0:
            break
        tau = tau + step * direction
    return tau, energy.value(tau), max(certificate, 0.0), calls


def _floor(energy: FreeEnergy, tau: FloatArray, tol: float) -> float:
    """The part of the first mean that stays: what it costs is a small part of `tol`."""
    gradient = energy.gradient(tau)
    reach = certified(energy, gradient, energy.best(gradient), tau)
    return float(np.clip(0.1 * tol / (1.0 + reach), 1e-13, 1e-4))


def certified(energy: FreeEnergy, scores: FloatArray, vertex: FloatArray, tau: FloatArray, known: float = -np.inf) -> float:
    """What a step from tau to the best configuration could gain at most.

    No point of the hull has a better score than the best configuration: if tau has one, or a configuration that is `known`
    with its score, the solver did not answer with the best one, and what follows from its answers is no certificate.
    """
    best = float(scores @ vertex)
    least = max(float(scores @ tau), known)
    room = energy.delta + NOISE * (1.0 + float(np.abs(scores) @ (np.abs(vertex) + tau)))
    if not best >= least - room:
        raise NumericalError(
            f"{energy.solver} answered with a configuration of score {best:.9g} where one of {least:.9g} is known: it does "
            "not find the best configuration, and its answers certify nothing. Mend it, or state its largest error as delta"
        )
    return best - float(scores @ tau)


def _line_search(energy: FreeEnergy, tau: FloatArray, direction: FloatArray, longest: float) -> float:
    """The step at which a concave function is largest, by secants of its slope within a bracket."""
    slope: Callable[[float], float]
    if isinstance(energy, MatchingEnergy):
        slope = energy.along(tau, direction)
    else:

        def slope(step: float) -> float:
            return float(energy.gradient(tau + step * direction) @ direction)

    lo, hi, at_lo, at_hi = 0.0, longest, slope(0.0), slope(longest)
    if at_hi >= 0.0 or at_lo <= 0.0:
        return longest if at_hi >= 0.0 else 0.0
    first, halve = at_lo, False
    for _ in range(60):
        width = hi - lo
        step = lo + (0.5 if halve else min(max(at_lo / (at_lo - at_hi), 0.01), 0.99)) * width
        now = slope(step)
        if now > 0.0:
            lo, at_lo = step, now
        else:
            hi, at_hi = step, now
        halve = hi - lo > 0.5 * width
        if abs(now) <= 1e-4 * first or hi - lo <= 1e-15 * longest:
            break
    return lo if lo > 0.0 else 0.5 * hi


class MatchingEnergy:
    """Weights plus the entropy of matchings (see `inference.matching_bethe`), over the hull of perfect matchings, or of all.

    Parameters
    ----------
    structure : BipartiteMatching or Matching
    weights : array of shape (edges,)
        All finite.
    rho : float, from 0 to 1
    """

    solver, delta = "the solver for best matchings", 0.0

    def __init__(self, structure: Any, weights: FloatArray, rho: float = 1.0) -> None:
        self.structure, self.weights, self.rho = structure, weights, rho

    def _parts(self, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """tau, 1 - tau, and what is missing to one at vertices (nothing for perfect matchings), none of them zero."""
        s, rest = self.structure, 1.0 - tau
        heavy = np.flatnonzero(tau > 0.9)
        if not s.perfect:
            degrees = np.bincount(s.ends.ravel(), weights=np.repeat(tau, 2), minlength=s.n_vertices)
            alone = np.maximum(1.0 - degrees, TINY)
        else:
            alone = np.ones(0)
        if s.perfect and len(heavy):  # the other edges of a vertex keep the digits
            light = tau.copy()
            light[heavy] = 0.0
            others = np.bincount(s.ends[:, 0], weights=light, minlength=s.n_vertices)
            others += np.bincount(s.ends[:, 1], weights=light, minlength=s.n_vertices)
            rest[heavy] = others[s.ends[heavy, 0]]
        return np.maximum(tau, TINY), np.maximum(rest, REST), alone

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

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        """The slope of the value at steps in a direction; only edges that change cost anything."""
        t, rest, alone = self._parts(tau)
        used = np.flatnonzero(direction)
        d, t, rest, power = direction[used], t[used], rest[used], 2.0 * self.rho - 1.0
        ends = self.structure.ends[used]
        fixed = float(d @ self.weights[used]) - (1.0 + power) * float(d.sum())
        leaving = np.bincount(ends.ravel(), weights=np.repeat(d, 2), minlength=self.structure.n_vertices)
        if len(alone):
            fixed += self.rho * float(leaving.sum())

        def slope(step: float) -> float:
            out = fixed - float(d @ np.log(np.maximum(t + step * d, TINY)))
            out -= power * float(d @ np.log(np.maximum(rest - step * d, REST)))
            if len(alone):
                out += self.rho * float(leaving @ np.log(np.maximum(alone - step * leaving, TINY)))
            return out

        return slope

    def best(self, scores: FloatArray) -> FloatArray:
        y = self.structure.best(scores[None])
        return np.asarray(self.structure._edges(y)[0])

    def rival(self, scores: FloatArray, vertex: FloatArray) -> float:
        return -np.inf  # the solver is the structure's own

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
    weights = structure.rows(weights)
    if not np.isfinite(weights).all():
        raise ValueError("Frank-Wolfe takes finite potentials: leave forbidden edges out of the graph")
    found = [maximize(MatchingEnergy(structure, row, rho), variant, tol, max_iter) for row in weights]
    value, gap = np.array([one[1] for one in found]), np.array([one[2] for one in found])
    status = Status.CONVERGED if (gap <= tol).all() else Status.UNCERTIFIED
    calls = max(one[3] for one in found)
    return Result(
        value,
        np.array([one[0] for one in found]),
        status,
        exact=False,
        n_iter=calls,
        engine="frank_wolfe",
        certificate=gap,
        residual=float(gap.max()),
        tol=tol,
    )
