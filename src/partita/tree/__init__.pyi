from .estimators.dependency_crf import DependencyCRF as DependencyCRF
from .features.pairs import PairFeatures as PairFeatures
from .objective import TreeLikelihood as TreeLikelihood
from .structure.dependency_trees import DependencyTrees as DependencyTrees
from .structure.spanning_tree import SpanningTree as SpanningTree
