"""A space of outputs, and what can be computed on it from potentials alone."""

from __future__ import annotations

from typing import Any, Protocol

from numpy.typing import ArrayLike

from ..results import FloatArray, IntArray, Result


class Structure(Protocol):
    """Outputs y with potentials (scores) in a form of the structure's own. Knows no parameters and no features.

    Batches are the normal case: one entry, or one row, per example.
    """

    def score(self, potentials: Any, y: ArrayLike) -> FloatArray:
        """The logarithm of the unnormalised weight of y."""
        ...

    def log_partition(self, potentials: Any, engine: str = "auto") -> FloatArray:
        """log Z."""
        ...

    def infer(self, potentials: Any, engine: str = "auto") -> Result:
        """log Z, and the marginals, which are its gradient. Structures with several engines take their options too."""
        ...

    def argmax(self, potentials: Any) -> tuple[IntArray, FloatArray]:
        """The best y and its score."""
        ...

    def sample(self, potentials: Any, size: int, random_state: Any = None) -> IntArray:
        """Independent draws of y."""
        ...

    def enumerate(self) -> IntArray:
        """Every y of a small structure, for tests."""
        ...
