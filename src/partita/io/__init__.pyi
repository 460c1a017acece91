from ..bayesnet.bif import read_bif as read_bif, write_bif as write_bif
from ..bayesnet.structure.discrete_network import DiscreteNetwork as DiscreteNetwork
from ..graph.uai import (
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
from .atomic import replacing as replacing
from .columns import iter_columns as iter_columns, read_columns as read_columns, read_conllu as read_conllu
from .model_file import open_model as open_model, read_model as read_model, write_model as write_model
