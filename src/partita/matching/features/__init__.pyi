from .attributes import (
    Attribute as Attribute,
    AttributePairs as AttributePairs,
    Side as Side,
    attribute_pairs as attribute_pairs,
    learn_attributes as learn_attributes,
    parameter_names as parameter_names,
    read_attributes as read_attributes,
)
from .edges import EdgeFeatures as EdgeFeatures, EdgeMap as EdgeMap, NodePairs as NodePairs
from .unmatched import AloneFeatures as AloneFeatures, PaddedFeatures as PaddedFeatures
