"""Solvers that find one best configuration: one file each, with other people's libraries imported when first asked for."""

from .assignment import AssignmentOracle
from .b_matching import BMatchingOracle
from .chain_oracle import ChainOracle
from .graph_oracles import JunctionTreeOracle, LinearProgramOracle
from .max_flow import MaxFlowOracle
from .oracle import Answer, Oracle, UserOracle
from .planar_ising import PlanarIsingOracle

__all__ = [
    "Answer",
    "AssignmentOracle",
    "BMatchingOracle",
    "ChainOracle",
    "JunctionTreeOracle",
    "LinearProgramOracle",
    "MaxFlowOracle",
    "Oracle",
    "PlanarIsingOracle",
    "UserOracle",
]
