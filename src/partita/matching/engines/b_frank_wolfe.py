"""Free energies of b-matchings through best b-matchings only: Frank-Wolfe on their hull."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from ...core.results import FloatArray, Result
from ...inference.covering import covering
from ...inference.entropies import REST
from ...inference.frank_wolfe import TINY, infer_all
from ...inference.oracle import SHARES
from ..kernels.messages.cardinality_entropy import entropies, slope
from .entropy_weights import one_weight
from .frank_wolfe import MatchingEnergy


class BMatchingEnergy(MatchingEnergy):
    """Weights plus the entropy of b-matchings (see `engines.b_bethe`), over their hull. Parameters are those of
    `MatchingEnergy`; the structure is a `BMatching`."""

    @staticmethod
    def _entropy_weights(structure: Any, rho: Any) -> FloatArray:
        return np.full(structure.n_vertices, one_weight(structure, rho, zero=True))

    def _entropies(self, tau: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """tau and 1 - tau, none of them zero, the entropies of vertices, and the sums of their slopes at each edge."""
        s = self.structure
        t = np.clip(tau, TINY, 1.0 - REST)
        theta, found = np.empty(2 * s.n_edges), np.empty(s.n_vertices)
        entropies(s.half, s.b, s.perfect, t, theta, found)
        slopes = np.bincount(s.half[1], weights=theta, minlength=s.n_edges)
        return t, 1.0 - t, found, np.asarray(slopes, dtype=np.float64)

    def compiled(self) -> None:
        """Compiled exchanges know groups of which one is chosen, not b."""
        return None

    def value(self, tau: FloatArray) -> float:
        t, rest, vertices, _ = self._entropies(tau)
        own = -float(t @ np.log(t) + rest @ np.log(rest))
        return float(self.weights @ tau + (1.0 - 2.0 * self.rho) * own + self.rho * vertices.sum())

    def gradient(self, tau: FloatArray) -> FloatArray:
        t, rest, _, slopes = self._entropies(tau)
        return np.asarray(self.weights - (1.0 - 2.0 * self.rho) * (np.log(t) - np.log(rest)) - self.rho * slopes)

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        """The slope of the value at steps in a direction."""
        s, fixed = self.structure, float(self.weights @ direction)
        given: Any = (s.half, s.b, s.perfect, tau, direction)
        rho, room = float(self.rho), (np.empty(2 * s.n_edges), np.empty(s.n_vertices))
        return lambda step: fixed + slope(*given, step, rho, TINY, REST, *room)

    def _check(self, point: FloatArray) -> None:
        """Refuse an answer that is no b-matching."""
        s = self.structure
        (degrees,) = s.degrees(point[None])
        wrong = np.abs(degrees - s.b) > SHARES if s.perfect else degrees > s.b + SHARES
        if wrong.any():
            v = int(np.argmax(wrong))
            raise ValueError(
                f"{self.solver} must answer with a b-matching: vertex {v} has {degrees[v]:g} edges, and b asks for {s.b[v]}"
            )

    @cached_property
    def first(self) -> FloatArray:
        """`start`."""
        rows = covering(self.own_best, self.structure.n_edges)
        return rows if self.structure.perfect else np.concatenate([rows, np.zeros((1, self.structure.n_edges))])


def b_matching_frank_wolfe(
    structure: Any,
    weights: FloatArray,
    rho: Any = 1.0,
    oracle: Any = None,
    variant: str = "blended",
    tol: float = 1e-6,
    max_iter: int = 10_000,
) -> Result:
    """Free energies of b-matchings as in `b_matching_bethe`, through best b-matchings only, which `oracle` finds (see
    `MatchingEnergy`).

    On graphs that are not bipartite, the maximum is over the hull of b-matchings, which is smaller than what messages see.
    """
    energies = [BMatchingEnergy(structure, row, rho, oracle) for row in structure.rows(weights)]
    return infer_all(energies, variant, tol, max_iter)
