from .dependency import DependencyTrees as DependencyTrees
from .features import PairFeatures as PairFeatures
from .structure import SpanningTree as SpanningTree
