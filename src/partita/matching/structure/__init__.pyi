from .b_matching import BMatching as BMatching
from .bipartite import BipartiteMatching as BipartiteMatching
from .general import Matching as Matching
