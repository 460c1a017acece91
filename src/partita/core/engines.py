"""Where the engines are that structures do not have themselves: they are imported when first asked for by name."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

#: Module and function of every engine. A function takes a structure, its potentials and options, and returns a `Result`.
_HOMES = {
    "bp": ("belief_propagation", "bethe"),
    "trw": ("belief_propagation", "tree_reweighted"),
    "mean_field": ("mean_field", "mean_field"),
    "gibbs": ("gibbs", "gibbs"),
}
APPROXIMATE = tuple(_HOMES)


def find_engine(name: str) -> Callable[..., Any]:
    """The engine of a name in `APPROXIMATE`."""
    module, function = _HOMES[name]
    found: Callable[..., Any] = getattr(importlib.import_module(f"partita.inference.{module}"), function)
    return found
