"""An optimiser: everything that the loop may ask of one, with what most answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Generic, Self, TypeAlias, TypeVar

from ..results import FloatArray, Status
from .capabilities import Capability
from .objective import Objective
from .point import Point

#: Where a run of the solver is: a dataclass of its own.
StateT = TypeVar("StateT")
#: What it asks of the objective and of its points: protocols of the capabilities that it requires.
ObjectiveT = TypeVar("ObjectiveT", bound=Objective, contravariant=True)
PointT = TypeVar("PointT", bound=Point, contravariant=True)

SMOOTH = frozenset({Capability.SMOOTH})


class Solver(ABC, Generic[StateT, ObjectiveT, PointT]):
    """An optimiser. Its options are the fields of a frozen dataclass; it is a value and keeps nothing between runs.

    `start` and `advance` must be written; all else has a default. What the objective and its points are asked for beyond
    `Objective` and `Point` must be in `requires` (or be looked up in ``objective.capabilities`` in `start`), and in the
    types that the class is given: ``class Newton(Solver[NewtonState, Objective, NewtonPoint])``.
    """

    #: The name that `make_solver` finds the class by; "" for one that is only made as an object.
    key: ClassVar[str] = ""
    #: Whether its points are estimates (`EstimatedPoint`), one per epoch.
    stochastic: ClassVar[bool] = False
    #: Whether the last point is returned, not the lowest.
    keeps_last: ClassVar[bool] = False

    @property
    def name(self) -> str:
        """What traces and messages call it."""
        return self.key or type(self).__name__

    @property
    def requires(self) -> frozenset[Capability]:
        """What it needs of the objective."""
        return SMOOTH

    @property
    def alternatives(self) -> tuple[frozenset[Capability], ...]:
        """Sets of capabilities, each of which may take the place of `requires`."""
        return ()

    @property
    def uses(self) -> frozenset[Capability]:
        """What it uses where it is offered: an objective may demand that."""
        return self.requires

    @property
    def holds_out(self) -> bool:
        """Whether values are those of examples held out of training: one that no longer falls is then a good end."""
        return False

    def blas_threads(self, objective: Objective) -> int | None:
        """The most threads for dense linear algebra during a run; None for no limit."""
        return objective.blas_threads

    def with_seed(self, seed: Any) -> Self:
        """The same solver with another random state, if it has any."""
        return self

    def first(self, objective: Objective, theta: FloatArray) -> Point:
        """The point that a run starts from."""
        return objective.at(theta)

    @abstractmethod
    def start(self, objective: ObjectiveT, point: PointT) -> StateT:
        """The state before the first iteration."""

    @abstractmethod
    def advance(self, state: StateT, point: PointT) -> Point | None:
        """The next point, or None when no step lowers the objective; changes the state."""

    def verdict(self, state: StateT, point: PointT) -> Status | None:
        """A reason of its own to stop at this point, the outcome of the last `advance`."""
        return None

    def settle(self, state: StateT | None, point: Any) -> Point:
        """The point as it is returned: measured, where what it says of itself was collected on the way. Without a state it
        is the first one."""
        return point  # type: ignore[no-any-return]

    def interrupted_at(self, state: StateT) -> FloatArray | None:
        """Parameters worth keeping when `advance` was interrupted; None if there are none but the last point's."""
        return None


#: A solver whose types are its own business: the loop has compared what it requires with what the objective offers.
AnySolver: TypeAlias = Solver[Any, Any, Any]
