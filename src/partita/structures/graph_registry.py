"""The engines of factor graphs, and the solvers that find best configurations, by name.

An engine takes a graph, a matrix of potentials and options, and returns a `Result`; a decoder returns configurations and
their values.
"""

from __future__ import annotations

from ..core.registry import finder

#: Engines that answer about marginals. `FactorGraph.infer` takes these names, besides "exact" and "auto".
APPROXIMATE = ("bp", "trw", "mean_field", "gibbs", "frank_wolfe", "perturb_and_map")

find_engine = finder(
    {
        "bp": "partita.inference.belief_propagation:bethe",
        "trw": "partita.inference.belief_propagation:tree_reweighted",
        "mean_field": "partita.inference.mean_field:mean_field",
        "gibbs": "partita.inference.gibbs:gibbs",
        "frank_wolfe": "partita.inference.graph_frank_wolfe:graph_frank_wolfe",
        "perturb_and_map": "partita.inference.graph_perturb_and_map:perturb_and_map",
        "max_product": "partita.inference.belief_propagation:max_product",
        "max_flow": "partita.inference.map.max_flow:flow_argmax",
        "oracle": "partita.inference.map.find_oracle:find_oracle",
    }
)
