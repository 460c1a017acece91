"""What solvers minimise."""

from .chain import ChainLikelihood, ChainPoint
from .chain_composite import ChainComposite
from .constrained import Constrained, ConstrainedPoint, compile_constraints
from .elastic_net import ElasticNet, ElasticNetPoint
from .feasible_set import FeasibleSet
from .graph import GraphLikelihood, GraphPoint
from .l1 import L1, L1Point
from .latent import LatentLikelihood, LatentPoint
from .likelihood import Likelihood, LikelihoodPoint

__all__ = [
    "L1",
    "ChainComposite",
    "ChainLikelihood",
    "ChainPoint",
    "Constrained",
    "ConstrainedPoint",
    "ElasticNet",
    "ElasticNetPoint",
    "FeasibleSet",
    "GraphLikelihood",
    "GraphPoint",
    "L1Point",
    "LatentLikelihood",
    "LatentPoint",
    "Likelihood",
    "LikelihoodPoint",
    "compile_constraints",
]
