"""Newton's method on a gradient, from where values no longer change."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...core.results import FloatArray

#: Newton steps, and products with the Hessian in one of them.
MAX_STEPS, MAX_PRODUCTS = 8, 200
#: What conjugate gradients leave of a gradient, and what of it a step must leave at most.
INEXACT, SHRINKS = 1e-2, 0.5
#: Length of a difference of gradients, relative to the parameters: the root of the rounding.
DIFFERENCE = 1.5e-8
#: How much a value may rise by rounding, relative.
ROUNDING = 1e-14


def to_stationary(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]],
    x: FloatArray,
    accuracy: float,
    after: Callable[[FloatArray], bool],
) -> FloatArray:
    """Shrink the gradient at x until its largest entry is at most `accuracy`, or no step shrinks it.

    Values are flat to second order at a minimum: when they stop to change, at 1e-16, gradients of 1e-9 are left, and what
    is of first order in them, such as a lower bound from the dual, has 1e-9 too. Here the gradient itself decides, and the
    value may not rise beyond rounding. Products with the Hessian are differences of gradients.

    `after` is called with every new x; a true answer ends it.
    """
    value, gradient = evaluate(x)
    for _ in range(MAX_STEPS):
        if float(np.abs(gradient).max(initial=0.0)) <= accuracy:
            break
        step = _newton_step(evaluate, x, gradient)
        if step is None:
            break
        trial = x + step
        trial_value, trial_gradient = evaluate(trial)
        if not (
            trial_value <= value + ROUNDING * max(1.0, abs(value))
            and np.linalg.norm(trial_gradient) <= SHRINKS * np.linalg.norm(gradient)
        ):
            break
        x, value, gradient = trial, trial_value, trial_gradient
        if after(x):
            break
    return x


def _newton_step(
    evaluate: Callable[[FloatArray], tuple[float, FloatArray]], x: FloatArray, gradient: FloatArray
) -> FloatArray | None:
    """Conjugate gradients for ``H s = -g``, up to a direction without curvature; None if that is the first one."""
    length = DIFFERENCE * (1.0 + float(np.linalg.norm(x)))
    step, r = np.zeros_like(x), -gradient
    p, rr = r.copy(), float(r @ r)
    goal = INEXACT**2 * rr
    for used in range(MAX_PRODUCTS):
        h = length / float(np.linalg.norm(p))
        product = (evaluate(x + h * p)[1] - gradient) / h
        curvature = float(p @ product)
        if not curvature > 0.0:
            return step if used else None
        t = rr / curvature
        step += t * p
        r = r - t * product
        before, rr = rr, float(r @ r)
        if rr <= goal:
            break
        p = r + (rr / before) * p
    return step
