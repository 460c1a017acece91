"""The scikit-learn face."""

from .bayesian_network import BayesianNetwork
from .boltzmann_chain import BoltzmannChain
from .chain import ChainCRF
from .column_tagger import ColumnTagger
from .convex_em import ConvexEM
from .graph_crf import GraphCRF
from .hidden_chain import HiddenChainCRF
from .latent_dynamic import LatentDynamicCRF
from .latent_softmax import LatentSoftmax
from .likelihood_comparison import tradeoff
from .markov_network import MarkovNetwork
from .matching_crf import MatchingCRF
from .max_entropy import MaxEnt
from .persistence import load, save
from .sequences import SequenceData
from .softmax import SoftmaxRegression, l1_max

__all__ = [
    "BayesianNetwork",
    "BoltzmannChain",
    "ChainCRF",
    "ColumnTagger",
    "ConvexEM",
    "GraphCRF",
    "HiddenChainCRF",
    "LatentDynamicCRF",
    "LatentSoftmax",
    "MarkovNetwork",
    "MatchingCRF",
    "MaxEnt",
    "SequenceData",
    "SoftmaxRegression",
    "l1_max",
    "load",
    "save",
    "tradeoff",
]
