"""Spaces of outputs, and what can be computed on them from potentials alone."""

from .categorical import Binary, Categorical
from .chain import Chain
from .factor_graph import FactorGraph
from .matching import BipartiteMatching, Matching

__all__ = ["Binary", "BipartiteMatching", "Categorical", "Chain", "FactorGraph", "Matching"]
