"""Spaces of outputs, and what can be computed on them from potentials alone."""

from .categorical import Binary, Categorical

__all__ = ["Binary", "Categorical"]
