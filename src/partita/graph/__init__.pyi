from .bounds import graph_bound as graph_bound
from .engines.counting_numbers import is_concave as is_concave
from .engines.gibbs import gibbs as gibbs, gibbs_states as gibbs_states
from .engines.loopy_belief_propagation import bethe as bethe, max_product as max_product, tree_reweighted as tree_reweighted
from .engines.mean_field import mean_field as mean_field
from .estimators.graph_crf import GraphCRF as GraphCRF
from .estimators.markov_network import MarkovNetwork as MarkovNetwork
from .estimators.tradeoff import tradeoff as tradeoff
from .features.tied_tables import TableType as TableType, TiedTables as TiedTables
from .kernels.free_sets import evaluate as evaluate, maxima as maxima, surplus as surplus
from .objective.likelihood import GraphLikelihood as GraphLikelihood, GraphPoint as GraphPoint
from .oracles.max_flow import MaxFlowOracle as MaxFlowOracle
from .oracles.planar_ising import PlanarCutOracle as PlanarCutOracle, PlanarIsingOracle as PlanarIsingOracle
from .oracles.polytopes import JunctionTreeOracle as JunctionTreeOracle, LinearProgramOracle as LinearProgramOracle
from .oracles.viterbi import ChainOracle as ChainOracle
from .structure.evidence import Evidence as Evidence
from .structure.factor_graph import FactorGraph as FactorGraph
from .structure.free_sets import (
    LARGEST as LARGEST,
    FreeSets as FreeSets,
    FreeSums as FreeSums,
    factors_of_variables as factors_of_variables,
    member_strides as member_strides,
)
from .structure.scopes import Scopes as Scopes, ranges as ranges
from .uai import (
    format_marginals as format_marginals,
    format_partition as format_partition,
    format_states as format_states,
    read_evidence as read_evidence,
    read_marginals as read_marginals,
    read_partition as read_partition,
    read_states as read_states,
    read_uai as read_uai,
    write_evidence as write_evidence,
    write_marginals as write_marginals,
    write_partition as write_partition,
    write_states as write_states,
    write_uai as write_uai,
)
