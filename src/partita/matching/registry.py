"""The engines of matchings, and the solvers that find best matchings, by name."""

from __future__ import annotations

from ..core.registry import finder

find_engine = finder(
    {
        "bethe": "partita.matching.engines.bethe:matching_bethe",
        "frank_wolfe": "partita.matching.engines.frank_wolfe:matching_frank_wolfe",
        "perturb_and_map": "partita.matching.engines.perturb_and_map:matching_perturb_and_map",
        "b_bethe": "partita.matching.engines.b_bethe:b_matching_bethe",
        "b_frank_wolfe": "partita.matching.engines.b_frank_wolfe:b_matching_frank_wolfe",
        "b_perturb_and_map": "partita.matching.engines.perturb_and_map:b_matching_perturb_and_map",
        "b_best": "partita.matching.oracles.b_matching:best_edges",
        "b_matchings": "partita.matching.oracles.b_matching:b_matchings",
        "markov_chain": "partita.matching.engines.markov_chain:matching_chain",
        "assignment": "partita.matching.oracles.assignment:assignments",
        "assignment_duals": "partita.matching.oracles.assignment:assignment_duals",
        "general_matching": "partita.matching.oracles.general_matching:general_matchings",
    }
)
