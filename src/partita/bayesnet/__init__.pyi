from .bif import read_bif as read_bif, write_bif as write_bif
from .estimators.bayesian_network import BayesianNetwork as BayesianNetwork
from .estimators.convex_em import ConvexEM as ConvexEM
from .relaxation.joint_em import (
    ChildTerm as ChildTerm,
    HiddenTerm as HiddenTerm,
    Relaxation as Relaxation,
    critical_alpha as critical_alpha,
    relax as relax,
)
from .structure.discrete_network import DiscreteNetwork as DiscreteNetwork
