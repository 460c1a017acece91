"""Composite likelihoods whose objects are drawn anew in every pass: mini-batches that compute what they drew, no more."""

from __future__ import annotations

from typing import Any, NoReturn, Protocol

import numpy as np

from ...core.contracts import Objective, Product
from ...core.results import FloatArray, IntArray
from ..batches import ShuffledExamples
from ..curvature import MatrixSum, largest_ratio


class DrawnPart(Protocol):
    """Some examples of a composite likelihood."""

    def evaluate(self, theta: FloatArray, rng: np.random.Generator | None) -> tuple[float, FloatArray]:
        """The sum over objects that `rng` draws, weighted by what they count, and its gradient; without, over all, weighted
        by their probabilities."""
        ...

    def curvature(self, theta: FloatArray) -> tuple[FloatArray, Product]:
        """The diagonal of the Hessian of the sum weighted by probabilities, and products with that."""
        ...


class Drawable(Objective, Protocol):
    """A composite likelihood that gives some of its examples."""

    @property
    def penalty(self) -> FloatArray: ...
    @property
    def slope(self) -> FloatArray | None: ...
    @property
    def masses(self) -> FloatArray:
        """What each example counts in the total weight."""
        ...

    def drawn_part(self, rows: IntArray) -> DrawnPart: ...


class DrawnBatches(ShuffledExamples[FloatArray, tuple[int, int]]):
    """The examples of a composite likelihood in random order, some of them held out; see `BatchSource`.

    Whenever a batch is evaluated, its objects are drawn by the policy: a pass costs what the policy says, and what it
    minimises on average is the sum weighted by probabilities. Residuals are gradients in the parameters.
    """

    def __init__(self, objective: Drawable, random_state: Any = None, validation: float = 0.0) -> None:
        super().__init__(objective, objective.masses, objective.penalty, random_state, validation, objective.slope)
        self.parent = objective
        self._parts: dict[tuple[int, int], DrawnPart] = {}
        self._held_part = objective.drawn_part(self.held) if len(self.held) else None

    def room(self) -> dict[tuple[int, int], FloatArray]:
        """Room for the gradient of every batch."""
        return _Zeros(self.size)

    def places(self, lo: int, hi: int) -> tuple[int, int]:
        """Where a batch is in the table."""
        return lo, hi

    def _part(self, lo: int, hi: int) -> DrawnPart:
        if (lo, hi) not in self._parts:
            self._parts[lo, hi] = self.parent.drawn_part(self.order[lo:hi])
        return self._parts[lo, hi]

    def loss(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, FloatArray]:
        """The loss of what is drawn for a batch, without the penalty, and its gradient."""
        return self._part(lo, hi).evaluate(theta, self.rng)

    def gradient(self, residual: FloatArray, lo: int, hi: int) -> FloatArray:
        """The same: residuals are gradients."""
        return residual

    def problem(self, lo: int, hi: int) -> NoReturn:
        """Not offered: sums of objects have no bound of their own."""
        raise ValueError("curvature must be 'fixed' or 'ema' here: mini-batches of objects have no quadratic bounds")

    def curvature(self, rank: int | None = None, method: str = "exact") -> MatrixSum:
        """An empty sum of curvature."""
        if rank is not None:
            raise ValueError(f"rank must be None here, where curvature is kept as its diagonal; got {rank!r}")
        return MatrixSum(self.size, self.n_examples, dense=False)

    def add_curvature(self, total: MatrixSum, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add the curvature of a batch at theta, all objects weighted by their probabilities."""
        if kind != "hessian":
            raise ValueError(f"bound must be 'hessian' here, where no quadratic bound is known; got {kind!r}")
        diagonal, product = self.parent.drawn_part(self.order[lo:hi]).curvature(theta)
        total.add(diagonal, factor, largest_ratio(product, diagonal))

    def held_loss(self, theta: FloatArray) -> float:
        """The loss of the held-out examples, all objects weighted by their probabilities."""
        assert self._held_part is not None
        return self._held_part.evaluate(theta, None)[0]


class _Zeros(dict[tuple[int, int], FloatArray]):
    """Gradients by batch, zero before the first visit."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._zero = np.zeros(size)

    def __missing__(self, batch: tuple[int, int]) -> FloatArray:
        return self._zero
