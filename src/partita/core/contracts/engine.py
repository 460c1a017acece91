"""An algorithm that answers questions about a structure."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ..results import FloatArray, Result

StructureT = TypeVar("StructureT", contravariant=True)


class Engine(Protocol[StructureT]):
    """A function of a structure, its potentials (checked by the structure) and options.

    The answer says its quality: exact or approximate, converged or not, bounds if it has them.
    """

    def __call__(self, structure: StructureT, potentials: FloatArray, /, **options: Any) -> Result: ...
