"""Quadratic majorizers of log Z."""

from ..core.protocols import BOUNDS
from .certificates import iteration_limit, range_certificate, self_concordant_certificate
from .dense import GaugeFactor, PartitionBound, Quadratic, partition_bound
from .potential import KINDS, PotentialCurvature, potential_curvature

__all__ = [
    "BOUNDS",
    "KINDS",
    "GaugeFactor",
    "PartitionBound",
    "PotentialCurvature",
    "Quadratic",
    "iteration_limit",
    "partition_bound",
    "potential_curvature",
    "range_certificate",
    "self_concordant_certificate",
]
