"""EM for likelihoods with something hidden: the E-step takes expectations, the M-step fits them.

A likelihood of what is known, ``F = sum_i w_i (log Z_i - log Z_i(known)) + penalty``, lies below the function that has, in
place of the second sum, its tangent: the features that are expected given what is known (Jensen). That function is the
likelihood of data without anything hidden, convex, and as high as F where the tangent was taken; its minimum is an M-step.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
from scipy.optimize import minimize as scipy_minimize

from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.results import FloatArray

#: Most evaluations of one M-step, and the gradient for each example at which it ends: below any tolerance of the whole,
#: which would otherwise be out of reach.
INNER, INNER_TOL = 30, 1e-9


class HasHidden(Objective, Protocol):
    """A likelihood that may have something hidden."""

    def expecting(self, statistics: FloatArray) -> Objective:
        """The likelihood of the same examples whose observed features, summed with weights, are these."""
        ...


def em_step(objective: HasHidden, point: Point) -> FloatArray:
    """The parameters after an E-step at `point` and an M-step."""
    expected = objective.expecting(np.zeros(objective.size)).at(point.parameters).gradient - point.gradient
    return m_step(objective.expecting(expected), point.parameters)


def m_step(known: Objective, start: FloatArray) -> FloatArray:
    """Parameters that fit a likelihood without anything hidden, by a few steps of L-BFGS from `start`."""

    def function(theta: FloatArray) -> tuple[float, FloatArray]:
        point = known.at(theta)
        return point.value, point.gradient

    limits = {"maxfun": INNER, "ftol": 0.0, "gtol": INNER_TOL * known.scale}
    return np.asarray(scipy_minimize(function, start, jac=True, method="L-BFGS-B", options=limits).x)
