"""Sets of parts that only a solver for the best one knows: learning with nothing but a MAP oracle."""

from .._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
