"""What a solver for the best configuration must say, and how its answers are checked."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..core.arrays.potentials import are_potentials, not_potential, real_array, refusal
from ..core.results import FloatArray, IntArray
from ..core.validation import check_choice, check_real

#: Over what a solver maximises: configurations (their hull), consistent marginals of neighbours, or points with halves.
POLYTOPES = ("exact", "local", "half-integral")
#: How far sums of shares may be from what they should be: linear programs are the least exact.
SHARES = 1e-5
#: The largest factor that makes integers of weights.
LARGEST_SCALE = 1e290


@dataclass(frozen=True)
class Answer:
    """The best point of a polytope.

    Attributes
    ----------
    point : array
        In the layout of the potentials: zeros and ones for a configuration, halves or other shares else.
    value : float
        Its score, as counted here.
    polytope : {"exact", "local", "half-integral"}
    delta : float
        The score of the best point is at most so much larger.
    """

    point: FloatArray
    value: float
    polytope: str
    delta: float


@runtime_checkable
class Oracle(Protocol):
    """A solver for one structure."""

    polytope: str
    delta: float

    def __call__(self, potentials: FloatArray) -> Answer: ...


def solver_of(found: Any, points: Callable[[Any], FloatArray]) -> Oracle:
    """What a user brought as a solver for one structure: an `Oracle`, an object with ``argmax(potentials)``, or a function.

    The last two answer with configurations in the form that the structure takes as y; `points` makes points of these.
    """
    if isinstance(found, Oracle):
        return found
    function = getattr(found, "argmax", found)
    if not callable(function) or isinstance(found, np.ndarray):
        raise ValueError(
            "oracle must be an object with argmax(potentials), or a function of them, that gives the best configuration; "
            f"got {type(found).__name__}"
        )
    return UserOracle(function, points, name=oracle_name(found))


def oracle_name(oracle: Any) -> str:
    """What messages call a solver."""
    return str(getattr(oracle, "name", None) or getattr(oracle, "__name__", type(oracle).__name__))


class UserOracle:
    """Any function as a solver.

    Parameters
    ----------
    function : callable
        From potentials to a configuration, in the form that the structure takes as y.
    points : callable
        From a configuration to a point in the layout of the potentials; a ValueError says that it is none.
    polytope : {"exact", "local", "half-integral"}
    delta : float
        The best score is at most so much above that of the answer.
    name : str
        What messages call it.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.inference import UserOracle
    >>> oracle = UserOracle(lambda w: int(np.argmax(w)), lambda y: np.eye(3)[y])
    >>> oracle(np.array([0.0, 2.0, 1.0])).value
    2.0
    """

    def __init__(
        self,
        function: Callable[[FloatArray], Any],
        points: Callable[[Any], FloatArray],
        polytope: str = "exact",
        delta: float = 0.0,
        name: str = "UserOracle",
    ) -> None:
        self._function, self._points, self.name = function, points, name
        self.polytope: str = check_choice("polytope", polytope, POLYTOPES)
        self.delta: float = check_real("delta", delta, minimum=0.0)

    def __call__(self, potentials: FloatArray) -> Answer:
        try:
            found = self._function(potentials)
        except (KeyboardInterrupt, MemoryError, ImportError):
            raise
        except ValueError as error:  # of potentials, or of what there is no answer to
            raise ValueError(f"oracle {self.name} failed: {error}") from error
        except Exception as error:
            raise RuntimeError(f"oracle {self.name} failed: {type(error).__name__}: {error}") from error
        if isinstance(found, Answer):
            return found
        if found is None:
            raise ValueError(f"oracle {self.name} returned nothing; it must return the best configuration")
        try:
            point = self._points(found)
        except ValueError as error:
            raise ValueError(f"the answer of oracle {self.name} is not a configuration: {error}") from None
        return scored(point, potentials, self.polytope, self.delta)


def checked(potentials: Any, size: int, what: str = "potentials") -> FloatArray:
    """Potentials that a solver can take: so many numbers, -inf or not too large."""
    flat = real_array("potentials", potentials)
    if flat.shape != (size,):
        raise ValueError(f"potentials must be {size} {what}; got shape {flat.shape}")
    if not are_potentials(flat):
        raise refusal("potentials", float(flat[not_potential(flat)][0]))
    return flat


def answered(answer: Any, solver: str, offsets: IntArray) -> Answer:
    """The answer of a solver for a factor graph, whose tables are at `offsets`, if it is one."""
    if not isinstance(answer, Answer):
        raise ValueError(f"{solver} must return an Answer, got {type(answer).__name__}: see UserOracle")
    if np.shape(answer.point) != (int(offsets[-1]),):
        raise ValueError(f"{solver} must answer with {offsets[-1]} shares, got shape {np.shape(answer.point)}")
    sums = np.add.reduceat(answer.point, offsets[:-1]) if len(offsets) > 1 else np.ones(1)
    if not np.abs(sums - 1.0).max() <= SHARES:
        k = int(np.argmin(np.abs(sums - 1.0) <= SHARES))
        raise ValueError(f"{solver} must answer with shares that sum to one; those of factor {k} sum to {sums[k]:g}")
    return answer


def integer_scale(room: float, largest: float) -> float:
    """What numbers up to `largest` are multiplied with, to be integers up to `room`. Finite for the least of numbers."""
    return min(room / largest, LARGEST_SCALE) if largest > 0.0 else 1.0


def scored(point: FloatArray, potentials: FloatArray, polytope: str, delta: float = 0.0) -> Answer:
    """An answer whose score is counted here, where -inf forbids what is used."""
    used = real_array("the answer of the solver", point)
    if used.shape != np.shape(potentials):
        raise ValueError(f"the answer of the solver must have shape {np.shape(potentials)}, got {used.shape}")
    if used.size and not (used.min() >= -1e-9 and used.max() <= 1.0 + 1e-9):  # NaN too
        raise ValueError("the answer of the solver must have shares from 0 to 1")
    value = float(np.where(used > 0.0, potentials, 0.0) @ used)
    return Answer(used, value, polytope, delta)
