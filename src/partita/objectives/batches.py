"""The examples of a likelihood as mini-batches in random order: written once, for every objective that is a sum over them.

A family says what the likelihood of some of its examples is (`SumOverExamples.part`): that fact serves mini-batches here,
and whatever else wants a part of the sum. Families with a faster way to ranges of examples inherit `ShuffledExamples` alone.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any, Generic, Self, TypeVar

import numpy as np

from ..core.contracts.batches import AnyBatchSource, CurvatureSum
from ..core.contracts.capabilities import Capability, Product
from ..core.contracts.objective import Objective
from ..core.random import generator
from ..core.results import FloatArray, IntArray
from .bounds.quadratic import BoundModel
from .curvature import MatrixSum, diagonal_of, largest_ratio
from .penalized import PenalizedObjective, PenalizedPoint

#: Examples that curvature is estimated from, and those that show how far it is from its diagonal.
SAMPLE, PROBE = 1000, 200
#: Parameters up to which curvature is a matrix, and step of finite differences of gradients, in units of the parameters.
DENSE_LIMIT, DIFFERENCE = 100, 1e-4

#: What is offered for penalties around zero only.
AROUND_ZERO = frozenset({Capability.BLOCKS, Capability.SWEEPS})

R = TypeVar("R")
S = TypeVar("S")


@dataclass(frozen=True)
class Residual:
    """The gradient of a mini-batch in its scores, as arrays of any shapes; without any before the first visit."""

    parts: tuple[Any, ...] = ()

    def __sub__(self, other: Residual) -> Residual:
        if not other.parts:
            return self
        return Residual(tuple(a - b for a, b in zip(self.parts, other.parts, strict=True)))


class ResidualTable(dict[tuple[int, int], Residual]):
    """The residuals of mini-batches when they were last seen; the mini-batches are always the same."""

    def __missing__(self, batch: tuple[int, int]) -> Residual:
        return Residual()


class ShuffledExamples(ABC, Generic[R, S]):
    """Shuffled examples of an objective, some of them held out.

    Parameters
    ----------
    objective : Objective
    masses : array
        What each example counts in the total weight. Those that count nothing are left out.
    penalty : array of shape (size,)
    random_state : int, Generator or None
    validation : float
        The part of the examples that is held out.
    slope : array of shape (size,), optional
        A linear term. It is spread over the examples; the share that a batch has is a part of its residual, which therefore
        stays linear in what is subtracted and stored.

    Attributes
    ----------
    n_examples : int
        Examples to train on.
    penalty : array of shape (size,)
        The training part's share of the penalty.
    scale : float
        The total weight of the training part.
    order, held : arrays of int
        The examples to train on, and those that are held out.
    """

    def __init__(
        self,
        objective: Objective,
        masses: FloatArray,
        penalty: FloatArray,
        random_state: Any,
        validation: float,
        slope: FloatArray | None = None,
    ) -> None:
        self.rng: np.random.Generator = generator(random_state)
        order = self.rng.permutation(np.flatnonzero(masses))
        count = round(validation * len(order))
        if count >= len(order):
            raise ValueError(f"validation={validation!r} leaves no example to train on: there are {len(order)}")
        self.held: IntArray = order[:count]
        self.order: IntArray = order[count:]
        self.size: int = objective.size
        self.n_examples: int = len(self.order)
        self._masses = masses[self.order]
        self._held_mass = float(masses[self.held].sum())
        self.scale: float = self.weight(0, self.n_examples)
        share = self.scale / float(masses.sum())
        self.penalty: FloatArray = penalty * share
        self._slope: FloatArray | None = None if slope is None else slope * share

    def shuffled(self, batch_size: int) -> list[tuple[int, int]]:
        """The mini-batches of one epoch in random order."""
        edges = np.linspace(0, self.n_examples, max(1, round(self.n_examples / batch_size)) + 1).astype(int).tolist()
        return [(edges[b], edges[b + 1]) for b in self.rng.permutation(len(edges) - 1)]

    def weight(self, lo: int, hi: int) -> float:
        """The total weight of a batch."""
        return float(self._masses[lo:hi].sum())

    @property
    def sample_size(self) -> int:
        """Examples that curvature is estimated from, if there are so many."""
        return SAMPLE

    def sample_rows(self) -> tuple[int, int]:
        """A random run of examples, enough to estimate curvature from."""
        count = min(self.n_examples, self.sample_size)
        start = int(self.rng.integers(0, self.n_examples - count + 1))
        return start, start + count

    def held_out(self, theta: FloatArray) -> float | None:
        """The loss of the held-out examples, scaled to the training part; None if there are none."""
        if not len(self.held):
            return None
        return self.held_loss(theta) * self.scale / self._held_mass

    @abstractmethod
    def held_loss(self, theta: FloatArray) -> float:
        """The loss of the held-out examples."""

    def table(self) -> Any:
        """Room for the residual of every batch."""
        return self.room() if self._slope is None else ResidualTable()

    def slots(self, lo: int, hi: int) -> Any:
        """Where a batch is in the table."""
        return self.places(lo, hi) if self._slope is None else (lo, hi)

    def evaluate(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, Any]:
        """The loss of a batch, without the penalty, and its gradient in the scores."""
        loss, residual = self.loss(theta, lo, hi)
        if self._slope is None:
            return loss, residual
        share = self.weight(lo, hi) / self.scale
        return loss + share * float(self._slope @ theta), Residual((residual, np.array(share)))

    def pull_back(self, residual: Any, lo: int, hi: int) -> FloatArray:
        """The gradient in the parameters of a batch's gradient in the scores."""
        if self._slope is None:
            return self.gradient(residual, lo, hi)
        inner, share = residual.parts
        return np.asarray(self.gradient(inner, lo, hi) + float(share) * self._slope)

    @abstractmethod
    def room(self) -> Any:
        """`table`, without a linear term; so are the next three."""

    @abstractmethod
    def places(self, lo: int, hi: int) -> S:
        """`slots`."""

    @abstractmethod
    def loss(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, R]:
        """`evaluate`."""

    @abstractmethod
    def gradient(self, residual: R, lo: int, hi: int) -> FloatArray:
        """`pull_back`."""


