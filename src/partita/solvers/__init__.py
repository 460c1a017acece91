"""Optimisers that see declared capabilities only, and the one loop that runs them."""

from .auto import Auto, make_solver
from .descent import ConjugateGradient, SteepestDescent
from .lbfgs import LBFGS
from .loop import minimize
from .majorize import Majorize
from .newton import Newton
from .proximal import ProximalNewton

__all__ = [
    "LBFGS",
    "Auto",
    "ConjugateGradient",
    "Majorize",
    "Newton",
    "ProximalNewton",
    "SteepestDescent",
    "make_solver",
    "minimize",
]
