__version__: str

from .bayesnet.estimators.bayesian_network import BayesianNetwork as BayesianNetwork
from .chain.data.sequences import SequenceData as SequenceData
from .chain.estimators.boltzmann_chain import BoltzmannChain as BoltzmannChain
from .chain.estimators.chain_crf import ChainCRF as ChainCRF
from .chain.estimators.column_tagger import ColumnTagger as ColumnTagger
from .chain.estimators.hidden.hidden_chain import HiddenChainCRF as HiddenChainCRF
from .chain.estimators.hidden.latent_dynamic import LatentDynamicCRF as LatentDynamicCRF
from .core.errors import (
    CapabilityError as CapabilityError,
    ConvergenceWarning as ConvergenceWarning,
    DataWarning as DataWarning,
    ModelFileError as ModelFileError,
    NumericalError as NumericalError,
    TooLargeError as TooLargeError,
)
from .core.results import Status as Status
from .estimators.persistence import load as load, save as save
from .graph.estimators.graph_crf import GraphCRF as GraphCRF
from .graph.estimators.markov_network import MarkovNetwork as MarkovNetwork
from .graph.estimators.tradeoff import tradeoff as tradeoff
from .matching.estimators.matching_crf import MatchingCRF as MatchingCRF
from .objectives.composite.likelihood import CompositeLikelihood as CompositeLikelihood
from .oracle.estimators.oracle_crf import OracleCRF as OracleCRF
from .softmax.estimators.latent_softmax import LatentSoftmax as LatentSoftmax
from .softmax.estimators.max_entropy import MaxEnt as MaxEnt
from .softmax.estimators.softmax_regression import SoftmaxRegression as SoftmaxRegression, l1_max as l1_max
from .solvers.constrained import ConstrainedNewton as ConstrainedNewton
from .solvers.constrained_lbfgs import ConstrainedLBFGS as ConstrainedLBFGS
from .solvers.descent import ConjugateGradient as ConjugateGradient, SteepestDescent as SteepestDescent
from .solvers.em import EM as EM
from .solvers.frank_wolfe import BlockFrankWolfe as BlockFrankWolfe
from .solvers.lbfgs import LBFGS as LBFGS
from .solvers.loop import minimize as minimize
from .solvers.majorize import Majorize as Majorize
from .solvers.newton import Newton as Newton
from .solvers.orthant import OWLQN as OWLQN
from .solvers.proximal import ProximalNewton as ProximalNewton
from .solvers.stochastic.bound import StochasticBound as StochasticBound
from .solvers.stochastic.sgd import SGD as SGD
from .solvers.stochastic.warm_up import StochasticStart as StochasticStart
from .tree.estimators.dependency_crf import DependencyCRF as DependencyCRF
