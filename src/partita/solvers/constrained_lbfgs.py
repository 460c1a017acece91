"""Limited-memory BFGS within a convex set: all that it needs is values and gradients."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from ..core.contracts.capabilities import Capability, HasConstrainedStep
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_count
from .constrained import search_segment
from .lbfgs import Pair, add_pair, two_loop


class QuasiModel:
    """The quadratic of L-BFGS at a point, known by products with its matrix and with the inverse.

    ``C = sigma I - W M^-1 W'`` with ``W = [sigma S, Y]`` (Byrd, Nocedal and Schnabel, 1994).
    """

    is_bound = False

    def __init__(self, point: Point, pairs: deque[Pair], first: float) -> None:
        self.center, self.value0, self.gradient0 = point.parameters, point.value, point.gradient
        self._pairs, self._sigma = pairs, first
        if not pairs:
            return
        S, Y = (np.array([pair[k] for pair in pairs], dtype=np.float64) for k in (0, 1))
        y, rho = Y[-1], pairs[-1][2]
        self._sigma = rho * float(y @ y)
        SY = S @ Y.T
        L = np.tril(SY, -1)
        self._W = np.vstack([self._sigma * S, Y])
        self._M = scipy.linalg.lu_factor(np.block([[self._sigma * (S @ S.T), L], [L.T, -np.diag(np.diag(SY))]]))

    def matvec(self, vector: FloatArray) -> FloatArray:
        """C v."""
        out = self._sigma * vector
        if self._pairs:
            out -= self._W.T @ scipy.linalg.lu_solve(self._M, self._W @ vector)
        return np.asarray(out)

    def precondition(self, vector: FloatArray) -> FloatArray:
        """C^-1 v."""
        return two_loop(self._pairs, vector) if self._pairs else vector / self._sigma

    def solve(self, vector: FloatArray) -> FloatArray:
        """C^-1 v."""
        return self.precondition(vector)

    def value(self, parameters: FloatArray) -> float:
        """The quadratic at any parameters."""
        step = parameters - self.center
        return float(self.value0 + self.gradient0 @ step + 0.5 * (step @ self.matvec(step)))

    def matrix(self) -> FloatArray:
        """C."""
        out = self._sigma * np.eye(len(self.center))
        if self._pairs:
            out -= self._W.T @ scipy.linalg.lu_solve(self._M, self._W)
            out = 0.5 * (out + out.T)
        return np.asarray(out)

    def trace(self) -> float:
        """tr C."""
        return float(np.trace(self.matrix()))


@dataclass
class QuasiState:
    """The steps remembered."""

    pairs: deque[Pair]


@dataclass(frozen=True)
class ConstrainedLBFGS(Solver[QuasiState, Objective, HasConstrainedStep]):
    """Quadratic programs with the matrix of L-BFGS, and a search along the feasible segment to their solution.

    Every iterate is feasible. It takes values and gradients only; over bounds and ties programs are solved by products, so
    that the number of parameters does not matter.

    Parameters
    ----------
    memory : int
        Number of steps remembered.
    """

    key = "constrained_lbfgs"
    memory: int = 20

    def __post_init__(self) -> None:
        check_count("memory", self.memory, minimum=1)

    @property
    def name(self) -> str:
        return "constrained lbfgs"

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.CONSTRAINED_STEP})

    def start(self, objective: Objective, point: Point) -> QuasiState:
        return QuasiState(deque(maxlen=self.memory))

    def advance(self, state: QuasiState, point: HasConstrainedStep) -> Point | None:
        following = self._step(state, point)
        if following is None and state.pairs:
            state.pairs.clear()
            following = self._step(state, point)
        return following

    def _step(self, state: QuasiState, point: HasConstrainedStep) -> Point | None:
        smooth = point.unrestricted
        ray = point.step_within(QuasiModel(smooth, state.pairs, max(1.0, float(np.linalg.norm(smooth.gradient)))))
        found = None if ray is None else search_segment(point, ray)
        if found is None:
            return None
        following: HasConstrainedStep = found  # type: ignore[assignment]  # points of a ray are like its origin
        moved = following.parameters - point.parameters
        if moved.any():
            add_pair(state.pairs, moved, following.unrestricted.gradient - smooth.gradient)
        return following
