"""Optimisers that see declared capabilities only, and the one loop that runs them."""

from .auto import Auto, make_solver
from .constrained import ConstrainedNewton
from .descent import ConjugateGradient, SteepestDescent
from .em import EM
from .frank_wolfe import BlockFrankWolfe
from .lbfgs import LBFGS
from .loop import minimize
from .majorize import Majorize
from .newton import Newton
from .orthant import OWLQN
from .proximal import ProximalNewton
from .sgd import SGD
from .stochastic import StochasticBound
from .stochastic_start import StochasticStart

__all__ = [
    "EM",
    "LBFGS",
    "OWLQN",
    "SGD",
    "Auto",
    "BlockFrankWolfe",
    "ConjugateGradient",
    "ConstrainedNewton",
    "Majorize",
    "Newton",
    "ProximalNewton",
    "SteepestDescent",
    "StochasticBound",
    "StochasticStart",
    "make_solver",
    "minimize",
]
