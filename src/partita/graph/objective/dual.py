"""The dual of Bethe learning on factor graphs (MLE-Struct): marginals of every example, moved by MAP solvers only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ...objectives.dual_blocks import Block, DualBlocks
from ..engines.counting_numbers import tree_numbers
from ..engines.frank_wolfe import GraphEnergy
from ..engines.layout import layout
from ..oracles.find import find_oracle
from ..oracles.polytopes import LinearProgramOracle
from ..structure.mixture import each_example

if TYPE_CHECKING:
    from .likelihood import GraphLikelihood


def graph_blocks(objective: GraphLikelihood) -> DualBlocks:
    """The dual for factor graphs with the counting numbers of tree-reweighted messages, at uniform tables.

    Best points are those of the local polytope, as in the likelihood: by maximum flows for pairs of two labels, junction
    trees where there are no cycles, linear programs (slow) elsewhere.
    """
    graph = objective.graph
    inner = layout(graph)
    owner = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_offsets))
    tables = np.bincount(owner[graph.cardinalities[graph.members] > 1], minlength=graph.n_factors) > 1
    if objective.base is not None and not np.isfinite(objective.base).all():
        raise ValueError("best configurations only: tables that forbid something (-inf) are not taken here")
    if inner.n_tables < tables.sum():
        raise ValueError("best configurations only: no factor may have all variables of another one of several variables")
    options = {key: value for key, value in objective.options.items() if key in ("n_trees", "random_state")}
    rho = np.ones(graph.n_factors)
    rho[inner.host_factors] = tree_numbers(inner, **options)
    parts = each_example(graph)
    blocks = []
    for part, features, weight in zip(parts, objective.features.split(parts), objective.mass.tolist(), strict=True):
        base = np.zeros(part.graph.size) if objective.base is None else objective.base[part.index]
        # the likelihood is over marginals of neighbours that agree: elsewhere best configurations alone span less
        whole = part.graph.binary_pairs or inner.acyclic
        oracle = find_oracle(part.graph) if whole else LinearProgramOracle(part.graph)
        energy = GraphEnergy(part.graph, base, rho[part.factors], oracle)
        blocks.append(Block(energy.start()[0], energy, features.forward, features.adjoint, weight))
    return DualBlocks(blocks, objective.observed, objective.penalty, objective.constant, graph.workers)
