"""Standard errors of the weights of a chain, and their table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray
from ...objectives.information import warn_of_many_weights
from ...report.tables import CoefficientTable
from ..objective.information import EXACT, chain_errors
from .fitted_chain import FittedChain
from .problem import Likelihood

METHODS = ("information", "sandwich")


def checked_objective(objective: Likelihood | None, precision: NDArray[np.float32] | None, constrained: bool) -> Likelihood:
    """The objective that a chain minimises, unless it has no standard errors: a ValueError says why."""
    if precision is None:
        raise ValueError(
            "standard errors are not defined with l1 > 0: the estimates are biased towards zero, and exact zeros have "
            "no normal distribution; refit with l1=0, or resample"
        )
    if constrained:
        raise ValueError(
            "standard errors are not available with constraints: estimates on the edge of what is allowed are not "
            "asymptotically normal; drop the constraints, or bootstrap"
        )
    if objective is None:
        raise ValueError(
            "standard errors need the training data, which copies, files and partial_fit do not keep: fit again"
        )
    if objective.partial is not None:
        raise ValueError("standard errors are not available for partial labels: the information that is missing counts")
    return objective


def standard_errors(
    fitted: FittedChain,
    objective: Likelihood,
    l2: float,
    method: str,
    draws: int,
    random: np.random.Generator,
    progress: Callable[[int], None] | None,
) -> FloatArray:
    """Of the weights of a chain, in their order, from the objective that it minimises, in the solver's units."""
    inputs, layout = fitted.inputs, fitted.layout
    point = objective.at(inputs.to_solver(layout) @ fitted.values)
    change = inputs.to_user(layout) if inputs.intercept else None
    warn_of_many_weights(
        *(objective.size, objective.n_examples, "sequences", l2, "a higher min_frequency, fewer attributes"),
        detail=f" ({objective.features.n_positions} positions)",
        effective=float((1.0 - objective.penalty / point.diagonal).sum()),
    )
    return chain_errors(point, method, draws, random, progress, change)


def coefficient_table(
    fitted: FittedChain, errors: FloatArray, level: float, title: str, top: int | None
) -> CoefficientTable:
    """Estimates with their errors, a row for every weight, or the `top` rows by absolute z."""
    state, transition, start, end = fitted.named_weights
    names = [f"{attribute}: {label}" for attribute, label in state]
    names += [f"{first} -> {second}" for first, second in transition]
    names += [*(f"first: {label}" for label in start), *(f"last: {label}" for label in end)]
    table = CoefficientTable.of(names, fitted.values, errors, level, title)
    return table if top is None else table.top(top)


def how_computed(method: str, n_weights: int, draws: int) -> str:
    """The method, and the number of draws where the model is too large for exact errors."""
    return method if n_weights <= EXACT else f"{method} ({draws} draws)"
