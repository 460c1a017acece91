"""One Newton step: from the estimates of a cheap likelihood to the accuracy of a costlier one."""

from __future__ import annotations

from typing import Any

from ..core.results import FloatArray
from ..numerics.linalg import conjugate_gradient

#: Accuracy of the step, its most products, and how often it is halved if it does not descend.
RTOL, PRODUCTS, HALVINGS = 1e-8, 2000, 30


def newton_step(objective: Any, parameters: FloatArray) -> Any:
    """The point of `objective` one Newton step from `parameters`.

    Where these are as far from the truth as estimates of n examples are, about 1/sqrt(n), the step lands so close to the
    minimum that the difference does not count: the result has the variance of the minimiser.
    """
    point = objective.at(parameters)
    step, _ = conjugate_gradient(point.hessian_product(), point.gradient, point.preconditioner(), RTOL, PRODUCTS)
    ray, length = point.along(-step), 1.0
    for _ in range(HALVINGS):
        found = ray.at(length)[0]
        if found.value <= point.value:
            return found
        length *= 0.5
    return point
