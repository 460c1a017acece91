"""Free energies of matchings through best matchings only: Frank-Wolfe on the matching polytope."""

from __future__ import annotations

import functools
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ...core.results import FloatArray, Result
from ...inference.covering import covering
from ...inference.frank_wolfe import REST, TINY, FreeEnergy, infer_all
from ...inference.oracle import SHARES, Oracle, oracle_name, solver_of
from ...numerics.exchanges import GroupTerms, group_terms
from .entropy_weights import entropy_weights


class MatchingEnergy(FreeEnergy):
    """Weights plus the entropy of matchings (see `engines.bethe`), over the hull of perfect matchings, or of all.

    Parameters
    ----------
    structure : BipartiteMatching or Matching
    weights : array of shape (edges,)
        -inf forbids an edge.
    rho : float, from 0 to 1, or a pair for rows and columns
    oracle : Oracle, object with argmax, or callable, optional
        A solver for best matchings. An `Oracle` takes weights of edges as one vector; others take potentials as the
        structure does, and answer with a matching as the structure has it. Default: the structure's own.
    """

    structure: Any
    weights: FloatArray
    rho: float

    def __init__(self, structure: Any, weights: FloatArray, rho: Any = 1.0, oracle: Any = None) -> None:
        self._forbidden = np.isneginf(weights)
        self.weights = np.where(self._forbidden, 0.0, weights) if self._forbidden.any() else weights
        self.structure, self.alone = structure, self._entropy_weights(structure, rho)
        self.rho = 0.5 * float(self.alone[0] + self.alone[-1])
        self.delta: float = 0.0  # the largest error of an answer so far
        self.oracle: Oracle | None = None
        self.solver: str = "the solver for best matchings"
        if oracle is not None:
            self.oracle = oracle if isinstance(oracle, Oracle) else solver_of(self._as_given(oracle), self._point)
            self.solver = f"oracle {oracle_name(self.oracle)}"

    @staticmethod
    def _entropy_weights(structure: Any, rho: Any) -> FloatArray:
        """Those of vertices."""
        pair = entropy_weights(structure, rho, zero=True)
        return np.repeat(pair, [structure.left, structure.n_vertices - structure.left])

    def _as_given(self, oracle: Any) -> Callable[[FloatArray], Any]:
        """A solver that takes potentials in the shape that the structure has them in."""
        function = getattr(oracle, "argmax", oracle)
        if not callable(function):
            raise ValueError(f"oracle must be an object with argmax(potentials), or a function; got {type(oracle).__name__}")

        @functools.wraps(function)
        def ask(scores: FloatArray) -> Any:
            return function(self.structure.as_given(scores[None])[0])

        return ask

    def _point(self, y: Any) -> FloatArray:
        return np.asarray(self.structure.indicators(np.atleast_2d(np.asarray(y)))[0])

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
        return float(out - (self.alone * alone) @ np.log(alone)) if len(alone) else float(out)

    def gradient(self, tau: FloatArray) -> FloatArray:
        t, rest, alone = self._parts(tau)
        out = self.weights - np.log(t) - 1.0 - (2.0 * self.rho - 1.0) * (np.log(rest) + 1.0)
        if len(alone):
            logs = self.alone * (1.0 + np.log(alone))
            out = out + (logs[self.structure.ends[:, 0]] + logs[self.structure.ends[:, 1]])
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
            fixed += float((self.alone * leaving).sum())

        def slope(step: float) -> float:
            out = fixed - float(d @ np.log(np.maximum(t + step * d, TINY)))
            out -= power * float(d @ np.log(np.maximum(rest - step * d, REST)))
            if len(alone):
                out += float((self.alone * leaving) @ np.log(np.maximum(alone - step * leaving, TINY)))
            return out

        return slope

    def compiled(self) -> tuple[GroupTerms, FloatArray] | None:
        s, both = self.structure, np.full(self.structure.n_edges, 2.0 * self.rho)
        own = 1.0 - both
        sure = self.first.min(0) >= 1.0  # in every matching: their curvature says nothing, and is infinite
        own[sure] = both[sure] = 0.0
        slack = np.zeros(s.n_vertices) if s.perfect else self.alone
        edges = np.repeat(np.arange(s.n_edges), 2)
        return group_terms(own, both, slack, edges, s.ends.ravel()), self.weights

    def own_best(self, scores: FloatArray) -> FloatArray:
        """The structure's own best matching."""
        allowed = self._allowed(scores)
        return np.asarray(self.structure.indicators(self.structure.best(allowed[None]))[0])

    def _allowed(self, scores: FloatArray) -> FloatArray:
        return np.where(self._forbidden, -np.inf, scores) if self._forbidden.any() else scores

    def best(self, scores: FloatArray) -> FloatArray:
        if self.oracle is None:
            return self.own_best(scores)
        answer = self.oracle(self._allowed(scores))
        if answer.point.shape != scores.shape:
            raise ValueError(f"{self.solver} must answer with {len(scores)} shares, got shape {answer.point.shape}")
        self._check(answer.point)
        used = np.flatnonzero(self._forbidden & (answer.point > SHARES))
        if len(used):
            i, j = (self.structure.ends[used[0]] - [0, self.structure.left]).tolist()
            raise ValueError(f"{self.solver} must not answer with edges that are forbidden (-inf), such as {i} with {j}")
        self.delta = max(self.delta, answer.delta)
        return np.where(self._forbidden, 0.0, answer.point) if self._forbidden.any() else answer.point

    def _check(self, point: FloatArray) -> None:
        """Refuse an answer that is no matching."""
        s = self.structure
        degrees = np.bincount(s.ends.ravel(), weights=np.repeat(point, 2), minlength=s.n_vertices)
        wrong = np.abs(degrees - 1.0) > SHARES if s.perfect else degrees > 1.0 + SHARES
        if wrong.any():
            v = int(np.argmax(wrong))
            raise ValueError(f"{self.solver} must answer with a matching: vertex {v} is in {degrees[v]:g} of its edges")

    def rival(self, scores: FloatArray, vertex: FloatArray) -> float:
        """The score of the structure's own best matching, where another solver was asked."""
        if self.oracle is None:
            return -np.inf
        return float(scores @ self.own_best(scores))

    @cached_property
    def first(self) -> FloatArray:
        """`start`."""
        if not self._forbidden.any():
            return np.asarray(self.structure.indicators(every_edge(self.structure)))
        rows = covering(self.own_best, self.structure.n_edges)
        return rows if self.structure.perfect else np.concatenate([rows, np.zeros((1, self.structure.n_edges))])

    def start(self) -> FloatArray:
        return self.first


