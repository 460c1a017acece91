"""The scikit-learn face."""

from .max_entropy import MaxEnt
from .persistence import load, save
from .softmax import SoftmaxRegression

__all__ = ["MaxEnt", "SoftmaxRegression", "load", "save"]
