"""Linear maps from parameters to potentials, and back; attributes of tokens as sparse matrices."""

from ._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
