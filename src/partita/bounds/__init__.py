"""Quadratic majorizers of log Z."""

from ..core.protocols import BOUNDS, LOW_RANK
from .certificates import iteration_limit, range_certificate, self_concordant_certificate
from .chain import DenseChains, LineBound, chain_bound, junction_tree_bound
from .dense import GaugeFactor, Quadratic
from .junction_tree import graph_bound
from .low_rank import LowRank, StreamingLowRank, low_rank_model
from .partition import PartitionBound, partition_bound
from .potential import KINDS, DifferenceCurvature, PotentialCurvature, potential_curvature

__all__ = [
    "BOUNDS",
    "KINDS",
    "LOW_RANK",
    "DenseChains",
    "DifferenceCurvature",
    "GaugeFactor",
    "LineBound",
    "LowRank",
    "PartitionBound",
    "PotentialCurvature",
    "Quadratic",
    "StreamingLowRank",
    "chain_bound",
    "graph_bound",
    "iteration_limit",
    "junction_tree_bound",
    "low_rank_model",
    "partition_bound",
    "potential_curvature",
    "range_certificate",
    "self_concordant_certificate",
]
