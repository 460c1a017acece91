"""Solvers that find one best configuration: one file each, with other people's libraries imported when first asked for."""

from .graph_oracles import JunctionTreeOracle, LinearProgramOracle
from .max_flow import MaxFlowOracle
from .oracle import Answer, Oracle, UserOracle

__all__ = ["Answer", "JunctionTreeOracle", "LinearProgramOracle", "MaxFlowOracle", "Oracle", "UserOracle"]
