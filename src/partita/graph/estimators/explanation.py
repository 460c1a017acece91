"""Which features pushed which state of a variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...report.explanation import Explanation, explained
from ..features.tied_tables import TiedTables


@dataclass(frozen=True)
class Scored:
    """A factor graph with weights and a configuration, and what things are called.

    Attributes
    ----------
    features : TiedTables
    theta : array
        The weights.
    base : array or None
        What is added to the potentials of the weights.
    states : int array
        The state of every variable.
    named : callable
        From a factor, a feature of it and a variable to the name of the feature, as seen from the variable.
    """

    features: TiedTables
    theta: FloatArray
    base: FloatArray | None
    states: IntArray
    named: Callable[[int, int, int], str]

    def rows(self, v: int) -> list[tuple[str, FloatArray]]:
        """What each feature adds to the score of every state of a variable, the others being in theirs."""
        graph, out = self.features.graph, []
        for f in np.flatnonzero([v in scope for scope in graph.factors]).tolist():
            entries = graph.entries_of(f, v, self.states)
            shares = self.features.shares(self.theta, f, entries)
            out += [(self.named(f, j, v), row) for j, row in enumerate(shares)]
            if self.base is not None:
                out.append(("tables", self.base[entries]))
        return out

    def explain(
        self, variables: Sequence[int], P: Sequence[FloatArray | None], names: Sequence[Any], labels: Sequence[Sequence[Any]]
    ) -> Explanation:
        """Why variables have their states; P are probabilities of these, None for those given all other variables."""
        entries = []
        for v in variables:
            rows, p = self.rows(v), P[v]
            if p is None:
                u = np.sum([row for _, row in rows], axis=0)
                p = np.exp(u - np.logaddexp.reduce(u))
            entries.append(explained(names[v], labels[v], p, rows, int(self.states[v]), what="node"))
        return Explanation(tuple(entries))