class SumOverExamples(PenalizedObjective):
    """A penalised objective that is a sum over examples, and can give the sum over some of them.

    Attributes
    ----------
    weights : array of shape (n_examples,)
    """

    weights: FloatArray

    @property
    def masses(self) -> FloatArray:
        """What each example counts in the total weight."""
        return self.weights

    @abstractmethod
    def part(self, rows: IntArray) -> Self:
        """The sum over some examples, in this order, without the penalty."""

    def around(self, mean: FloatArray, precision: FloatArray) -> Self:
        """The same sum, with this precision as a penalty on the distance to this mean."""
        twin = self.with_penalty(precision)
        twin.center, twin.capabilities = mean, self.capabilities - AROUND_ZERO
        return twin

    @abstractmethod
    def at(self, parameters: FloatArray) -> PenalizedPoint: ...

    def with_penalty(self, penalty: FloatArray) -> Self:
        """The same sum with another penalty, around zero."""
        twin = copy(self)
        twin.penalty, twin.center = penalty, None
        twin.__dict__.pop("has_gap", None)
        return twin

    def evaluate(self, theta: FloatArray) -> tuple[float, Sequence[FloatArray]]:
        """Of a part: its value and its gradient in the scores. Here the gradient itself."""
        point = self.at(theta)
        return point.value, (point.gradient,)

    def pull_back(self, residual: Sequence[FloatArray]) -> FloatArray:
        """The gradient in the parameters of one in the scores."""
        return residual[0]

    def curvature(self, rank: int | None, method: str) -> CurvatureSum:
        """An empty sum of curvature: a matrix of few parameters, else a diagonal."""
        if rank is not None:
            raise ValueError(
                f"rank must be None here, where curvature is a matrix (up to {DENSE_LIMIT} weights) or a diagonal: roots of "
                f"it, which a sum of low rank is made of, are known for softmax models only; got {rank!r}"
            )
        return MatrixSum(self.size, self.n_examples, self.curvature_is_dense)

    @property
    def curvature_is_dense(self) -> bool:
        """Whether sums of curvature are matrices, not diagonals."""
        return self.size <= DENSE_LIMIT

    def add_curvature(self, total: Any, kind: str, theta: FloatArray, factor: float) -> None:
        """Add the curvature of `kind`: that of the log-partition functions, which is never negative."""
        if kind == "hessian":
            if self.curvature_is_dense:
                product = self.convex_product(theta)
                total.add(np.column_stack([product(unit) for unit in np.eye(self.size)]), factor)
            else:
                probe = self if self.n_examples <= PROBE else self.part(np.arange(PROBE))
                ratio = largest_ratio(probe.convex_product(theta), probe.convex_diagonal(theta))
                total.add(self.convex_diagonal(theta), factor, ratio)
            return
        if Capability.QUADRATIC_BOUND not in self.capabilities:
            raise ValueError(f"bound must be 'hessian' here, where no quadratic bound is known as a matrix; got {kind!r}")
        point: Any = self.at(theta)
        model = point.model(kind)
        if self.curvature_is_dense:
            total.add(model.matrix(), factor)
        elif isinstance(model, BoundModel):
            total.add(model.diagonal, factor, largest_ratio(model.curvature, model.diagonal))
        else:
            diagonal, ratio = diagonal_of(model.matrix())
            total.add(diagonal, factor, ratio)

    def convex_diagonal(self, theta: FloatArray) -> FloatArray:
        """About the diagonal of the curvature of the log-partition functions."""
        point: Any = self.at(theta)
        return np.asarray(point.diagonal)

    def convex_product(self, theta: FloatArray) -> Product:
        """Products with that curvature; where there are none, by differences of gradients."""
        if Capability.HESSIAN_PRODUCT in self.capabilities:
            point: Any = self.at(theta)
            product: Product = point.hessian_product()
            return product
        size = 1.0 + float(np.abs(theta).max(initial=0.0))

        def difference(v: FloatArray) -> FloatArray:
            step = DIFFERENCE * size / max(float(np.abs(v).max(initial=0.0)), 1e-300)
            ends = [self.at(theta + sign * step * v).gradient for sign in (1.0, -1.0)]
            return np.asarray((ends[0] - ends[1]) / (2.0 * step))

        return difference

    def batches(self, random_state: Any = None, validation: float = 0.0) -> AnyBatchSource:
        """The examples in random order, a part of them held out."""
        return Parts(self, random_state, validation)


