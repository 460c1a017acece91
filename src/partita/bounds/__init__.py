"""Quadratic majorizers of log Z."""

from ..core.protocols import BOUNDS, LOW_RANK
from .certificates import iteration_limit, range_certificate, self_concordant_certificate
from .dense import GaugeFactor, Quadratic
from .low_rank import LowRank, StreamingLowRank, low_rank_model
from .partition import PartitionBound, partition_bound
from .potential import KINDS, PotentialCurvature, potential_curvature

__all__ = [
    "BOUNDS",
    "KINDS",
    "LOW_RANK",
    "GaugeFactor",
    "LowRank",
    "PartitionBound",
    "PotentialCurvature",
    "Quadratic",
    "StreamingLowRank",
    "iteration_limit",
    "low_rank_model",
    "partition_bound",
    "potential_curvature",
    "range_certificate",
    "self_concordant_certificate",
]
