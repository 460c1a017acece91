"""Limited-memory BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import MutableSequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from ..core.contracts.capabilities import Capability, HasPreconditioner, Product
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_count, check_flag
from ..numerics.linalg import add_and_dot
from .line_search import line_search

#: How far the slope must fall in a line search whose trials are cheap, and in one whose trials are not.
TIGHT, LOOSE = 0.1, 0.9
#: Parameters from which steps are remembered in single precision: the recursion only reads them, and time is memory traffic.
LARGE = 50_000
#: Iterations after which the scaling is taken anew the first time; later ones wait longer and longer.
REFRESH = 5


#: A step, the change of the gradient along it, and the inverse of their product.
Pair: TypeAlias = tuple[np.ndarray, np.ndarray, float]


def identity(vector: FloatArray) -> FloatArray:
    return vector


@dataclass
class LBFGSState:
    """The steps remembered, what the recursion starts from, and when that is taken anew."""

    pairs: deque[Pair]
    curvature: float  # slope at which line searches end
    scaling: Product = identity
    iteration: int = 0
    refresh: int = 0


@dataclass(frozen=True)
class LBFGS(Solver[LBFGSState, Objective, HasPreconditioner]):
    """Limited-memory BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        Number of steps remembered.
    scaled : bool
        Start the recursion from the objective's preconditioner, taken anew every few iterations, instead of the identity.
    """

    key = "lbfgs"
    memory: int = 10
    scaled: bool = False

    def __post_init__(self) -> None:
        check_count("memory", self.memory, minimum=1)
        check_flag("scaled", self.scaled)

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.SMOOTH, Capability.PRECONDITIONER} if self.scaled else {Capability.SMOOTH})

    def start(self, objective: Objective, point: Point) -> LBFGSState:
        # Where every trial costs nearly an evaluation, the first acceptable step is taken.
        return LBFGSState(deque(maxlen=self.memory), LOOSE if objective.costly_rays else TIGHT)

    def advance(self, state: LBFGSState, point: HasPreconditioner) -> Point | None:
        pairs = state.pairs
        if self.scaled and state.iteration == state.refresh:
            state.scaling = point.preconditioner()
            state.refresh = 2 * state.iteration + REFRESH
        state.iteration += 1
        direction = -two_loop(pairs, point.gradient, state.scaling)
        first = 1.0 if pairs else 1.0 / max(1.0, float(np.linalg.norm(direction)))
        found = line_search(point, point.along(direction), first, state.curvature)
        if found is None and pairs:
            pairs.clear()
            direction = -state.scaling(point.gradient)
            first = 1.0 / max(1.0, float(np.linalg.norm(direction)))
            found = line_search(point, point.along(direction), first, state.curvature)
        if found is None:
            return None
        following = found[0]
        add_pair(pairs, following.parameters - point.parameters, following.gradient - point.gradient)
        return following


def add_pair(pairs: MutableSequence[Pair], s: FloatArray, y: FloatArray) -> None:
    """Remember a step and the change of the gradient along it, if they show curvature."""
    sy, yy = float(s @ y), float(y @ y)
    if sy > 1e-14 * float(np.linalg.norm(s)) * np.sqrt(yy) and sy * yy > 0.0:
        kept = np.float32 if len(s) >= LARGE else np.float64
        pairs.append((s.astype(kept, copy=False), y.astype(kept, copy=False), 1.0 / sy))


def two_loop(pairs: MutableSequence[Pair], gradient: FloatArray, scaling: Product = identity) -> FloatArray:
    """The inverse Hessian that the pairs suggest, times the gradient; without pairs it is `scaling`."""
    q = gradient.copy()
    if not pairs:
        return np.asarray(scaling(q))
    S, Y, rho = zip(*pairs, strict=True)
    last = len(pairs) - 1
    a = np.empty(len(pairs))
    product = float(S[last] @ q)
    for i in range(last, -1, -1):
        a[i] = rho[i] * product
        product = add_and_dot(-a[i], Y[i], q, S[max(0, i - 1)])
    y = Y[last].astype(np.float64, copy=False)
    q = np.asarray(scaling(q)) * (1.0 / (rho[last] * float(y @ scaling(y))))
    product = float(Y[0] @ q)
    for i in range(len(pairs)):
        product = add_and_dot(a[i] - rho[i] * product, S[i], q, Y[min(last, i + 1)])
    return np.asarray(q)
