"""Names of solvers, and the automatic choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.protocols import Capability, Objective, Point, Solver
from .constrained import ConstrainedNewton
from .descent import ConjugateGradient, SteepestDescent
from .lbfgs import LBFGS
from .majorize import Majorize
from .newton import Newton
from .proximal import ProximalNewton
from .sgd import SGD
from .stochastic import StochasticBound


@dataclass(frozen=True)
class Auto:
    """The fastest solver measured for what the objective offers.

    Newton with Hessian products, L-BFGS without, proximal Newton where the gradient has jumps, constrained Newton on sets.
    Where a step along a line costs nearly as much as a new point (chains), L-BFGS scaled by the preconditioner.
    """

    @property
    def name(self) -> str:
        return "auto"

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset()

    @property
    def uses(self) -> frozenset[Capability]:
        return frozenset(Capability)

    def start(self, objective: Objective, point: Point) -> tuple[Solver, Any]:
        offers = objective.capabilities
        chosen: Solver = next((s for s in (Newton(), LBFGS()) if s.requires <= offers), ProximalNewton())
        if getattr(objective, "costly_rays", False) and LBFGS(scaled=True).requires <= offers:
            chosen = LBFGS(memory=20, scaled=True)
        if Capability.CONSTRAINED_STEP in offers:
            chosen = ConstrainedNewton()
        return chosen, chosen.start(objective, point)

    def advance(self, state: tuple[Solver, Any], point: Point) -> Point | None:
        chosen, inner = state
        return chosen.advance(inner, point)


SOLVERS: dict[str, Any] = {
    "auto": Auto,
    "newton": Newton,
    "lbfgs": LBFGS,
    "majorize": Majorize,
    "constrained_newton": ConstrainedNewton,
    "cg": ConjugateGradient,
    "steepest": SteepestDescent,
    "stochastic": StochasticBound,
    "sgd": SGD,
    "proximal": ProximalNewton,
}


def make_solver(solver: str | Solver) -> Solver:
    """A solver from its name, or the object itself."""
    if isinstance(solver, str):
        if solver not in SOLVERS:
            names = ", ".join(repr(name) for name in SOLVERS)
            raise ValueError(f"solver must be one of {names}, or a solver object; got {solver!r}")
        made: Solver = SOLVERS[solver]()
        return made
    if isinstance(solver, type) or not all(hasattr(solver, member) for member in ("name", "requires", "start", "advance")):
        raise ValueError(f"solver must be a name or a solver object such as Newton(); got {solver!r}")
    return solver
