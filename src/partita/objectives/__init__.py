"""What solvers minimise."""

from .chain import ChainLikelihood, ChainPoint
from .chain_composite import ChainComposite
from .constrained import Constrained, ConstrainedPoint, compile_constraints
from .elastic_net import ElasticNet, ElasticNetPoint
from .feasible_set import FeasibleSet
from .graph import GraphLikelihood, GraphPoint
from .joint_em import ChildTerm, HiddenTerm, Relaxation, critical_alpha, relax
from .l1 import L1, L1Point
from .latent import LatentLikelihood, LatentPoint
from .likelihood import Likelihood, LikelihoodPoint

__all__ = [
    "L1",
    "ChainComposite",
    "ChainLikelihood",
    "ChainPoint",
    "ChildTerm",
    "Constrained",
    "ConstrainedPoint",
    "ElasticNet",
    "ElasticNetPoint",
    "FeasibleSet",
    "GraphLikelihood",
    "GraphPoint",
    "HiddenTerm",
    "L1Point",
    "LatentLikelihood",
    "LatentPoint",
    "Likelihood",
    "LikelihoodPoint",
    "Relaxation",
    "compile_constraints",
    "critical_alpha",
    "relax",
]
