"""Limited-memory BFGS."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.protocols import Capability, Objective, Point
from ..core.results import FloatArray
from ..core.validation import check_count, check_flag
from ..kernels.linalg import add_and_dot
from .line_search import line_search

#: How far the slope must fall in a line search whose trials are cheap, and in one whose trials are not.
TIGHT, LOOSE = 0.1, 0.9
#: Parameters from which steps are remembered in single precision: the recursion only reads them, and time is memory traffic.
LARGE = 50_000
#: Iterations after which the scaling is taken anew.
REFRESH = 5


@dataclass(frozen=True)
class LBFGS:
    """Limited-memory BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        Number of steps remembered.
    scaled : bool
        Start the recursion from the objective's preconditioner, taken anew every few iterations, instead of the identity.
    """

    memory: int = 10
    scaled: bool = False

    def __post_init__(self) -> None:
        check_count("memory", self.memory, minimum=1)
        check_flag("scaled", self.scaled)

    @property
    def name(self) -> str:
        return "lbfgs"

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.SMOOTH, Capability.PRECONDITIONER} if self.scaled else {Capability.SMOOTH})

    def start(self, objective: Objective, point: Point) -> dict[str, Any]:
        # Where every trial costs nearly an evaluation, the first acceptable step is taken.
        curvature = LOOSE if getattr(objective, "costly_rays", False) else TIGHT
        return {"pairs": deque(maxlen=self.memory), "curvature": curvature, "scaling": _identity, "iteration": 0}

    def advance(self, state: dict[str, Any], point: Point) -> Point | None:
        pairs = state["pairs"]
        if self.scaled and state["iteration"] % REFRESH == 0:
            state["scaling"] = point.preconditioner()
        state["iteration"] += 1
        direction = -_two_loop(pairs, point.gradient, state["scaling"])
        first = 1.0 if pairs else 1.0 / max(1.0, float(np.linalg.norm(direction)))
        found = line_search(point, point.along(direction), first, state["curvature"])
        if found is None and pairs:
            pairs.clear()
            direction = -state["scaling"](point.gradient)
            first = 1.0 / max(1.0, float(np.linalg.norm(direction)))
            found = line_search(point, point.along(direction), first, state["curvature"])
        if found is None:
            return None
        following = found[0]
        s = following.parameters - point.parameters
        y = following.gradient - point.gradient
        sy, yy = float(s @ y), float(y @ y)
        if sy > 1e-14 * float(np.linalg.norm(s)) * np.sqrt(yy) and sy * yy > 0.0:
            kept = np.float32 if len(s) >= LARGE else np.float64
            pairs.append((s.astype(kept, copy=False), y.astype(kept, copy=False), 1.0 / sy))
        return following


def _identity(vector: FloatArray) -> FloatArray:
    return vector


def _two_loop(pairs: Any, gradient: FloatArray, scaling: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """The approximate inverse Hessian times the gradient."""
    q = gradient.copy()
    if not pairs:
        return scaling(q)
    S, Y, rho = zip(*pairs, strict=True)
    last = len(pairs) - 1
    a = np.empty(len(pairs))
    product = float(S[last] @ q)
    for i in range(last, -1, -1):
        a[i] = rho[i] * product
        product = add_and_dot(-a[i], Y[i], q, S[max(0, i - 1)])
    y = Y[last].astype(np.float64, copy=False)
    q = scaling(q) * (1.0 / (rho[last] * float(y @ scaling(y))))
    product = float(Y[0] @ q)
    for i in range(len(pairs)):
        product = add_and_dot(a[i] - rho[i] * product, S[i], q, Y[min(last, i + 1)])
    return q
