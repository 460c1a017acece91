from .bounds.accumulate import DiagonalSum as DiagonalSum
from .bounds.certificates import (
    iteration_limit as iteration_limit,
    range_certificate as range_certificate,
    self_concordant_certificate as self_concordant_certificate,
)
from .bounds.low_rank import low_rank_model as low_rank_model
from .bounds.partition import PartitionBound as PartitionBound, partition_bound as partition_bound
from .bounds.potential import (
    KINDS as KINDS,
    SEQUENTIAL as SEQUENTIAL,
    DifferenceCurvature as DifferenceCurvature,
    PotentialCurvature as PotentialCurvature,
    potential_curvature as potential_curvature,
)
from .bounds.quadratic import GaugeFactor as GaugeFactor, Quadratic as Quadratic
from .estimators.latent_softmax import LatentSoftmax as LatentSoftmax
from .estimators.max_entropy import MaxEnt as MaxEnt
from .estimators.softmax_regression import SoftmaxRegression as SoftmaxRegression, l1_max as l1_max
from .features.labels import LabelFeatures as LabelFeatures
from .features.linear import LinearMap as LinearMap
from .features.linear_layouts import DenseLinear as DenseLinear, SparseLinear as SparseLinear, linear_map as linear_map
from .features.rows import RowBlocks as RowBlocks
from .features.standard_columns import StandardColumns as StandardColumns, row_space as row_space
from .objective.elastic_net import ElasticNet as ElasticNet, ElasticNetPoint as ElasticNetPoint
from .objective.latent import LatentLikelihood as LatentLikelihood, LatentPoint as LatentPoint
from .objective.likelihood import Likelihood as Likelihood, LikelihoodPoint as LikelihoodPoint
from .structure import ENGINES as ENGINES, Binary as Binary, Categorical as Categorical
