"""The scikit-learn face."""

from .persistence import load, save
from .softmax import SoftmaxRegression

__all__ = ["SoftmaxRegression", "load", "save"]
