"""What likelihood objects of factor graphs cost, in operations."""

from __future__ import annotations

import math

import numpy as np

from ...core.results import FloatArray
from ...objectives.composite.budget import EACH, PER_FACTOR
from ...objectives.composite.likelihood import CompositeLikelihood
from ..structure.elimination import Elimination
from ..structure.factor_graph import FactorGraph
from ..structure.free_sets import LARGEST, FreeSets
from .likelihood_objects import list_objects

#: Operations on an entry of the tables of a junction tree, up and down.
TREE = 12.0


def published_operations(m: int, k: int) -> float:
    """The published count for one object of order k of a complete graph of m binary variables, and one example.

    >>> from partita.graph.objective.operations import published_operations
    >>> [published_operations(5, k) for k in (1, 2, 5)]
    [22.0, 41.0, 330.0]
    """
    pairs = math.comb(m, 2)
    return pairs * 2.0**k + pairs / math.comb(m, k)


def graph_operations(graph: FactorGraph, composite: CompositeLikelihood, draws: bool = False) -> FloatArray:
    """Operations of a pass for an example of each order, by the expected number of objects that are computed; a mean over
    examples.

    With ``refresh=True`` these are all, whatever their probability, unless the solver `draws` in every pass. Every example
    is counted by itself. inf where a junction tree does not fit.
    """
    objects = list_objects(graph, composite)
    shares = composite.computed_shares(objects.groups, objects.examples, draws)
    n = len(objects.columns)
    sets = FreeSets(
        *(graph, objects.sets, np.zeros((1, graph.n_variables), np.int64), np.ones(1)),
        *(np.zeros((1, len(objects.groups))), objects.columns, objects.signs, objects.latent),
    )
    factors = np.diff(sets.pair_start)
    cost = np.where(sets.sizes <= LARGEST, sets.sizes * (EACH + PER_FACTOR * factors), 0.0)
    for o in sets.large.tolist():
        cost[o] = _tree_operations(sets.alone(o))
    group = objects.groups[objects.columns]
    out = np.bincount(group, weights=shares[objects.columns] * cost, minlength=len(composite.rates))
    return np.asarray(out / graph.n_examples) if n else np.zeros(0)


def _tree_operations(graph: FactorGraph) -> float:
    plan = graph.cost()
    return TREE * plan.total if isinstance(plan, Elimination) else math.inf
