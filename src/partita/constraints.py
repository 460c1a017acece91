"""Convex constraints on the weights of a model: ``SoftmaxRegression(constraints=[Box(lower=0.0)])``.

`WeightBounds` and `WeightTies` are for weights that go by name, those of `ChainCRF`.
"""

from .estimators.weight_constraints import WeightBounds, WeightTies
from .objectives.constraints import Ball, Box, Constraint, CvxpySet, Linear, Monotone, Simplex, Ties

__all__ = ["Ball", "Box", "Constraint", "CvxpySet", "Linear", "Monotone", "Simplex", "Ties", "WeightBounds", "WeightTies"]
