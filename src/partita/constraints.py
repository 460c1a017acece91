"""Convex constraints on the weights of a model: ``SoftmaxRegression(constraints=[Box(lower=0.0)])``.

`WeightBounds` and `WeightTies` are for weights that go by name, those of `ChainCRF`."""

from ._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
