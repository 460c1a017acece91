"""Some examples of a composite likelihood of factor graphs, whose objects are drawn when they are evaluated."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from ...core.contracts import Product
from ...core.results import FloatArray, IntArray
from ...objectives.composite.likelihood import CompositeLikelihood
from ..features.tied_tables import TiedTables
from ..structure.factor_graph import FactorGraph
from ..structure.free_sets import FreeSets
from ..structure.scopes import Scopes, ranges
from .likelihood_objects import Objects


class Whole(Protocol):
    """What is asked of the likelihood of all examples."""

    features: TiedTables
    graph: FactorGraph
    states: IntArray
    weights: FloatArray
    base: FloatArray | None
    composite: CompositeLikelihood
    objects: Objects
    sets: FreeSets
    options: dict[str, float]

    @property
    def object_weights(self) -> FloatArray: ...


class DrawnGraphs:
    """Rows of states of one graph, or graphs of a union; see `DrawnPart`.

    Only potentials of the graphs of the part are computed.
    """

    def __init__(self, whole: Whole, rows: IntArray) -> None:
        o = whole.objects
        self.composite, self.features, self.size = whole.composite, whole.features, whole.graph.size
        matrix = whole.features.matrix
        if whole.graph.n_examples == 1:
            self.places = np.arange(self.size)
            self.groups, self.each = o.groups, whole.object_weights
            self.examples = np.zeros_like(o.groups)
            nothing = np.zeros((len(rows), len(o.groups)))
            self.sets = whole.sets.of_rows(whole.states[rows], whole.weights[rows], nothing)
            self.count = len(rows)
        else:
            own = np.isin(whole.graph.factor_examples, rows)
            self.places = ranges(whole.graph.offsets[:-1][own], np.diff(whole.graph.offsets)[own])
            matrix = matrix[self.places]
            chosen = np.flatnonzero(np.isin(o.examples, rows))
            self.groups, self.examples = o.groups[chosen], o.examples[chosen]
            self.each = whole.object_weights[chosen] * whole.weights[self.examples]
            kept = np.flatnonzero(np.isin(o.columns, chosen))
            lengths = np.diff(o.sets.offsets)[kept]
            members = ranges(o.sets.offsets[kept], lengths)
            sets = Scopes(np.concatenate(([0], np.cumsum(lengths))), o.sets.members[members])
            columns = np.searchsorted(chosen, o.columns[kept])
            given: Any = (whole.states, np.ones(1), np.zeros((1, len(chosen))), columns, o.signs[kept], o.latent[members])
            options: dict[str, Any] = dict(whole.options)
            self.sets = FreeSets(whole.graph, sets, *given, **options)
            self.count = 0
        self.matrix = matrix
        self.base = np.zeros(len(self.places)) if whole.base is None else whole.base[self.places]

    def _shares(self, rng: np.random.Generator | None) -> FloatArray:
        """What every object counts, as drawn or by its probability."""
        if self.count:
            law = self.composite.law(self.groups)
            drawn = np.tile(law.mean, (self.count, 1)) if rng is None else law.draw(self.count, rng)
            return np.asarray(drawn * self.each)
        drawn = self.composite.selected(self.groups, self.examples, rng)
        return np.asarray((drawn * self.each)[None])

    def _potentials(self, theta: FloatArray) -> FloatArray:
        u = np.zeros(self.size)
        u[self.places] = self.matrix @ theta + self.base
        return u

    def evaluate(self, theta: FloatArray, rng: np.random.Generator | None) -> tuple[float, FloatArray]:
        sets, u = self.sets.with_shares(self._shares(rng)), self._potentials(theta)
        sums, used = sets.at(u), sets.counts > 0.0
        residual = (sums.gradient - sets.counts)[self.places]
        return sums.value - float(sets.counts[used] @ u[used]), np.asarray(self.matrix.T @ residual)

    def curvature(self, theta: FloatArray) -> tuple[FloatArray, Product]:
        sums = self.sets.with_shares(self._shares(None)).at(self._potentials(theta))

        def product(v: FloatArray) -> FloatArray:
            along = np.zeros(self.size)
            along[self.places] = self.matrix @ v
            return np.asarray(self.matrix.T @ sums.product(along)[self.places])

        return self.features.squared(sums.variances()), product
