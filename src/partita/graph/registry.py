"""The engines of factor graphs, and the solvers that find best configurations, by name.

An engine takes a graph, a matrix of potentials and options, and returns a `Result`; a decoder returns configurations and
their values.
"""

from __future__ import annotations

from ..core.registry import finder

#: Engines that answer about marginals. `FactorGraph.infer` takes these names, besides "exact" and "auto".
OTHERS = ("bp", "trw", "mean_field", "gibbs", "frank_wolfe", "perturb_and_map", "planar")

find_engine = finder(
    {
        "bp": "partita.graph.engines.loopy_belief_propagation:bethe",
        "trw": "partita.graph.engines.loopy_belief_propagation:tree_reweighted",
        "mean_field": "partita.graph.engines.mean_field:mean_field",
        "gibbs": "partita.graph.engines.gibbs:gibbs",
        "frank_wolfe": "partita.graph.engines.frank_wolfe:graph_frank_wolfe",
        "perturb_and_map": "partita.graph.engines.perturb_and_map:perturb_and_map",
        "planar": "partita.graph.engines.planar_ising:kac_ward",
        "planar_log_partition": "partita.graph.engines.planar_ising:planar_log_partition",
        "planar_argmax": "partita.graph.oracles.planar_ising:planar_argmax",
        "max_product": "partita.graph.engines.loopy_belief_propagation:max_product",
        "max_flow": "partita.graph.oracles.max_flow:flow_argmax",
        "oracle": "partita.graph.oracles.find:find_oracle",
    }
)
