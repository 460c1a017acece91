"""The scikit-learn face."""

from .max_entropy import MaxEnt
from .persistence import load, save
from .softmax import SoftmaxRegression, l1_max

__all__ = ["MaxEnt", "SoftmaxRegression", "l1_max", "load", "save"]
