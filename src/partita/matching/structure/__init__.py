"""The structures `BipartiteMatching` and `Matching`: sets of edges in which no two share a vertex."""

from ..._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
