"""An l1 penalty on top of a smooth objective, and what such penalties have in common."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from scipy.special import xlogy

from ..core.contracts.batches import Blocks
from ..core.contracts.capabilities import Capability, HasHessianProduct, HasPreconditioner, Product
from ..core.contracts.objective import Objective
from ..core.contracts.point import Ray
from ..core.results import FloatArray
from .conjugates import RestrictedConjugate
from .penalized import OnLikelihood

#: What is taken over from the smooth part, which alone has curvature, and its dual.
_INHERITED = frozenset({Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER, Capability.BLOCKS})


def check_l1(l1: Any, size: int) -> FloatArray:
    """The l1 of each parameter, finite and non-negative."""
    values = np.asarray(l1, dtype=np.float64)
    if values.shape not in ((), (size,)):
        raise ValueError(f"l1 must be a number or have shape ({size},), one entry per parameter; got shape {values.shape}")
    values = np.array(np.broadcast_to(values, (size,)))
    if not np.isfinite(values).all() or values.min(initial=0.0) < 0.0:
        raise ValueError("l1 must be finite and non-negative")
    return values


def shortest_subgradient(gradient: FloatArray, l1: FloatArray, theta: FloatArray) -> FloatArray:
    """Of ``smooth + sum_j l1_j |theta_j|``, from the gradient of the smooth part."""
    at_zero = np.sign(gradient) * np.maximum(np.abs(gradient) - l1, 0.0)
    return np.where(theta == 0.0, at_zero, gradient + l1 * np.sign(theta))


def fenchel_gap(
    v: FloatArray, theta: FloatArray, l1: FloatArray, l2: FloatArray, divergence: Callable[[float], float]
) -> float:
    """``F(theta)`` minus the Fenchel dual, for a loss with gradient v and penalty ``sum_j l1 |theta_j| + l2 theta_j^2 / 2``.

    The dual point is ``q_i = e_{y_i} + c (p_i - e_{y_i})``, where p_i are the probabilities of the outputs of example i:

        divergence(c) + sum_j [l1 |theta_j| + (l2/2) theta_j^2 + c v_j theta_j + (c |v_j| - l1)_+^2 / (2 l2)],

    ``divergence(c) = sum_i w_i KL(q_i || p_i)``, for the largest c <= 1 that keeps the last term finite (``|c v_j| <= l1``
    where l2 = 0), or the one for which it vanishes. No term is negative, so the gap is exact to rounding however small.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(v == 0.0, np.inf, l1 / np.abs(v))

    def at(c: float) -> float:
        excess = np.maximum(c * np.abs(v) - l1, 0.0)
        conjugate = np.divide(0.5 * excess**2, l2, out=np.zeros_like(v), where=l2 > 0.0)
        terms = l1 * np.abs(theta) + 0.5 * l2 * theta**2 + c * v * theta + conjugate
        return float(np.maximum(terms, 0.0).sum()) + max(0.0, divergence(c))

    return min(at(c) for c in {min(1.0, float(ratio[l2 == 0.0].min(initial=1.0))), min(1.0, float(ratio.min(initial=1.0)))})


def mixture_divergence(log_p: FloatArray, weights: FloatArray, c: float) -> float:
    """``sum_i w_i KL(q_i || p_i)`` with ``q_i = e_{y_i} + c (p_i - e_{y_i})``, from ``log_p = log p_i(y_i)``."""
    if c >= 1.0:
        return 0.0
    log_p = np.minimum(log_p, 0.0)
    rest = -np.expm1(log_p)
    return float(weights @ ((1.0 - c * rest) * (np.log1p(-c * rest) - log_p) + rest * xlogy(c, c)))


def no_ray(instead: str) -> NotImplementedError:
    """What to say to who asks for one."""
    return NotImplementedError(f"an objective with an l1 penalty has no slope along a line; {instead}")


class SmoothPoint(HasHessianProduct, HasPreconditioner, Protocol):
    """What a point of the smooth part is asked for; products and preconditioner only where the objective offers them."""

    @property
    def slack(self) -> float: ...
    def divergence(self, c: float) -> float:
        """See `fenchel_gap`; inf where it is not known."""
        ...


