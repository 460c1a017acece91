"""Linear maps from parameters to potentials, and back; attributes of tokens as sparse matrices."""

from .attributes import AttributeVectorizer
from .labels import LabelFeatures
from .linear import DenseLinear, LinearMap, SparseLinear, linear_map, row_space
from .rows import RowBlocks
from .templates import Templates
from .tied_tables import TableType, TiedTables

__all__ = [
    "AttributeVectorizer",
    "DenseLinear",
    "LabelFeatures",
    "LinearMap",
    "RowBlocks",
    "SparseLinear",
    "TableType",
    "Templates",
    "TiedTables",
    "linear_map",
    "row_space",
]
