"""What solvers minimise."""

from .constrained import Constrained, ConstrainedPoint, compile_constraints
from .elastic_net import ElasticNet, ElasticNetPoint
from .likelihood import Likelihood, LikelihoodPoint

__all__ = [
    "Constrained",
    "ConstrainedPoint",
    "ElasticNet",
    "ElasticNetPoint",
    "Likelihood",
    "LikelihoodPoint",
    "compile_constraints",
]
