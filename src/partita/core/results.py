"""What engines and solvers return."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


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
    #: Where a message passing engine stopped: give it to the next call as `messages` for a warm start.
    messages: Any = field(default=None, repr=False, compare=False)

    @property
    def gap(self) -> FloatArray:
        if self.certificate is not None:
            return self.certificate
        if self.lower is None or self.upper is None:
            return np.zeros_like(self.log_z) if self.exact else np.full_like(self.log_z, np.inf)
        return self.upper - self.lower


@dataclass(frozen=True)
class Trace:
    """One entry per iteration, the start included.

    Attributes
    ----------
    objective : array
        Value of the objective. Stochastic solvers estimate it from the mini-batches of the epoch (NaN at the start) or from
        held-out examples; the last entry is exact unless examples were held out.
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


@dataclass(frozen=True)
class Solution:
    """What a solver found."""

    parameters: FloatArray
    value: float
    status: Status
    n_iter: int
    trace: Trace
    solver: str
    point: Any = field(repr=False, compare=False)
