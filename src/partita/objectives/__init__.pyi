from ..bayesnet.estimators.convex_em import ConvexEM as ConvexEM
from ..bayesnet.relaxation.joint_em import (
    ChildTerm as ChildTerm,
    HiddenTerm as HiddenTerm,
    Relaxation as Relaxation,
    critical_alpha as critical_alpha,
    relax as relax,
)
from ..chain.objective.composite import ChainComposite as ChainComposite
from ..chain.objective.likelihood import ChainLikelihood as ChainLikelihood, ChainPoint as ChainPoint
from ..graph.objective.asymptotics import Population as Population, population_optimum as population_optimum
from ..graph.objective.likelihood import GraphLikelihood as GraphLikelihood, GraphPoint as GraphPoint
from ..softmax.objective.elastic_net import ElasticNet as ElasticNet, ElasticNetPoint as ElasticNetPoint
from ..softmax.objective.latent import LatentLikelihood as LatentLikelihood, LatentPoint as LatentPoint
from ..softmax.objective.likelihood import Likelihood as Likelihood, LikelihoodPoint as LikelihoodPoint
from .composite.policies import (
    Independent as Independent,
    Listed as Listed,
    Multinomial as Multinomial,
    Policy as Policy,
    Product as Product,
)
from .constraints.constrained import Constrained as Constrained, ConstrainedPoint as ConstrainedPoint
from .constraints.feasible_set import FeasibleSet as FeasibleSet
from .constraints.named import NamedWeights as NamedWeights
from .constraints.sets import compile_constraints as compile_constraints
from .l1 import L1 as L1, L1Point as L1Point
