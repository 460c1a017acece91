"""A function to minimise: what the loop and the solvers may ask of any."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from typing import Protocol

from ..results import FloatArray
from .capabilities import Capability
from .point import Point


class Objective(Protocol):
    """A function to minimise. `ObjectiveBase` has a default for all but `size`, `scale`, `capabilities` and `at`."""

    @property
    def size(self) -> int:
        """Number of parameters."""
        ...

    @property
    def scale(self) -> float:
        """What gradients are divided by before they are compared with a tolerance.

        The total weight of the data, in which a few heavy examples count no more than many others
        (`core.arrays.weights.held_down`).
        """
        ...

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What it offers."""
        ...

    @property
    def demands(self) -> frozenset[Capability]:
        """What a solver must use (its `uses`): one that does not would leave the set of feasible parameters."""
        ...

    @property
    def dense_cost(self) -> float:
        """The cost of forming and factoring the Hessian, in units of one Hessian product."""
        ...

    @property
    def strong_cost(self) -> float:
        """The cost of a strong preconditioner in the same units; inf if there is none."""
        ...

    @property
    def blas_threads(self) -> int | None:
        """The most threads that dense linear algebra should take meanwhile; None for no limit."""
        ...

    @property
    def costly_rays(self) -> bool:
        """Whether a step along a ray costs nearly as much as a new point."""
        ...

    @property
    def n_examples(self) -> int:
        """The number of examples that it is a sum over; 0 if it is no such sum."""
        ...

    def at(self, parameters: FloatArray) -> Point:
        """The objective seen from `parameters`."""
        ...

    def project(self, parameters: FloatArray) -> FloatArray:
        """The nearest parameters where the objective is defined."""
        ...


class ObjectiveBase(ABC):
    """The defaults of `Objective`: defined everywhere, offering what it declares and no more, nothing known about costs.

    Attributes
    ----------
    size : int
    scale : float
    capabilities : frozenset of Capability
    """

    size: int
    scale: float
    capabilities: frozenset[Capability]
    demands: frozenset[Capability] = frozenset()
    costly_rays: bool = False
    n_examples: int = 0

    @property
    def dense_cost(self) -> float:
        """The Hessian is never formed."""
        return math.inf

    @property
    def strong_cost(self) -> float:
        """There is no strong preconditioner."""
        return math.inf

    @property
    def blas_threads(self) -> int | None:
        """No limit."""
        return None

    @abstractmethod
    def at(self, parameters: FloatArray) -> Point:
        """The objective seen from `parameters`."""

    def project(self, parameters: FloatArray) -> FloatArray:
        """The parameters themselves."""
        return parameters
