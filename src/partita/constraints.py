"""Convex constraints on the coefficients of a model: ``SoftmaxRegression(constraints=[Box(lower=0.0)])``."""

from .objectives.constraints import Ball, Box, Constraint, CvxpySet, Linear, Monotone, Simplex, Ties

__all__ = ["Ball", "Box", "Constraint", "CvxpySet", "Linear", "Monotone", "Simplex", "Ties"]
