from .chain.bounds import (
    DenseChains as DenseChains,
    LineBound as LineBound,
    chain_bound as chain_bound,
    junction_tree_bound as junction_tree_bound,
)
from .core.contracts.capabilities import BOUNDS as BOUNDS, LOW_RANK as LOW_RANK
from .graph.bounds import graph_bound as graph_bound
from .objectives.bounds.low_rank import LowRank as LowRank, StreamingLowRank as StreamingLowRank
from .softmax.bounds.certificates import (
    iteration_limit as iteration_limit,
    range_certificate as range_certificate,
    self_concordant_certificate as self_concordant_certificate,
)
from .softmax.bounds.low_rank import low_rank_model as low_rank_model
from .softmax.bounds.partition import PartitionBound as PartitionBound, partition_bound as partition_bound
from .softmax.bounds.potential import (
    KINDS as KINDS,
    DifferenceCurvature as DifferenceCurvature,
    PotentialCurvature as PotentialCurvature,
    potential_curvature as potential_curvature,
)
from .softmax.bounds.quadratic import GaugeFactor as GaugeFactor, Quadratic as Quadratic
from .softmax.bounds.rates import DecayRate as DecayRate, decay_rate as decay_rate
