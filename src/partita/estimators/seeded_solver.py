"""The solver of an estimator, with the seed it was given."""

from __future__ import annotations

from typing import Any

from ..core.contracts.solver import AnySolver
from ..solvers.named import make_solver


def seeded_solver(estimator: Any) -> AnySolver:
    """The solver; a stochastic one is seeded by `random_state`, unless that is None and the solver has its own."""
    solver = make_solver(estimator.solver)
    seed = getattr(estimator, "random_state", None)  # not every estimator has one
    own = not isinstance(estimator.solver, str) and seed is None
    return solver if own else solver.with_seed(solver_seed(seed))


def solver_seed(random_state: Any) -> Any:
    """The estimator's random_state as a solver's: an int, or 0 for None."""
    return 0 if random_state is None else random_state
