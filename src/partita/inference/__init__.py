"""Approximate engines: answers about a structure from its potentials, with their quality."""

from .belief_propagation import bethe, max_product, tree_reweighted
from .counting_numbers import is_concave
from .gibbs import gibbs, gibbs_states
from .mean_field import mean_field

__all__ = ["bethe", "gibbs", "gibbs_states", "is_concave", "max_product", "mean_field", "tree_reweighted"]
