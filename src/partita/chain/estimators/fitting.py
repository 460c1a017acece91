"""The way from a problem to its minimum, by a likelihood or a composite one, perhaps stopped by held-out sequences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ...core.results import FloatArray, Solution, Status
from ...estimators.composite_fit import BUDGET_ORDERS, fit_weights, within_budget
from ...objectives.composite.likelihood import FULL, CompositeLikelihood
from ...objectives.refinement import newton_step
from ...objectives.restricted import smooth_point
from ..objective.operations import chain_operations
from .holdout import Holdout
from .problem import ChainProblem, Likelihood


class Found(NamedTuple):
    """Where training ended.

    Attributes
    ----------
    run : Solution
        What the solver did.
    status : Status
        Why it ended, in view of held-out sequences.
    solution : Solution
        The same run, with the point that is kept as its end.
    point : a point of a `ChainObjective`, or of `L1`
        That point, without constraints.
    composite : CompositeLikelihood or None
        What was maximised; None for the likelihood.
    beta : dict
        The weight of each order of it.
    choice : dict or None
        What is expected of the choice that a budget led to.
    """

    run: Solution
    status: Status
    solution: Solution
    point: Any
    composite: CompositeLikelihood | None
    beta: dict[Any, float]
    choice: dict[str, Any] | None


def find_minimum(
    problem: ChainProblem,
    composite: CompositeLikelihood | None,
    budget: float | None,
    start: FloatArray | None,
    holdout: Holdout | None,
    minimize: Callable[..., Solution],
) -> Found:
    """Minimise the (composite) likelihood of a problem; `minimize` takes an objective, a start and callbacks."""

    def solve(objective: Likelihood, begin: FloatArray | None) -> Solution:
        return minimize(problem.restricted(objective), begin, [] if holdout is None else [holdout])

    choice = None
    if budget is not None:
        every = CompositeLikelihood(dict.fromkeys(BUDGET_ORDERS, 1.0))
        costs = chain_operations(problem.examples.data.lengths, problem.layout.n_labels, every)
        composite, choice = within_budget(problem.objective, solve, dict(zip(BUDGET_ORDERS, costs, strict=True)), budget)
    objective = problem.objective(composite)
    run, beta = fit_weights(objective, composite, solve, start)
    status, solution = run.status, run
    if holdout is not None:
        status, solution = holdout.status(run), holdout.chosen(run, problem.restricted(objective), objective.scale)
    point: Any = solution.point
    point = smooth_point(point) if problem.feasible is not None else point
    if composite is not None and composite.refine is not None:
        target = problem.objective(None if composite.refine == FULL else composite.refinement)
        point = newton_step(target, point.parameters)
        solution = solution.at(point, target.scale)
    return Found(run, status, solution, point, composite, beta, choice)