class SmoothObjective(Objective, Protocol):
    """A smooth objective with a quadratic penalty: see `PenalizedObjective`."""

    @property
    def penalty(self) -> FloatArray: ...
    @property
    def convex(self) -> bool: ...
    def at(self, parameters: FloatArray) -> SmoothPoint: ...


class L1(OnLikelihood[SmoothObjective]):
    """``F(theta) = smooth(theta) + sum_j l1_j |theta_j|`` for any smooth objective.

    Parameters
    ----------
    objective : PenalizedObjective
        The smooth part, with its own l2 penalty.
    l1 : float or array of shape (size,)
        The l1 of each parameter.

    Notes
    -----
    A point's gradient is the shortest subgradient. The `gap` is that of
    `fenchel_gap` if points of the smooth part know their `divergence`; else the dual point is taken at c = 1, where the gap
    is at most ``sum_j g_j^2 / (2 l2_j)``, and infinite while a parameter without l2 violates ``|v_j| <= l1_j``.
    """

    def __init__(self, objective: SmoothObjective, l1: float | FloatArray) -> None:
        if Capability.SMOOTH not in objective.capabilities:
            raise ValueError(f"l1 penalties need a smooth objective; {type(objective).__name__} is not")
        super().__init__(objective)
        self.l1: FloatArray = check_l1(l1, self.size)
        self.capabilities: frozenset[Capability] = frozenset({Capability.ORTHANT}) | (_INHERITED & objective.capabilities)

    @property
    def blas_threads(self) -> int | None:
        return self.likelihood.blas_threads

    def blocks(self, oracle: Callable[..., Any] | None = None) -> Blocks:
        """The dual of the smooth part, with the conjugate of both penalties."""
        dual: Any = self.likelihood
        blocks: Any = dual.blocks(oracle)
        return blocks.under(RestrictedConjugate(dual.penalty, self.size, self.l1))  # type: ignore[no-any-return]

    def at(self, parameters: FloatArray) -> L1Point:
        """The objective seen from `parameters`."""
        return L1Point(self, self.likelihood.at(parameters))


class L1Point:
    """The objective at one parameter vector; `smooth` is the smooth part there."""

    objective: L1
    smooth: SmoothPoint

    def __init__(self, objective: L1, smooth: SmoothPoint) -> None:
        self.objective, self.smooth = objective, smooth
        self.parameters: FloatArray = smooth.parameters
        self.value: float = float(smooth.value) + float((objective.l1 * np.abs(self.parameters)).sum())

    @cached_property
    def gradient(self) -> FloatArray:
        """The shortest subgradient."""
        return shortest_subgradient(self.smooth.gradient, self.objective.l1, self.parameters)

    @cached_property
    def gap(self) -> float:
        """Certified bound on the distance of `value` to the minimum."""
        l1, l2, theta = self.objective.l1, self.objective.likelihood.penalty, self.parameters
        if not self.objective.likelihood.convex:
            return np.inf
        return fenchel_gap(self.smooth.gradient - l2 * theta, theta, l1, l2, self.smooth.divergence) + self.smooth.slack

    def hessian_product(self, precise: bool = True) -> Product:
        """Products with the Hessian of the smooth part."""
        return self.smooth.hessian_product(precise)

    def preconditioner(self, strong: bool = False) -> Product:
        """That of the smooth part."""
        return self.smooth.preconditioner(strong)

    def orthant_step(self, step: FloatArray) -> L1Point:
        """The point after a step that is cut off where it would leave the orthant.

        A penalised parameter keeps its sign or becomes zero; one that is zero moves against its gradient or stays.
        """
        theta, l1 = self.parameters, self.objective.l1
        target = theta + step
        side = np.where(theta == 0.0, -self.gradient, theta)
        target[(l1 > 0.0) & (target * side <= 0.0)] = 0.0
        return self.objective.at(target)

    def along(self, direction: FloatArray) -> Ray:
        raise no_ray("take orthant steps")
