"""What engines and solvers return."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import NumericalError

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]


#: Numbers that differ by less, in parts of their size, are equal but for rounding.
ROUNDING = 1e-9


class Status(Enum):
    """Why a computation stopped. ``str(status)`` says the cause and, where there is one, the cure."""

    EXACT = "exact: the answer was computed in closed form"
    CONVERGED = "converged: the gradient, the gap, or the change of the messages is below the tolerance"
    PRECISION = (
        "stopped where no step of the solver lowers the objective: close to the optimum, that is the limit of double "
        "precision (raise tol); with a gradient far above tol, rescale the features or choose another solver"
    )
    STALLED = "stopped early: the loss has not improved for as many epochs as the solver's patience"
    UNSTABLE = (
        "stopped: the loss is rising; the best iterate is kept (lower the learning rate of SGD or the step of "
        "StochasticBound, standardise the features, or use a larger batch)"
    )
    STREAM = "one pass: the parameters reflect the examples seen so far"
    MAX_ITER = "stopped at the iteration limit: raise max_iter, loosen tol, or standardise the features"
    UNSETTLED = (
        "not converged: messages (or probabilities) still changed in the last sweep. Raise max_iter, set damping to 0.5 or "
        "more if they go round in circles, or loosen tol (all options of the engine); bounds on log Z hold all the same"
    )
    UNCERTIFIED = (
        "not converged: the answer can be farther from the largest value than tol, by as much as its gap says. Raise "
        "max_iter or loosen tol (options of the engine)"
    )
    SAMPLED = "sampled: averages over random draws, whose error halves when n_samples is four times as large"
    TIME_LIMIT = "stopped at the time limit: raise time_limit or loosen tol"
    INTERRUPTED = "interrupted from the keyboard: the best iterate so far is kept"
    CALLBACK = "stopped by a callback"
    DIVERGED = (
        "failed: the objective became infinite or NaN; the last finite iterate is kept (add l2 > 0, or rescale the features)"
    )
    UNBOUNDED = (
        "stopped on the way to infinity: the classes are separated, so that larger weights always fit better, and no "
        "penalty that counts at this tol holds them (raise l2)"
    )

    @property
    def ok(self) -> bool:
        """True when the answer is as good as was asked for."""
        return self in (Status.EXACT, Status.CONVERGED, Status.STALLED, Status.STREAM, Status.SAMPLED)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True)
class Result:
    """An engine's answer about a batch of potentials.

    ``log_z``, ``lower`` and ``upper`` have one entry per example; ``gap`` is ``upper - lower``, or where an engine maximises
    something of its own, how far ``log_z`` can be below the largest value of that (`certificate`).

    Every answer is checked here, whoever made it: no NaN, ``lower <= log_z <= upper`` (but for rounding, which is taken
    away), and an engine that says CONVERGED has measured a `residual` of at most `tol`. What contradicts itself is a
    NumericalError.

    Attributes
    ----------
    residual, tol : float or None
        What the engine compared in the end, and with what: the largest change of a message or a probability, or the largest
        certificate.
    free_energy : array
        The value whose gradient the marginals are. ``log_z`` is the same, moved between the bounds if it is outside.
    knows_log_z : bool
        False for engines that say nothing of log Z but bounds; ``log_z`` is NaN then.
    """

    log_z: FloatArray
    marginals: Any
    status: Status = Status.EXACT
    exact: bool = True
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    n_iter: int = 0
    engine: str = "exact"
    certificate: FloatArray | None = None
    residual: float | None = None
    tol: float | None = None
    free_energy: Any = None
    knows_log_z: bool = True
    #: Where a message passing engine stopped: give it to the next call as `messages` for a warm start.
    messages: Any = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.status is Status.CONVERGED:
            if self.residual is None or self.tol is None:
                raise ValueError(f"engine {self.engine} says CONVERGED without the residual and tol that it compared")
            if not self.residual <= self.tol:
                raise NumericalError(
                    f"engine {self.engine} says CONVERGED with a residual of {self.residual:.3g}, above tol={self.tol:.3g}"
                )
        for part in self.marginals if isinstance(self.marginals, tuple) else (self.marginals,):
            if part.size and not (part.min() >= -ROUNDING and part.max() < np.inf):
                raise NumericalError(f"engine {self.engine} gave marginals that are NaN, infinite or negative. {CURE}")
        if self.knows_log_z and not np.isfinite(self.log_z).all():
            raise NumericalError(f"engine {self.engine} gave log Z = {_first_bad(self.log_z)}. {CURE}")
        if self.free_energy is None:
            object.__setattr__(self, "free_energy", self.log_z)
        if not (self.lower is self.upper is self.log_z):
            self._order()

    def _order(self) -> None:
        """lower <= log_z <= upper, with what rounding did taken away."""
        low, high = self.lower, self.upper
        if low is not None and high is not None:
            _agree(self.engine, "a lower bound", low, "an upper bound", high)
            low = np.minimum(low, high)
            object.__setattr__(self, "lower", low)
        for bound in (low, high):
            if bound is not None and np.isnan(bound).any():
                raise NumericalError(f"engine {self.engine} gave a bound on log Z that is NaN. {CURE}")
        if self.knows_log_z:
            if low is not None:
                _agree(self.engine, "a lower bound", low, "log Z", self.log_z)
            if high is not None:
                _agree(self.engine, "log Z", self.log_z, "an upper bound", high)
            object.__setattr__(self, "log_z", _clipped(self.log_z, low, high))

    def within(self, lower: FloatArray, upper: FloatArray) -> Result:
        """The same answer with bounds no wider than these, which the structure knows without any engine; ``log_z`` is moved
        between them."""
        low = lower if self.lower is None else np.maximum(self.lower, lower)
        high = upper if self.upper is None else np.minimum(self.upper, upper)
        _agree(self.engine, "a lower bound", low, "an upper bound", high)
        low = np.minimum(low, high)
        log_z = _clipped(self.log_z, low, high) if self.knows_log_z else self.log_z
        return replace(self, log_z=log_z, lower=low, upper=high)

    @property
    def gap(self) -> FloatArray:
        if self.certificate is not None:
            return self.certificate
        if self.lower is None or self.upper is None:
            return np.zeros_like(self.log_z) if self.exact else np.full_like(self.log_z, np.inf)
        return self.upper - self.lower


#: What a caller can do about an answer that is none.
CURE = "Potentials may be too large for double precision: scale them down; or choose another engine"


def _agree(engine: str, first: str, low: FloatArray, second: str, high: FloatArray) -> None:
    """The first numbers are below the second ones, but for rounding."""
    with np.errstate(invalid="ignore"):
        wrong = low > high + ROUNDING * (1.0 + np.abs(high))
    if wrong.any():
        i = int(wrong.argmax())
        raise NumericalError(
            f"engine {engine} contradicts itself in example {i}: {first} of {low[i]:.9g}, {second} of {high[i]:.9g}. {CURE}"
        )


def _clipped(values: FloatArray, low: FloatArray | None, high: FloatArray | None) -> FloatArray:
    if low is not None:
        values = np.maximum(values, low)
    return values if high is None else np.minimum(values, high)


def _first_bad(values: FloatArray) -> float:
    return float(values.ravel()[int(np.argmin(np.isfinite(values.ravel())))])


#: Objective, gradient norm, gap and seconds: a row of a trace.
Row = tuple[float, float, float, float]


@dataclass(frozen=True)
class Trace:
    """One entry per iteration, the start included; the last one describes what is returned.

    That takes one entry more where the last iterate is not what is returned: an earlier one was better, or one between two
    iterations is kept after an interrupt.

    Attributes
    ----------
    objective : array
        Value of the objective. Stochastic solvers estimate it from the mini-batches of the epoch (NaN at the start) or from
        held-out examples; the last entry is exact.
    gradient_norm : array
        Largest absolute entry of the gradient, divided by the objective's scale: what ``tol`` is compared with.
    gap : array
        Certified upper bound on ``objective - optimum``; inf where the objective has none.
    seconds : array
        Since the start of the solver.
    """

    objective: FloatArray
    gradient_norm: FloatArray
    gap: FloatArray
    seconds: FloatArray

    def __len__(self) -> int:
        return len(self.objective)

    @classmethod
    def of(cls, rows: Sequence[Row]) -> Trace:
        """A trace of these rows."""
        return cls(*np.array(rows, dtype=np.float64).reshape(-1, 4).T.copy())

    def ending(self, row: Row) -> Trace:
        """This trace, with one more row unless the last one says the same."""
        last = (self.objective[-1:], self.gradient_norm[-1:], self.gap[-1:])
        if len(self) and all(float(entry[0]) == value for entry, value in zip(last, row, strict=False)):
            return self
        columns = (self.objective, self.gradient_norm, self.gap, self.seconds)
        return Trace(*(np.append(column, value) for column, value in zip(columns, row, strict=True)))


def measure(point: Any, scale: float, seconds: float) -> Row:
    """The row of a trace that describes a point."""
    return (
        float(point.value),
        float(np.maximum.reduce(np.abs(point.gradient), initial=0.0)) / scale,
        float(point.gap),
        seconds,
    )


@dataclass(frozen=True)
class Solution:
    """What a solver found: `parameters`, and in the last row of `trace` their value, gradient and gap. See `conclude`."""

    parameters: FloatArray
    value: float
    status: Status
    n_iter: int
    trace: Trace
    solver: str
    point: Any = field(repr=False, compare=False)

    def at(self, point: Any, scale: float) -> Solution:
        """The same run, of which another point is returned."""
        row = measure(point, scale, float(self.trace.seconds[-1]))
        return replace(self, parameters=point.parameters, value=row[0], trace=self.trace.ending(row), point=point)


def conclude(
    point: Any,
    row: Row,
    rows: Sequence[Row],
    *,
    status: Status,
    n_iter: int,
    solver: str,
    tol: float = np.inf,
    gap_tol: float | None = None,
) -> Solution:
    """The one place where a `Solution` is made. What is returned is what the last row of its trace describes.

    Parameters
    ----------
    point : Point
        What is returned.
    row : tuple
        Its description, measured (see `measure`), not estimated.
    rows : sequence of tuples
        The descriptions of the iterates, of which the last may be of the same point.
    status : Status
        Why the solver stopped; converged is no more than precision if the row says otherwise.
    tol, gap_tol : float
        What the gradient norm and the gap are compared with.

    Raises
    ------
    NumericalError
        If the objective or its gradient is not finite at the point. An infinite norm with a finite gap is one not known.
    """
    value, norm, gap, _ = row
    if not np.isfinite(value) or np.isnan(norm) or (norm == np.inf and gap == np.inf):
        raise NumericalError(
            f"{solver} ended where the objective is {value:g} with a gradient of {norm:g}: rescale the features, add a "
            "penalty (l2 > 0), or choose another solver"
        )
    if status is Status.CONVERGED and not (norm <= tol or (gap_tol is not None and gap <= gap_tol)):
        status = Status.PRECISION
    return Solution(point.parameters, value, status, n_iter, Trace.of(rows).ending(row), solver, point)
