"""The engines of matchings, and the solvers that find best matchings, by name."""

from __future__ import annotations

from ..core.registry import finder

find_engine = finder(
    {
        "bethe": "partita.inference.matching_bethe:matching_bethe",
        "frank_wolfe": "partita.inference.matching_frank_wolfe:matching_frank_wolfe",
        "perturb_and_map": "partita.inference.matching_perturb_and_map:matching_perturb_and_map",
        "markov_chain": "partita.inference.matching_chain:matching_chain",
        "assignment": "partita.inference.map.assignment:assignments",
        "assignment_duals": "partita.inference.map.assignment:assignment_duals",
        "general_matching": "partita.inference.map.general_matching:general_matchings",
    }
)
