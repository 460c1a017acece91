"""The linear map from parameters to potentials."""

from __future__ import annotations

from typing import Protocol, TypeVar

from ..results import FloatArray

#: Potentials as a structure takes them: an array, or for chains a pair of scores of labels and of transitions.
Potentials = TypeVar("Potentials")


class FeatureMap(Protocol[Potentials]):
    """``s = A theta`` and its adjoint: ``<A theta, mu> = <theta, A' mu>``. Knows no inference.

    Attributes
    ----------
    size : int
        Number of parameters.
    """

    @property
    def size(self) -> int: ...

    def forward(self, theta: FloatArray) -> Potentials:
        """``A theta``, in the shape of the potentials."""
        ...

    def adjoint(self, mu: Potentials, /) -> FloatArray:
        """``A' mu`` for numbers in the shape of the potentials: of marginals, the expected features."""
        ...
