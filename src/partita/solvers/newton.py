"""Newton's method: a Cholesky factor of the Hessian, or preconditioned conjugate gradients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from ..core.contracts.capabilities import Capability, HasHessianProduct, HasModel, HasNewtonTrial, HasPreconditioner, Product
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_choice, check_count
from ..numerics.linalg import conjugate_gradient
from .line_search import line_search

#: Hessian products that one conjugate-gradient Newton step takes, about: where the factor becomes the cheaper way.
PRODUCTS_PER_STEP = 12.0
#: Slope that a step must reach, relative to the first. Nearly exact searches halve the number of Newton steps on
#: likelihoods, whose full steps fall short, and cost no product with the data.
SLOPE = 0.1
#: Parameters up to which the factor always is.
ALWAYS_DENSE = 100


class NewtonPoint(HasHessianProduct, HasPreconditioner, HasModel, HasNewtonTrial, Protocol):
    """What a point may be asked for: each by one of the methods."""


@dataclass
class NewtonState:
    """How steps are computed, and what conjugate gradients remember."""

    method: str  # "trial", "cholesky" or "cg"
    strong_cost: float
    has_bound: bool
    strong: Product | None = None
    products: int = 0  # of the last step
    norm: float = np.inf  # of the last gradient, and the first
    first_norm: float = 0.0
    precise: bool = False


@dataclass(frozen=True)
class Newton(Solver[NewtonState, Objective, NewtonPoint]):
    """Newton steps with a line search.

    Parameters
    ----------
    method : {"auto", "cholesky", "cg"}
        Factor the Hessian, or solve by preconditioned conjugate gradients on products with it. ``"auto"`` compares the
        costs that the objective declares.
    max_cg : int
        Most products in one step.
    """

    key = "newton"
    method: str = "auto"
    max_cg: int = 200

    def __post_init__(self) -> None:
        check_choice("method", self.method, ("auto", "cholesky", "cg"))
        check_count("max_cg", self.max_cg, minimum=1)

    @property
    def name(self) -> str:
        return "newton" if self.method == "auto" else f"newton ({self.method})"

    @property
    def requires(self) -> frozenset[Capability]:
        if self.method == "cholesky":
            return frozenset({Capability.SMOOTH, Capability.HESSIAN})
        return frozenset({Capability.SMOOTH, Capability.HESSIAN_PRODUCT, Capability.PRECONDITIONER})

    def start(self, objective: Objective, point: Point) -> NewtonState:
        method = self.method
        if method == "auto":
            cheap = objective.size <= ALWAYS_DENSE or objective.dense_cost <= PRODUCTS_PER_STEP
            method = "cholesky" if cheap and Capability.HESSIAN in objective.capabilities else "cg"
        compiled = method == "cholesky" and Capability.NEWTON_TRIAL in objective.capabilities
        return NewtonState(
            method="trial" if compiled else method,
            strong_cost=objective.strong_cost if method == "cg" else np.inf,
            has_bound=Capability.QUADRATIC_BOUND in objective.capabilities,
        )

    def advance(self, state: NewtonState, point: NewtonPoint) -> Point | None:
        found = None
        if state.method == "trial":
            compiled = point.newton_trial()
            if compiled is not None:
                ray, trial, step, slope = compiled
                found = line_search(point, ray, step, SLOPE, first=(trial, slope))
            else:
                state.method = "cholesky"
        if state.method == "cholesky":
            found = line_search(point, point.along(-point.model("hessian").solve(point.gradient)), curvature=SLOPE)
        elif state.method == "cg":
            found = line_search(point, point.along(self._cg(state, point)), curvature=SLOPE)
            if found is None and not state.precise:
                state.precise = True
                found = line_search(point, point.along(self._cg(state, point)), curvature=SLOPE)
        if found is None:
            return self._safeguard(point) if state.has_bound else None
        return found[0]

    @staticmethod
    def _safeguard(point: NewtonPoint) -> Point | None:
        """A majorization step: where the Hessian has vanished it still descends."""
        trial, _ = point.along(-point.model("descending").solve(point.gradient)).at(1.0)
        return trial if trial.value < point.value else None

    def _cg(self, state: NewtonState, point: NewtonPoint) -> FloatArray:
        """Conjugate gradients to a residual that shrinks with the gradient: loose far away, superlinear close by."""
        gradient = point.gradient
        norm = float(np.linalg.norm(gradient))
        if norm > 0.9 * state.norm:
            state.precise = True
        state.norm = norm
        precondition = self._preconditioner(state, point)
        state.first_norm = state.first_norm or norm
        rtol = min(0.25, (norm / state.first_norm) ** 0.35)
        product = point.hessian_product(precise=state.precise)
        step, state.products = conjugate_gradient(product, gradient, precondition, rtol, self.max_cg)
        return -step

    @staticmethod
    def _preconditioner(state: NewtonState, point: NewtonPoint) -> Product:
        """The ordinary one, until a step takes half as many products as the strong one costs; that is kept while good."""
        if state.products >= 0.5 * state.strong_cost:
            state.strong = point.preconditioner(strong=True)
        return state.strong or point.preconditioner()
