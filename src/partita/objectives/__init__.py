"""What solvers minimise."""

from .likelihood import Likelihood, LikelihoodPoint

__all__ = ["Likelihood", "LikelihoodPoint"]
