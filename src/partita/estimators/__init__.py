"""The scikit-learn face."""

from .persistence import load, save
from .softmax import SoftmaxRegression, l1_max

__all__ = ["SoftmaxRegression", "l1_max", "load", "save"]
