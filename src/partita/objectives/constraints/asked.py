"""What a likelihood and its points are asked for when they are held within a convex set."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from ...core.contracts.capabilities import CentredModel, HasModel, HasSubspace, Subspace
from ...core.contracts.objective import Objective
from ...core.contracts.point import Ray
from ...core.results import FloatArray, IntArray


class Plane(Subspace, Protocol):
    """A subspace with its basis."""

    @property
    def basis(self) -> FloatArray: ...
    def at(self, coordinates: FloatArray) -> InnerPoint: ...


class InnerRay(Ray, Protocol):
    """A half-line."""

    def at(self, step: float) -> tuple[InnerPoint, float]: ...


class InnerPoint(HasModel, HasSubspace, Protocol):
    """A point of the likelihood; its parameters may be moved by rounding."""

    parameters: FloatArray

    @property
    def slack(self) -> float: ...
    def model(self, kind: str) -> CentredModel: ...
    def subspace(self, directions: Sequence[FloatArray], momentum: bool = False) -> Plane: ...
    def along(self, direction: FloatArray) -> InnerRay: ...


class ModelledObjective(Objective, Protocol):
    """A penalised objective: see `PenalizedObjective`. Its points are asked for models only if it offers them."""

    @property
    def penalty(self) -> FloatArray: ...
    @property
    def has_gap(self) -> bool: ...
    @property
    def convex(self) -> bool: ...
    def free_constants(self) -> IntArray: ...
    def at(self, parameters: FloatArray) -> InnerPoint: ...
