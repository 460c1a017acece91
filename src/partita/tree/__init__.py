"""Spanning trees: undirected ones, and directed ones as in dependency parsing."""

from .._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
