from .estimators.matching_crf import MatchingCRF as MatchingCRF
from .oracles.assignment import AssignmentOracle as AssignmentOracle
from .oracles.b_matching import BMatchingOracle as BMatchingOracle
from .structure.b_matching import BMatching as BMatching
from .structure.bipartite import BipartiteMatching as BipartiteMatching
from .structure.general import Matching as Matching
