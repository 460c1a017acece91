"""Where the engines are that structures do not have themselves: they are imported when first asked for by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

#: Module and function of every engine. A function takes a structure, its potentials and options, and returns a `Result`;
#: the last ones return configurations.
_HOMES = {
    "bp": ("belief_propagation", "bethe"),
    "trw": ("belief_propagation", "tree_reweighted"),
    "mean_field": ("mean_field", "mean_field"),
    "gibbs": ("gibbs", "gibbs"),
    "frank_wolfe": ("graph_frank_wolfe", "graph_frank_wolfe"),
    "perturb_and_map": ("perturb_and_map", "perturb_and_map"),
    "max_product": ("belief_propagation", "max_product"),
    "max_flow": ("map.max_flow", "flow_argmax"),
    "matching_bethe": ("matching_bethe", "matching_bethe"),
    "matching_frank_wolfe": ("frank_wolfe", "matching_frank_wolfe"),
    "matching_perturb_and_map": ("perturb_and_map", "matching_perturb_and_map"),
    "matching_chain": ("matching_chain", "matching_chain"),
    "assignment": ("map.assignment", "assignments"),
    "assignment_duals": ("map.assignment", "assignment_duals"),
    "general_matching": ("map.general_matching", "general_matchings"),
}
#: Those that answer about marginals.
APPROXIMATE = ("bp", "trw", "mean_field", "gibbs", "frank_wolfe", "perturb_and_map")


def find_engine(name: str) -> Callable[..., Any]:
    """The engine of a name."""
    module, function = _HOMES[name]
    found: Callable[..., Any] = getattr(importlib.import_module(f"partita.inference.{module}"), function)
    return found
