from .bipartite import BipartiteMatching as BipartiteMatching
from .general import Matching as Matching
