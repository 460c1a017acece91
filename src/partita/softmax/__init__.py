"""One label per example: softmax regression, its latent form, maximum entropy."""

from .._lazy import names_of_stub

__getattr__, __dir__, __all__ = names_of_stub(__name__, __file__)
