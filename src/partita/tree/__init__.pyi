from .features.pairs import PairFeatures as PairFeatures
from .structure.dependency_trees import DependencyTrees as DependencyTrees
from .structure.spanning_tree import SpanningTree as SpanningTree