def every_edge(structure: Any) -> Any:
    """Matchings that have every edge of a complete graph: shifts of rows, or the days of a tournament. On other graphs, best
    matchings for the edges not yet had."""
    if structure.left and structure.perfect:
        n = structure.left
        return (np.arange(n) + np.arange(n)[:, None]) % n
    if not structure.left and structure.complete:
        return _tournament(structure)
    had, rows = np.zeros(structure.n_edges, bool), []
    while True:
        y = structure.best(np.where(had, 0.0, 1.0)[None] + (0.0 if structure.perfect else 1e-9))
        new = structure.indicators(y)[0] > 0.0
        if not (new & ~had).any():
            break
        had |= new
        rows.append(y[0])
    if not structure.perfect:
        rows.append(np.full(structure.left or structure.n_vertices, -1))
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
    rho: Any = 1.0,
    oracle: Any = None,
    variant: str = "blended",
    tol: float = 1e-6,
    max_iter: int = 10_000,
) -> Result:
    """Free energies of matchings as in `matching_bethe`, through best matchings only, which `oracle` finds (see
    `MatchingEnergy`).

    On graphs that are not bipartite, the maximum is over the hull of matchings, which is smaller than what messages see.
    """
    energies = [MatchingEnergy(structure, row, rho, oracle) for row in structure.rows(weights)]
    return infer_all(energies, variant, tol, max_iter)
