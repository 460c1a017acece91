"""The dual of Bethe learning on factor graphs (MLE-Struct): marginals of every example, moved by MAP solvers only."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...core.results import FloatArray
from ...objectives.dual_blocks import Block
from ..engines.counting_numbers import tree_numbers
from ..engines.frank_wolfe import GraphEnergy
from ..engines.layout import layout
from ..features.tied_tables import TiedTables
from ..oracles.find import find_oracle
from ..oracles.polytopes import LinearProgramOracle
from ..structure.mixture import each_example


def graph_blocks(features: TiedTables, mass: FloatArray, base: FloatArray | None, options: Mapping[str, Any]) -> list[Block]:
    """The blocks of the dual for factor graphs with the counting numbers of tree-reweighted messages, at uniform tables.

    Best points are those of the local polytope, as in the likelihood: by maximum flows for pairs of two labels, junction
    trees where there are no cycles, linear programs (slow) elsewhere.
    """
    graph = features.graph
    inner = layout(graph)
    owner = np.repeat(np.arange(graph.n_factors), np.diff(graph.scope_offsets))
    tables = np.bincount(owner[graph.cardinalities[graph.members] > 1], minlength=graph.n_factors) > 1
    if base is not None and not np.isfinite(base).all():
        raise ValueError("best configurations only: tables that forbid something (-inf) are not taken here")
    if inner.n_tables < tables.sum():
        raise ValueError("best configurations only: no factor may have all variables of another one of several variables")
    trees = {key: value for key, value in options.items() if key in ("n_trees", "random_state")}
    rho = np.ones(graph.n_factors)
    rho[inner.host_factors] = tree_numbers(inner, **trees)
    parts = each_example(graph)
    blocks = []
    for part, own, weight in zip(parts, features.split(parts), mass.tolist(), strict=True):
        fixed = np.zeros(part.graph.size) if base is None else base[part.index]
        # the likelihood is over marginals of neighbours that agree: elsewhere best configurations alone span less
        whole = part.graph.binary_pairs or inner.acyclic
        oracle = find_oracle(part.graph) if whole else LinearProgramOracle(part.graph)
        energy = GraphEnergy(part.graph, fixed, rho[part.factors], oracle)
        blocks.append(Block(energy.start()[0], energy, own.forward, own.adjoint, weight))
    return blocks
