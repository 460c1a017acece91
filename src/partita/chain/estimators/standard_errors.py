"""Standard errors of the weights of a chain, and their table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.results import FloatArray
from ...estimators.labels import Labels
from ...objectives.information import warn_of_many_weights
from ...objectives.uncertainty import errors, influence
from ...report.tables import CoefficientTable
from ..data.sequences import SequenceData
from ..features.chain import ChainFeatures
from ..objective.information import EXACT, chain_errors
from .fitted_chain import FittedChain
from .problem import Likelihood


def checked_objective(objective: Likelihood | None, precision: NDArray[np.float32] | None, constrained: bool) -> Likelihood:
    """The objective that a chain minimises, unless it has no standard errors: a ValueError says why."""
    if precision is None:
        raise ValueError(
            "standard errors are not defined with l1 > 0: the estimates are biased towards zero, and exact zeros have "
            "no normal distribution; refit with l1=0, or use method='bootstrap'"
        )
    if constrained:
        raise ValueError(
            "standard errors are not available with constraints: estimates on the edge of what is allowed are not "
            "asymptotically normal; drop the constraints, or use method='bootstrap'"
        )
    if objective is None:
        raise ValueError(
            "standard errors need the training data, which copies, files and partial_fit do not keep: fit again"
        )
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
    if objective.partial is not None:  # what is not known takes from the information, and F is not convex
        return errors(point, method, draws, random, change)
    return chain_errors(point, method, draws, random, progress, change)


def chain_influence(fitted: FittedChain, objective: Likelihood, new: tuple[SequenceData, Labels] | None) -> FloatArray:
    """What the weights of a chain change by, to first order, for each sequence that is there once more: one of those that
    `objective` has, or a new one."""
    inputs, layout = fitted.inputs, fitted.layout
    point = objective.at(inputs.to_solver(layout) @ fitted.values)
    change = inputs.to_user(layout) if inputs.intercept else sp.identity(layout.size, format="csr")
    if new is None:
        weights = objective.weights[:, None]
        found = influence(point)
        return np.asarray(np.divide(found, weights, out=np.zeros_like(found), where=weights > 0.0) @ change.T)
    data, labels = new
    (attribute, label), ends = layout.state.T, layout.start_end
    features = ChainFeatures(data.X, data.offsets, layout.n_labels, attribute, label, layout.transitions, ends, ends)
    place = np.arange(layout.size)  # of the weights of the map, whose attributes are ordered by how often they occur
    keys, n = layout.state @ [layout.n_labels, 1], len(layout.state)
    order = np.argsort(keys)
    place[:n] = order[np.searchsorted(keys[order], features.attribute * layout.n_labels + features.label)]
    scores = np.zeros((len(data), layout.size))
    there = objective.of(features, labels.codes, labels.sets).at(fitted.values[place])
    scores[:, place] = np.concatenate(list(there.score_chunks()))
    return np.asarray(influence(point, scores @ change) @ change.T)


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
    return method if n_weights <= EXACT and method != "bootstrap" else f"{method} ({draws} draws)"
