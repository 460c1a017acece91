from .chain.features.attributes import AttributeVectorizer as AttributeVectorizer
from .chain.features.templates import Templates as Templates
from .graph.features.tied_tables import TableType as TableType, TiedTables as TiedTables
from .matching.features.attributes import Attribute as Attribute, AttributePairs as AttributePairs
from .softmax.features.labels import LabelFeatures as LabelFeatures
from .softmax.features.linear import LinearMap as LinearMap
from .softmax.features.linear_layouts import (
    DenseLinear as DenseLinear,
    SparseLinear as SparseLinear,
    linear_map as linear_map,
)
from .softmax.features.rows import RowBlocks as RowBlocks
from .softmax.features.standard_columns import row_space as row_space
