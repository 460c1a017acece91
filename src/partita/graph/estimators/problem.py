"""What estimators on factor graphs learn from: tables, states, weights, and the units in which a solver moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import Objective
from ...core.results import FloatArray, IntArray
from ...estimators.streaming import Posterior, after
from ...objectives.composite.likelihood import CompositeLikelihood
from ...objectives.constraints.feasible_set import FeasibleSet
from ...objectives.constraints.units import in_units
from ...objectives.restricted import restricted
from ..data.units import Units
from ..features.tied_tables import TiedTables
from ..objective.composite import GraphComposite
from ..objective.likelihood import GraphLikelihood


@dataclass(frozen=True)
class GraphProblem:
    """Examples on one factor graph, and the penalty.

    Attributes
    ----------
    features : TiedTables
        The map from weights to tables.
    states : int array
        The states of variables, -1 where unknown, ``-2 - k`` where in row k of `sets`.
    weights : array
        Of the examples.
    l2 : float
        Of each weight, unless `units` say otherwise.
    base : array, optional
        Potentials that are added to those of the weights.
    units : Units, optional
        What weights on the features mean for the user. None: they are the user's.
    options : dict
        Of the engine.
    sets : bool array, optional
        Sets of states, one of which is right.
    l1 : float
        Of each weight but those that have no penalty.
    feasible : FeasibleSet, optional
        Where the user's weights must stay.
    before : Posterior, optional
        What earlier pieces of a stream say of the weights, in place of the penalty.
    """

    features: TiedTables
    states: IntArray
    weights: FloatArray
    l2: float
    base: FloatArray | None
    units: Units | None
    options: Mapping[str, Any] | None
    sets: NDArray[np.bool_] | None = None
    l1: float = 0.0
    feasible: FeasibleSet | None = None
    before: Posterior | None = None

    def restricted(self, likelihood: Objective) -> Objective:
        """What is minimised: a likelihood, with the l1 penalty and within the set, where there are any."""
        l1 = self.l1 if self.units is None else self.l1 * self.units.scale
        return restricted(likelihood, l1, self._inside)

    @cached_property
    def _inside(self) -> FeasibleSet | None:
        if self.feasible is None or self.units is None:
            return self.feasible
        return in_units(self.feasible, self.units.back)

    def user_weights(self, parameters: FloatArray) -> FloatArray:
        """The user's weights from those of the solver."""
        weights = np.array(parameters if self.units is None else self.units.back @ parameters)
        return weights if self.feasible is None else self.feasible.snap(weights)

    def start(self, last: FloatArray | None) -> FloatArray | None:
        """Weights for the solver from those of an earlier fit, if they are as many."""
        if self.before is not None:
            return self.before.mean
        if last is None or last.shape != (self.features.size,):
            return None
        return last if self.units is None else np.asarray(self.units.there @ last)

    def likelihood(self, engine: str, inexact: bool = False) -> GraphLikelihood:
        """The likelihood of the whole, by an engine."""
        found = GraphLikelihood(self.features, self.states, engine=engine, sets=self.sets, inexact=inexact, **self._given())
        return after(found, self.before)

    def composite(self, likelihood: CompositeLikelihood) -> GraphComposite:
        """A composite likelihood."""
        if self.sets is not None:
            raise ValueError("composite likelihoods take labels that are known, or unknown, not sets of them")
        return GraphComposite(self.features, self.states, likelihood, **self._given())

    def _given(self) -> dict[str, Any]:
        penalty = self.l2 if self.units is None else self.units.penalty
        return {"weights": self.weights, "penalty": penalty, "base": self.base, "options": self.options}
