"""What solvers minimise."""

from .constrained import Constrained, ConstrainedPoint, compile_constraints
from .likelihood import Likelihood, LikelihoodPoint

__all__ = ["Constrained", "ConstrainedPoint", "Likelihood", "LikelihoodPoint", "compile_constraints"]
