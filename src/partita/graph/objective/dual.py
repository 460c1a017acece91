"""The dual of Bethe learning on factor graphs (MLE-Struct): marginals of every example, moved by MAP solvers only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ...inference.oracle import Oracle, solver_of
from ...objectives.dual_blocks import Block
from ..engines.counting_numbers import tree_numbers
from ..engines.frank_wolfe import GraphEnergy
from ..engines.layout import Layout, layout
from ..features.tied_tables import TiedTables
from ..oracles.find import find_oracle
from ..oracles.polytopes import LinearProgramOracle
from ..structure.evidence import answered_point
from ..structure.factor_graph import FactorGraph
from ..structure.mixture import each_example
from ..structure.tables import indicator


def graph_blocks(
    features: TiedTables,
    states: IntArray,
    mass: FloatArray,
    base: FloatArray | None,
    options: Mapping[str, Any],
    oracle: Callable[..., Any] | None = None,
) -> list[Block]:
    """The blocks of the dual for factor graphs with the counting numbers of tree-reweighted messages.

    As in messages, factors whose variables another one has are part of that one, and every variable has a table of its own:
    `oracle` gets such a graph. By default best points are those of the local polytope, as in the likelihood: by maximum
    flows for pairs of two labels, junction trees where there are no cycles, linear programs (slow) elsewhere. An oracle for
    best configurations stays within their hull, a smaller set where there are cycles: that is what is then certified.
    """
    graph = features.graph
    trees = {key: value for key, value in options.items() if key in ("n_trees", "random_state")}
    parts = each_example(graph)
    blocks = []
    for e, (part, own, weight) in enumerate(zip(parts, features.split(parts), mass.tolist(), strict=True)):
        inner = layout(part.graph)
        merged = FactorGraph(part.graph.cardinalities, [*((v,) for v in range(part.graph.n_variables)), *inner.scopes])
        fixed = np.zeros(merged.size) if base is None else np.asarray(inner.gather @ base[part.index])
        rho = np.ones(merged.n_factors)
        rho[part.graph.n_variables :] = tree_numbers(inner, **trees)
        energy = GraphEnergy(merged, fixed, rho, _solver(merged, inner, bool(np.isneginf(fixed).any()), oracle))
        # several rows of one graph share its block: none of them is the one observed
        seen = indicator(merged, states[0][part.variables]) if len(states) == 1 else None
        forward, adjoint = _maps(own, inner)
        blocks.append(Block(energy, forward, adjoint, weight, seen, f"example {e}"))
    return blocks


def _maps(own: TiedTables, inner: Layout) -> tuple[Callable[[FloatArray], FloatArray], Callable[[FloatArray], FloatArray]]:
    """From parameters to scores of the merged tables, and back."""
    return (
        lambda theta: np.asarray(inner.gather @ own.forward(theta)),
        lambda tau: own.adjoint(np.asarray(inner.scatter @ tau)),
    )


def _solver(graph: FactorGraph, inner: Layout, forbids: bool, oracle: Callable[..., Any] | None) -> Oracle:
    """The user's solver, or one over the local polytope."""
    if oracle is not None:
        return solver_of(oracle(graph), lambda y: answered_point(graph, y))
    if inner.acyclic or (graph.binary_pairs and not forbids):
        return find_oracle(graph)
    return LinearProgramOracle(graph)
