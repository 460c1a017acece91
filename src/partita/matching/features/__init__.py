"""Linear maps from parameters to weights of edges: features of edges, of pairs of vertices, of attributes of vertices."""

from ..._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
