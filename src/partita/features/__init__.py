"""Linear maps from parameters to potentials, and back."""

from .labels import LabelFeatures
from .linear import DenseLinear, LinearMap, SparseLinear, linear_map, row_space

__all__ = ["DenseLinear", "LabelFeatures", "LinearMap", "SparseLinear", "linear_map", "row_space"]
