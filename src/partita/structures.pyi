from .chain.structure.chain import Chain as Chain
from .chain.structure.forbidden import Forbidden as Forbidden
from .graph.structure.factor_graph import FactorGraph as FactorGraph
from .matching.structure.b_matching import BMatching as BMatching
from .matching.structure.bipartite import BipartiteMatching as BipartiteMatching
from .matching.structure.general import Matching as Matching
from .softmax.structure import Binary as Binary, Categorical as Categorical
from .tree.structure.dependency_trees import DependencyTrees as DependencyTrees
from .tree.structure.spanning_tree import SpanningTree as SpanningTree
