"""Names of solvers, and the automatic choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.protocols import Capability, Objective, Point, Solver
from .constrained import ConstrainedNewton
from .descent import ConjugateGradient, SteepestDescent
from .em import EM
from .frank_wolfe import BlockFrankWolfe
from .lbfgs import LBFGS
from .majorize import Majorize
from .newton import Newton
from .orthant import OWLQN
from .proximal import ProximalNewton
from .sgd import SGD
from .stochastic import StochasticBound
from .stochastic_start import StochasticStart

#: Examples from which epochs of stochastic gradients pay, calibration included.
MANY = 2000


@dataclass(frozen=True)
class Auto:
    """The fastest solver measured for what the objective offers.

    Newton with Hessian products, L-BFGS without, proximal Newton or OWL-QN where the gradient has jumps, constrained Newton
    on sets. Where a step along a line costs nearly as much as a new point (chains), L-BFGS scaled by the preconditioner,
    after four epochs of stochastic gradients if there are many examples.
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
        chosen: Solver = next((s for s in (Newton(), LBFGS(), OWLQN()) if s.requires <= offers), ProximalNewton())
        scaled = LBFGS(memory=20, scaled=True)
        if getattr(objective, "costly_rays", False) and scaled.requires <= offers:
            many = getattr(objective, "n_examples", 0) >= MANY
            chosen = StochasticStart(scaled, epochs=4) if many and Capability.SWEEPS in offers else scaled
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
    "stochastic_start": StochasticStart,
    "sgd": SGD,
    "proximal": ProximalNewton,
    "owlqn": OWLQN,
    "block_frank_wolfe": BlockFrankWolfe,
    "em": EM,
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
