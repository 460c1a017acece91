"""What an objective itself may offer: its examples as mini-batches or in sweeps, or a dual with a block for each."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeAlias, TypeVar, runtime_checkable

from ..results import FloatArray
from .capabilities import HasLowRankModel, HasModel
from .objective import Objective

#: The gradient of a mini-batch in its scores, the source's own: it can be subtracted and stored in the source's table.
R = TypeVar("R")
#: The source's own sum of curvature.
C = TypeVar("C", bound="CurvatureSum")
#: Where a mini-batch is in a table.
S = TypeVar("S")
S_contra = TypeVar("S_contra", contravariant=True)


class CurvatureSum(Protocol):
    """A running sum of the curvature of mini-batches."""

    @property
    def cushion(self) -> float:
        """How far it lies above the curvature that it sums, about."""
        ...

    def decay(self, factor: float) -> None:
        """Multiply the sum by a factor."""
        ...

    def copy(self) -> Self:
        """One that can be added to while this one stays as it is."""
        ...

    def prepare(self, penalty: FloatArray, batch_size: float | None = None, damping: float = 0.0) -> None:
        """Invert the sum plus ``diag(penalty)`` plus a multiple of the damping for batches of a size."""
        ...

    def solve(self, vector: FloatArray) -> FloatArray:
        """The vector times the inverse that was prepared."""
        ...


class ResidualTable(Protocol[S_contra, R]):
    """The residuals of mini-batches when they were last seen; zero before."""

    def __getitem__(self, slots: S_contra, /) -> R: ...
    def __setitem__(self, slots: S_contra, residual: R, /) -> None: ...


class ModelledPoint(HasModel, HasLowRankModel, Protocol):
    """A point with quadratic models, of full or of low rank."""


class BatchProblem(Objective, Protocol):
    """The objective of one mini-batch."""

    def at(self, parameters: FloatArray) -> ModelledPoint: ...


class BatchSource(Protocol[R, S, C]):
    """The examples of an objective in random order, as mini-batches lo..hi; a part of them may be held out.

    Attributes
    ----------
    n_examples : int
        Examples to train on.
    size : int
        Number of parameters.
    scale : float
        The total weight of the training part.
    penalty : array of shape (size,)
        The training part's share of the penalty.
    """

    @property
    def n_examples(self) -> int: ...
    @property
    def size(self) -> int: ...
    @property
    def scale(self) -> float: ...
    @property
    def penalty(self) -> FloatArray: ...

    def shuffled(self, batch_size: int) -> list[tuple[int, int]]:
        """The mini-batches of one epoch in random order."""
        ...

    def weight(self, lo: int, hi: int) -> float:
        """The total weight of a batch."""
        ...

    def table(self) -> ResidualTable[S, R]:
        """Room for the residual of every batch."""
        ...

    def slots(self, lo: int, hi: int) -> S:
        """Where a batch is in the table."""
        ...

    def evaluate(self, theta: FloatArray, lo: int, hi: int) -> tuple[float, R]:
        """The loss of a batch, without the penalty, and its gradient in the scores."""
        ...

    def pull_back(self, residual: R, lo: int, hi: int) -> FloatArray:
        """The gradient in the parameters of a batch's gradient in the scores."""
        ...

    def problem(self, lo: int, hi: int) -> BatchProblem:
        """The objective of a batch with its share of the penalty."""
        ...

    def curvature(self, rank: int | None = None, method: str = "exact") -> C:
        """An empty sum of curvature."""
        ...

    def add_curvature(self, total: C, kind: str, theta: FloatArray, lo: int, hi: int, factor: float) -> None:
        """Add the curvature of `kind` of a batch at theta."""
        ...

    def sample_rows(self) -> tuple[int, int]:
        """A random run of examples, enough to estimate curvature from."""
        ...

    def held_out(self, theta: FloatArray) -> float | None:
        """The loss of the held-out examples, scaled to the training part; None if there are none."""
        ...


@runtime_checkable
class LeveragedSource(BatchSource[R, S, C], Protocol):
    """A source that also knows how much each of its examples may contribute to the curvature, at most.

    The leverage of an example, by the inverse of a sum of curvature, is the part of that curvature that is its own were its
    own as large as it can be anywhere.
    """

    def whole_curvature(self) -> C | None:
        """An empty sum that leaves nothing out, or None where that is too large."""
        ...

    def add_lasting(self, total: C, theta: FloatArray) -> None:
        """Add the Hessian, and more where what was observed is unlikely: there the Hessian is about to grow."""
        ...

    def leverages(self, total: C) -> tuple[ResidualTable[S, R], float]:
        """Those of all examples and labels, by the inverse that was prepared, and the highest."""
        ...

    def restrained(self, change: R, residual: R, leverages: R, gain: float, lo: int, hi: int) -> R:
        """The change of a batch's residual, for every example as much of it as an implicit step would make.

        `gain` is what leverages are multiplied by: the more, the further the step that a change causes takes it back.
        """
        ...


#: A source whose residuals and sums of curvature are its own business.
AnyBatchSource: TypeAlias = BatchSource[Any, Any, Any]


class HasBatches(Objective, Protocol):
    """`Capability.BATCHES`."""

    def batches(self, random_state: Any = None, validation: float = 0.0) -> AnyBatchSource:
        """The examples in random order, a part of them held out."""
        ...


class Sweeps(Protocol):
    """Stochastic gradient descent on single examples, in its own representation of the parameters."""

    def advance(self) -> None:
        """One epoch."""
        ...

    def parameters(self) -> FloatArray:
        """Where it is."""
        ...


class HasSweeps(Objective, Protocol):
    """`Capability.SWEEPS`."""

    def sweeps(self, theta: FloatArray, random_state: Any = None) -> Sweeps:
        """Epochs from theta."""
        ...


@dataclass(frozen=True)
class Certified:
    """Parameters that a dual knows, what the objective is at most there, and what that is at most above the minimum."""

    parameters: FloatArray
    value: float
    gap: float


class Blocks(Protocol):
    """The dual of a penalised likelihood, with a block of marginals for each example, at one place.

    Its value is minimised, and is nowhere below minus the minimum of the likelihood's.
    """

    @property
    def n_blocks(self) -> int: ...

    @property
    def n_calls(self) -> int:
        """How often best configurations were asked for."""
        ...

    @property
    def parameters(self) -> FloatArray:
        """Those that belong to the marginals."""
        ...

    def begin(self, theta: FloatArray) -> None:
        """Move marginals close to those of parameters."""
        ...

    def value(self) -> float: ...
    def step(self, block: int, size: float | None, variant: str = "plain") -> float:
        """Move a block towards its best configuration, by a part or as far as is best; returns what the gap was."""
        ...

    def step_all(self, size: float | None) -> float:
        """Move all blocks at once by the same part; returns the gap."""
        ...

    def average(self) -> FloatArray:
        """Count where it is in the mean; returns the parameters of the mean."""
        ...

    def estimate(self) -> Certified:
        """Where it is, with the gap that the answers on the way suggest."""
        ...

    def certify(self, mean: bool = False) -> Certified:
        """Where it is, or the mean of where it was, with its gap: a call for each block."""
        ...


class HasBlocks(Objective, Protocol):
    """`Capability.BLOCKS`."""

    def blocks(self, oracle: Callable[..., Any] | None = None) -> Blocks:
        """The dual, at its start. `oracle` makes a solver from the structure of an example; default: the family's own."""
        ...
