"""Which solver finds best configurations of a factor graph, if the user names none."""

from __future__ import annotations

from ...core.errors import TooLargeError
from ...inference.oracle import Oracle
from ..structure.factor_graph import FactorGraph
from .max_flow import MaxFlowOracle
from .polytopes import JunctionTreeOracle, LinearProgramOracle


def find_oracle(graph: FactorGraph, finite: bool = True) -> Oracle:
    """A maximum flow for pairs of variables with two states and `finite` potentials, else a junction tree if it fits, else a
    linear program."""
    if graph.binary_pairs and finite:
        return MaxFlowOracle(graph)
    try:
        graph.tree()
    except TooLargeError:
        return LinearProgramOracle(graph)
    return JunctionTreeOracle(graph)
