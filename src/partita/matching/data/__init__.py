"""What users bring, read into arrays: examples with features or attributes, and who is matched with whom."""

from ..._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
