"""What estimators on factor graphs learn from: tables, states, weights, and the units in which a solver moves."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...estimators.streaming import Posterior, after
from ...objectives.composite.likelihood import CompositeLikelihood
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
        The states of variables, -1 where unknown.
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
    before: Posterior | None = None

    def start(self, last: FloatArray | None) -> FloatArray | None:
        """Weights for the solver from those of an earlier fit, if they are as many."""
        if self.before is not None:
            return self.before.mean
        if last is None or last.shape != (self.features.size,):
            return None
        return last if self.units is None else np.asarray(self.units.there @ last)

    def likelihood(self, engine: str, inexact: bool = False) -> GraphLikelihood:
        """The likelihood of the whole, by an engine."""
        found = GraphLikelihood(self.features, self.states, engine=engine, inexact=inexact, **self._given())
        return after(found, self.before)

    def composite(self, likelihood: CompositeLikelihood) -> GraphComposite:
        """A composite likelihood."""
        return GraphComposite(self.features, self.states, likelihood, **self._given())

    def _given(self) -> dict[str, Any]:
        penalty = self.l2 if self.units is None else self.units.penalty
        return {"weights": self.weights, "penalty": penalty, "base": self.base, "options": self.options}