class Parts(ShuffledExamples[Residual, tuple[int, int]]):
    """Mini-batches each of which is a sum over examples of its own, made when it is first seen."""

    def __init__(self, objective: SumOverExamples, random_state: Any = None, validation: float = 0.0) -> None:
        super().__init__(objective, objective.masses, objective.penalty, random_state, validation, objective.slope)
        self.parent = objective
        self._kept: dict[tuple[int, int], SumOverExamples] = {}
        self._held = objective.part(self.held) if len(self.held) else None

    def part(self, lo: int, hi: int, keep: bool = True) -> SumOverExamples:
        """The sum over a batch."""
        found = self._kept.get((lo, hi))
        if found is None:
            found = self.parent.part(self.order[lo:hi])
            if keep:
                self._kept[lo, hi] = found
        return found

    def held_loss(self, theta: FloatArray) -> float:
        assert self._held is not None
        return self._held.evaluate(theta)[0]

    def room(self) -> ResidualTable:
        return ResidualTable()

    def places(self, lo: int, hi: int) -> tuple[int, int]:
        return lo, hi

    def loss(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, Residual]:
        loss, parts = self.part(lo, hi).evaluate(theta)
        return loss, Residual(tuple(parts))

    def gradient(self, residual: Residual, lo: int, hi: int) -> FloatArray:
        return self.part(lo, hi).pull_back(residual.parts)

    def problem(self, lo: int, hi: int) -> Any:
        """The objective of a batch with its share of the penalty."""
        return self.part(lo, hi).with_penalty(self.penalty * (self.weight(lo, hi) / self.scale))

    def curvature(self, rank: int | None = None, method: str = "exact") -> Any:
        """An empty sum of curvature."""
        return self.parent.curvature(rank, method)

    def add_curvature(self, total: Any, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add the curvature of `kind` of a batch at theta."""
        self.part(lo, hi, keep=False).add_curvature(total, kind, theta, factor)
