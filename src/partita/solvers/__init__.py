"""Optimisers that see declared capabilities only, and the one loop that runs them."""

from .._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
