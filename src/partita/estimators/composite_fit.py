"""Fitting by composite likelihoods: weights of orders in turn with parameters, and policies under a budget."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ..core.results import FloatArray, Solution, Status
from ..core.validation import check_real
from ..objectives.composite.budget import choose
from ..objectives.composite.likelihood import FULL, CompositeLikelihood
from ..objectives.composite.weights import alternate

#: Orders that a policy under a budget is made of.
BUDGET_ORDERS = (1, 2, FULL)


def check_budget(budget: Any, likelihood: Any) -> None:
    """A budget is a number above zero, and chooses the likelihood by itself."""
    if budget is None:
        return
    check_real("budget", budget, minimum=0.0, strict=True)
    if not isinstance(likelihood, str) or likelihood != FULL:
        raise ValueError(f"budget chooses the likelihood: leave likelihood='full', got {likelihood!r}")


def fit_weights(
    objective: Any,
    composite: CompositeLikelihood | None,
    solve: Callable[[Any, FloatArray | None], Solution],
    start: FloatArray | None,
) -> tuple[Solution, dict[Any, float]]:
    """The minimum of an objective, and the weights of the orders of its likelihood, chosen in turn with it if "auto"."""
    if composite is None:
        return solve(objective, start), {FULL: 1.0}
    beta = composite.beta
    if composite.automatic:

        def solve_with(beta: FloatArray, begin: FloatArray | None) -> Solution:
            return solve(objective.with_weights(beta), start if begin is None else begin)

        solution, beta = alternate(solve_with, objective.moments, list(composite.rates), objective.n_examples)
    else:
        solution = solve(objective, start)
    return solution, composite.named_weights(beta)


def within_budget(
    make: Callable[[CompositeLikelihood], Any],
    solve: Callable[[Any, FloatArray | None], Solution],
    costs: Mapping[Any, float],
    budget: float,
) -> tuple[CompositeLikelihood, dict[str, Any]]:
    """The most accurate policy that a budget (in pseudo-likelihoods) allows, and what is expected of it.

    Judged at the estimates of the pseudo-likelihood, by the scores of all examples.
    """
    pilot = solve(make(CompositeLikelihood()), None)
    if pilot.status is Status.INTERRUPTED:
        raise KeyboardInterrupt  # there is nothing to keep yet
    theta = pilot.parameters
    orders = {order: cost for order, cost in costs.items() if np.isfinite(cost)}
    J, C = make(CompositeLikelihood(dict.fromkeys(orders, 1.0))).spread(theta)
    found = choose(J, C, orders, budget)
    composite = CompositeLikelihood(
        orders=found.rates, weights=found.weights, refresh=min(found.rates.values()) == 1.0, random_state=0
    )
    return composite, {"cost": found.cost, "efficiency": found.efficiency, "reference": found.reference}
