from .auto import Auto as Auto
from .constrained import ConstrainedNewton as ConstrainedNewton
from .constrained_lbfgs import ConstrainedLBFGS as ConstrainedLBFGS
from .descent import ConjugateGradient as ConjugateGradient, SteepestDescent as SteepestDescent
from .em import EM as EM
from .frank_wolfe import BlockFrankWolfe as BlockFrankWolfe
from .lbfgs import LBFGS as LBFGS
from .loop import minimize as minimize
from .majorize import Majorize as Majorize
from .named import make_solver as make_solver
from .newton import Newton as Newton
from .orthant import OWLQN as OWLQN
from .proximal import ProximalNewton as ProximalNewton
from .stochastic.bound import StochasticBound as StochasticBound
from .stochastic.sgd import SGD as SGD
from .stochastic.warm_up import StochasticStart as StochasticStart
