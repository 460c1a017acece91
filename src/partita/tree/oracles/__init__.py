"""Solvers that find one best tree: one file each, with other people's libraries imported when first asked for."""

from .chu_liu_edmonds import ChuLiuEdmondsOracle
from .networkx_arborescence import NetworkxArborescenceOracle
from .scipy_tree import ScipyTreeOracle

__all__ = ["ChuLiuEdmondsOracle", "NetworkxArborescenceOracle", "ScipyTreeOracle"]
