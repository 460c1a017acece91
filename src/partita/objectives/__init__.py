"""What solvers minimise."""

from .elastic_net import ElasticNet, ElasticNetPoint
from .likelihood import Likelihood, LikelihoodPoint

__all__ = ["ElasticNet", "ElasticNetPoint", "Likelihood", "LikelihoodPoint"]
