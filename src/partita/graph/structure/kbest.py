"""The k best configurations of a factor graph, by exact best ones (Lawler's partition)."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.results import BoolArray, FloatArray, IntArray
from ...inference.kbest import k_best
from .exact_sums import ExactSums
from .factor_graph import FactorGraph
from .scopes import Scopes


def k_best_configurations(graph: FactorGraph, potentials: FloatArray, k: int, **options: Any) -> tuple[IntArray, FloatArray]:
    """At most k configurations of a graph of one example that are not forbidden, and their scores, best first.

    `options` is the `memory_limit` of exact sums, which find the best configuration under restrictions.
    """
    variables = np.arange(graph.n_variables)
    offsets = np.concatenate([graph.scope_offsets, graph.scope_offsets[-1] + 1 + variables])
    scopes = Scopes(offsets, np.concatenate([graph.members, variables]))
    wider = FactorGraph(graph.cardinalities, scopes, n_jobs=graph.n_jobs)  # a table of each variable says what it may be
    sums = ExactSums(wider, wider.tree(**options))

    def solve(allowed: BoolArray) -> tuple[IntArray, FloatArray]:
        rows = np.hstack([np.repeat(potentials[None], len(allowed), axis=0), np.where(allowed, 0.0, -np.inf)])
        states, values = sums.argmax(wider.potentials(rows))
        return states, values.ravel()

    return k_best(graph.cardinalities, solve, k)
