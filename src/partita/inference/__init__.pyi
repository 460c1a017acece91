from ..graph.engines.counting_numbers import is_concave as is_concave
from ..graph.engines.gibbs import gibbs as gibbs, gibbs_states as gibbs_states
from ..graph.engines.loopy_belief_propagation import (
    bethe as bethe,
    max_product as max_product,
    tree_reweighted as tree_reweighted,
)
from ..graph.engines.mean_field import mean_field as mean_field
from ..graph.oracles.max_flow import MaxFlowOracle as MaxFlowOracle
from ..graph.oracles.planar_ising import PlanarCutOracle as PlanarCutOracle, PlanarIsingOracle as PlanarIsingOracle
from ..graph.oracles.polytopes import JunctionTreeOracle as JunctionTreeOracle, LinearProgramOracle as LinearProgramOracle
from ..graph.oracles.viterbi import ChainOracle as ChainOracle
from ..matching.oracles.assignment import AssignmentOracle as AssignmentOracle
from ..matching.oracles.b_matching import BMatchingOracle as BMatchingOracle
from .entropies import (
    Entropy as Entropy,
    GroupEntropy as GroupEntropy,
    IndependentEntropy as IndependentEntropy,
    PartGroup as PartGroup,
    SeparableEntropy as SeparableEntropy,
    TableEntropy as TableEntropy,
)
from .oracle import Answer as Answer, Oracle as Oracle, UserOracle as UserOracle
from .parts import Parts as Parts, infer_parts as infer_parts
