"""What solvers minimise."""

from .constrained import Constrained, ConstrainedPoint, compile_constraints
from .elastic_net import ElasticNet, ElasticNetPoint
from .l1 import L1, L1Point
from .likelihood import Likelihood, LikelihoodPoint

__all__ = [
    "L1",
    "Constrained",
    "ConstrainedPoint",
    "ElasticNet",
    "ElasticNetPoint",
    "L1Point",
    "Likelihood",
    "LikelihoodPoint",
    "compile_constraints",
]
