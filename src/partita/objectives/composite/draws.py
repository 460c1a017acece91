"""Composite likelihoods whose objects are drawn anew in every pass: mini-batches that compute what they drew, no more."""

from __future__ import annotations

import copy
from typing import Any, NoReturn, Protocol

import numpy as np

from ...core.contracts import Product
from ...core.random import generator
from ...core.results import FloatArray, IntArray

#: Examples that curvature is estimated from, products that show how far it is from its diagonal, and the multiple of the
#: curvature that steps are scaled by at least.
SAMPLE, PRODUCTS = 1000, 8


class DrawnPart(Protocol):
    """Some examples of a composite likelihood."""

    def evaluate(self, theta: FloatArray, rng: np.random.Generator | None) -> tuple[float, FloatArray]:
        """The sum over objects that `rng` draws, weighted by what they count, and its gradient; without, over all, weighted
        by their probabilities."""
        ...

    def curvature(self, theta: FloatArray) -> tuple[FloatArray, Product]:
        """The diagonal of the Hessian of the sum weighted by probabilities, and products with that."""
        ...


class Drawable(Protocol):
    """A composite likelihood that gives some of its examples."""

    @property
    def size(self) -> int: ...
    @property
    def penalty(self) -> FloatArray: ...
    @property
    def masses(self) -> FloatArray:
        """What each example counts in the total weight."""
        ...

    def drawn_part(self, rows: IntArray) -> DrawnPart: ...


class DrawnBatches:
    """The examples of a composite likelihood in random order, some of them held out; see `BatchSource`.

    Whenever a batch is evaluated, its objects are drawn by the policy: a pass costs what the policy says, and what it
    minimises on average is the sum weighted by probabilities. Residuals are gradients in the parameters.
    """

    def __init__(self, objective: Drawable, random_state: Any = None, validation: float = 0.0) -> None:
        self.parent = objective
        self.rng: np.random.Generator = generator(random_state)
        masses = objective.masses
        order = self.rng.permutation(np.flatnonzero(masses))
        count = round(validation * len(order))
        if count >= len(order):
            raise ValueError(f"validation={validation!r} leaves no example to train on: there are {len(order)}")
        self._held, self._order = order[:count], order[count:]
        self._masses, self._held_mass = masses[self._order], float(masses[self._held].sum())
        self._parts: dict[tuple[int, int], DrawnPart] = {}
        self._held_part = objective.drawn_part(self._held) if count else None
        self.size: int = objective.size
        self.n_examples: int = len(self._order)
        self.scale: float = float(self._masses.sum())
        self.penalty: FloatArray = objective.penalty * (self.scale / float(masses.sum()))

    def shuffled(self, batch_size: int) -> list[tuple[int, int]]:
        """The mini-batches of one epoch in random order."""
        edges = np.linspace(0, self.n_examples, max(1, round(self.n_examples / batch_size)) + 1).astype(int).tolist()
        return [(edges[b], edges[b + 1]) for b in self.rng.permutation(len(edges) - 1)]

    def weight(self, lo: int, hi: int) -> float:
        """The total weight of a batch."""
        return float(self._masses[lo:hi].sum())

    def table(self) -> dict[tuple[int, int], FloatArray]:
        """Room for the gradient of every batch."""
        return _Zeros(self.size)

    def slots(self, lo: int, hi: int) -> tuple[int, int]:
        """Where a batch is in the table."""
        return lo, hi

    def _part(self, lo: int, hi: int) -> DrawnPart:
        if (lo, hi) not in self._parts:
            self._parts[lo, hi] = self.parent.drawn_part(self._order[lo:hi])
        return self._parts[lo, hi]

    def evaluate(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, FloatArray]:
        """The loss of what is drawn for a batch, without the penalty, and its gradient."""
        return self._part(lo, hi).evaluate(theta, self.rng)

    def pull_back(self, residual: FloatArray, lo: int, hi: int) -> FloatArray:
        """The same: residuals are gradients."""
        return residual

    def problem(self, lo: int, hi: int) -> NoReturn:
        """Not offered: sums of objects have no bound of their own."""
        raise ValueError("curvature must be 'fixed' or 'ema' here: mini-batches of objects have no quadratic bounds")

    def curvature(self, rank: int | None = None, method: str = "exact") -> DiagonalCurvature:
        """An empty sum of curvature."""
        if rank is not None:
            raise ValueError(f"rank must be None here, where curvature is kept as its diagonal; got {rank!r}")
        return DiagonalCurvature(self.size)

    def add_curvature(self, total: DiagonalCurvature, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add the curvature of a batch at theta, all objects weighted by their probabilities."""
        if kind != "hessian":
            raise ValueError(f"bound must be 'hessian' here, where no quadratic bound is known; got {kind!r}")
        total.add(*self.parent.drawn_part(self._order[lo:hi]).curvature(theta), factor)

    def sample_rows(self) -> tuple[int, int]:
        """A random run of examples, enough to estimate curvature from."""
        count = min(self.n_examples, SAMPLE)
        start = int(self.rng.integers(0, self.n_examples - count + 1))
        return start, start + count

    def held_out(self, theta: FloatArray) -> float | None:
        """The loss of the held-out examples, scaled to the training part; None if there are none."""
        if self._held_part is None:
            return None
        return self._held_part.evaluate(theta, None)[0] * self.scale / self._held_mass


class _Zeros(dict[tuple[int, int], FloatArray]):
    """Gradients by batch, zero before the first visit."""

    def __init__(self, size: int) -> None:
        super().__init__()
        self._zero = np.zeros(size)

    def __missing__(self, batch: tuple[int, int]) -> FloatArray:
        return self._zero


class DiagonalCurvature:
    """A running sum of diagonals, and how far curvature is above them; see `CurvatureSum`."""

    def __init__(self, size: int) -> None:
        self.sum: FloatArray = np.zeros(size)
        self._inverse = self.sum
        self.cushion: float = 1.0

    def decay(self, factor: float) -> None:
        """Multiply the sum by a factor."""
        self.sum = factor * self.sum

    def copy(self) -> DiagonalCurvature:
        """One that can be added to while this one stays as it is."""
        return copy.copy(self)

    def add(self, diagonal: FloatArray, product: Product, factor: float) -> None:
        """Add a diagonal. The largest eigenvalue of the curvature in its units says how long steps may be."""
        scaling = np.divide(1.0, np.sqrt(diagonal), out=np.zeros_like(diagonal), where=diagonal > 0.0)
        v, ratio = np.sign(scaling) * generator(0).standard_normal(len(scaling)), 1.0
        for _ in range(PRODUCTS):
            v = scaling * product(scaling * v / max(float(np.linalg.norm(v)), 1e-300))
            ratio = max(1.0, float(np.linalg.norm(v)))
        self.sum = self.sum + factor * diagonal
        self.cushion = 1.0 / ratio

    def prepare(self, penalty: FloatArray, batch_size: float | None = None, damping: float = 0.0) -> None:
        """Invert the sum and the penalty; directions that were not seen get the mean curvature."""
        share = 0.0 if batch_size is None else damping / batch_size
        total = self.sum + penalty
        self._inverse = 1.0 / np.maximum(total + share * float(total.mean()), 1e-300)

    def solve(self, vector: FloatArray) -> FloatArray:
        """The vector times the inverse that was prepared."""
        return np.asarray(self._inverse * vector)
