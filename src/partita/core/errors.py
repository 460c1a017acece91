"""Errors and warnings that users can catch by name."""

from __future__ import annotations

from sklearn.exceptions import ConvergenceWarning

__all__ = ["CapabilityError", "ConvergenceWarning", "DataWarning", "ModelFileError", "NumericalError", "TooLargeError"]


class CapabilityError(TypeError):
    """A solver needs something that the objective does not offer."""


class ModelFileError(ValueError):
    """A model file is damaged, of an unknown version, or not a model file."""


class TooLargeError(ValueError):
    """An exact answer needs more memory than it may have."""


class NumericalError(ArithmeticError):
    """A computation gave NaN, or something that contradicts itself: what would be returned is not an answer."""


class DataWarning(UserWarning):
    """Data were read in a way that may not be what was meant; the text says how, and how to say otherwise."""
