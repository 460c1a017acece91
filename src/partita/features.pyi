from .chain.features.attributes import AttributeVectorizer as AttributeVectorizer
from .chain.features.templates import Templates as Templates
from .graph.features.tied_tables import TableType as TableType, TiedTables as TiedTables
from .matching.features.attributes import Attribute as Attribute, AttributePairs as AttributePairs
from .softmax.features.labels import LabelFeatures as LabelFeatures
from .softmax.features.linear import (
    DenseLinear as DenseLinear,
    LinearMap as LinearMap,
    SparseLinear as SparseLinear,
    linear_map as linear_map,
    row_space as row_space,
)
from .softmax.features.rows import RowBlocks as RowBlocks
