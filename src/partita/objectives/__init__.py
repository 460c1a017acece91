"""What solvers minimise."""

from .chain import ChainLikelihood, ChainPoint
from .constrained import Constrained, ConstrainedPoint, compile_constraints
from .elastic_net import ElasticNet, ElasticNetPoint
from .feasible_set import FeasibleSet
from .likelihood import Likelihood, LikelihoodPoint

__all__ = [
    "ChainLikelihood",
    "ChainPoint",
    "Constrained",
    "ConstrainedPoint",
    "ElasticNet",
    "ElasticNetPoint",
    "FeasibleSet",
    "Likelihood",
    "LikelihoodPoint",
    "compile_constraints",
]
