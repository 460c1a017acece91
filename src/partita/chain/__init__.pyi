from .bounds import (
    UPPERS as UPPERS,
    DenseChains as DenseChains,
    LineBound as LineBound,
    above_all as above_all,
    chain_bound as chain_bound,
    junction_tree_bound as junction_tree_bound,
    printed as printed,
    shares_and_roots as shares_and_roots,
)
from .data.column_tables import check_labels as check_labels, join_columns as join_columns
from .data.sequences import SequenceData as SequenceData
from .data.weight_constraints import WeightBounds as WeightBounds, WeightTies as WeightTies
from .estimators.boltzmann_chain import BoltzmannChain as BoltzmannChain
from .estimators.chain_crf import ChainCRF as ChainCRF
from .estimators.column_tagger import ColumnTagger as ColumnTagger
from .estimators.hidden.hidden_chain import HiddenChainCRF as HiddenChainCRF
from .estimators.hidden.latent_dynamic import LatentDynamicCRF as LatentDynamicCRF
from .features.attributes import AttributeVectorizer as AttributeVectorizer
from .features.templates import Templates as Templates
from .objective.composite import ChainComposite as ChainComposite
from .objective.likelihood import ChainLikelihood as ChainLikelihood, ChainPoint as ChainPoint
from .structure.chain import Chain as Chain, Potentials as Potentials
from .structure.forbidden import Forbidden as Forbidden
