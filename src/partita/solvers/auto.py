"""The automatic choice."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ..core.contracts.capabilities import Capability
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import AnySolver, Solver
from .constrained import ConstrainedNewton
from .constrained_lbfgs import ConstrainedLBFGS
from .lbfgs import LBFGS
from .newton import Newton
from .orthant import OWLQN
from .proximal import ProximalNewton
from .stochastic.warm_up import StochasticStart

#: Examples from which epochs of stochastic gradients pay, calibration included.
MANY = 2000
#: Hessian products that a program may take which needs the matrix; above, gradients are cheaper.
DENSE = 500.0

EVERYTHING = frozenset(Capability)
#: For objectives whose rays cost nearly as much as new points, and, the first that can, for others.
SCALED = LBFGS(memory=20, scaled=True)
OTHERS: tuple[AnySolver, ...] = (Newton(), LBFGS(), OWLQN())


@dataclass(frozen=True)
class Chosen:
    """The solver that was chosen, and its state."""

    solver: AnySolver
    state: Any


@dataclass(frozen=True)
class Auto(Solver[Chosen, Objective, Point]):
    """The fastest solver measured for what the objective offers.

    Newton with Hessian products, L-BFGS without, proximal Newton or OWL-QN where the gradient has jumps, constrained Newton
    (or L-BFGS, without products) on sets. Where a step along a line costs nearly as much as a new point (chains), L-BFGS
    scaled by the preconditioner, after four epochs of stochastic gradients if there are many examples.
    """

    key = "auto"

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset()

    @property
    def uses(self) -> frozenset[Capability]:
        return EVERYTHING

    def start(self, objective: Objective, point: Point) -> Chosen:
        chosen = _choice(objective)
        return Chosen(chosen, chosen.start(objective, point))

    def advance(self, state: Chosen, point: Point) -> Point | None:
        return state.solver.advance(state.state, point)


def _choice(objective: Objective) -> AnySolver:
    """A solver that takes what the objective offers."""
    offers = objective.capabilities
    if Capability.CONSTRAINED_STEP in offers:
        known = Capability.MODEL in offers and objective.dense_cost <= DENSE
        return ConstrainedNewton() if known else ConstrainedLBFGS()
    if objective.costly_rays and SCALED.requires <= offers:
        many = objective.n_examples >= MANY and Capability.SWEEPS in offers
        return StochasticStart(SCALED, epochs=4) if many else SCALED
    for solver in OTHERS:
        if solver.requires <= offers:
            return solver
    return ProximalNewton()
