"""Linear maps from parameters to potentials, and back."""

from .labels import LabelFeatures
from .linear import DenseLinear, LinearMap, SparseLinear, linear_map, row_space
from .rows import RowBlocks

__all__ = ["DenseLinear", "LabelFeatures", "LinearMap", "RowBlocks", "SparseLinear", "linear_map", "row_space"]
