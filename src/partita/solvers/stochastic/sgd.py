"""Stochastic gradient descent and its relatives: the usual rivals, which need a learning rate."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import cycle, islice
from typing import Any

import numpy as np

from ...core.contracts.batches import AnyBatchSource
from ...core.rates import best_rate
from ...core.results import FloatArray
from ...core.validation import check_choice, check_real
from .epochs import EpochSolver, EpochState

METHODS = ("plain", "averaged", "adam", "saga", "svrg")


#: Averages weight late iterates more: the mean moves by (POWER + 1) / (t + POWER) of the way.
POWER = 7.0
#: Steps, and examples, that rates are tried on at least, and the first rate tried.
TRIAL_STEPS, TRIAL_EXAMPLES, FIRST_RATE = 20, 1000, 0.5


@dataclass
class _Memory:
    """Running means: of gradients and their squares (Adam), or of iterates (averaged)."""

    first: FloatArray
    second: FloatArray
    rate: float

    @classmethod
    def zeros(cls, size: int, rate: float) -> _Memory:
        return cls(np.zeros(size), np.zeros(size), rate)


@dataclass(kw_only=True)
class SGDState(EpochState):
    """Where it is between epochs, with its running means and its rate."""

    memory: _Memory


@dataclass(frozen=True)
class SGD(EpochSolver[SGDState]):
    """Mini-batch gradient descent.

    Parameters
    ----------
    method : {"plain", "averaged", "adam", "saga", "svrg"}
        ``"averaged"`` reports a mean of the iterates that weights late ones more; ``"saga"`` and ``"svrg"`` reduce the noise
        of the gradients by those of the last visit, or of a full pass at the start of each epoch.
    learning_rate : float or "auto"
        Step for the gradient of the *mean* loss. ``"auto"`` tries powers of two on a few batches.
    decay : float
        The step after e epochs is ``learning_rate / (1 + e) ** decay`` (not for ``"saga"`` and ``"svrg"``).
    batch_size, validation, patience, random_state
        See `EpochSolver`.
    """

    key = "sgd"
    method: str = "plain"
    learning_rate: Any = "auto"
    decay: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("method", self.method, METHODS)
        if self.learning_rate != "auto":
            check_real("learning_rate", self.learning_rate, minimum=0.0, strict=True)
        check_real("decay", self.decay, minimum=0.0)

    @property
    def name(self) -> str:
        return f"sgd ({self.method})"

    @property
    def reduces_variance(self) -> bool:
        return self.method in ("saga", "svrg")

    @property
    def chooses_steps(self) -> bool:
        return bool(self.learning_rate == "auto")

    def begun(self, source: AnyBatchSource, per_epoch: int, theta: FloatArray) -> SGDState:
        rate = self._calibrated(source, theta) if self.learning_rate == "auto" else self.learning_rate
        return SGDState(source, per_epoch=per_epoch, memory=_Memory.zeros(source.size, rate))

    def _calibrated(self, source: AnyBatchSource, start: FloatArray) -> float:
        """The rate with the smallest loss on the way through some batches, again and again if they are few; half of it for
        methods whose steps stay as long as they are."""
        batches = source.shuffled(self.batch_size)
        steps = max(TRIAL_STEPS, TRIAL_EXAMPLES // self.batch_size)

        def loss(rate: float) -> float:
            trial = SGDState(source, per_epoch=len(batches), memory=_Memory.zeros(source.size, rate))
            theta, total = start, 0.0
            with np.errstate(over="ignore", invalid="ignore"):
                for lo, hi in islice(cycle(batches), steps):
                    value, residual = source.evaluate(theta, lo, hi)
                    total += value
                    trial.steps += 1
                    estimate = source.n_examples / (hi - lo) * source.pull_back(residual, lo, hi)
                    theta = self.update(trial, theta, estimate + source.penalty * theta, lo, hi)
            return total

        return best_rate(loss, FIRST_RATE) * (0.5 if self.reduces_variance else 1.0)

    def begin(self, state: SGDState, theta: FloatArray) -> None:
        """SVRG: the residuals of every example at the start of the epoch."""
        if self.method != "svrg" or state.table is None:
            return
        source = state.source
        state.total = np.zeros(source.size)
        for lo, hi in sorted(source.shuffled(self.batch_size)):
            _, residual = source.evaluate(theta, lo, hi)
            state.table[source.slots(lo, hi)] = residual
            state.total += source.pull_back(residual, lo, hi)

    def _gradient(self, state: SGDState, residual: Any, lo: int, hi: int) -> tuple[FloatArray, FloatArray]:
        if self.method != "svrg" or state.table is None or state.total is None:
            return super()._gradient(state, residual, lo, hi)
        source = state.source
        change = source.pull_back(residual - state.table[source.slots(lo, hi)], lo, hi)
        return change, source.n_examples / (hi - lo) * change + state.total

    def update(self, state: SGDState, theta: FloatArray, gradient: FloatArray, lo: int, hi: int) -> FloatArray:
        mean = gradient / state.source.scale
        memory = state.memory
        rate = state.factor * memory.rate
        if not self.reduces_variance:
            rate /= (1.0 + state.steps / state.per_epoch) ** self.decay
        if self.method == "adam":
            memory.first += 0.1 * (mean - memory.first)
            memory.second += 0.001 * (mean * mean - memory.second)
            first = memory.first / (1.0 - 0.9**state.steps)
            second = memory.second / (1.0 - 0.999**state.steps)
            return np.asarray(theta - rate * first / (np.sqrt(second) + 1e-8))
        following = theta - rate * mean
        if self.method == "averaged":
            memory.first += (following - memory.first) * (POWER + 1.0) / (state.steps + POWER)
        return np.asarray(following)

    def restart(self, state: SGDState, theta: FloatArray) -> None:
        """What gradients led away is forgotten, and the mean begins where the iterates do."""
        state.memory.first = theta.copy() if self.method == "averaged" else np.zeros_like(theta)

    def finish(self, state: SGDState, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (state.memory.first.copy() if self.method == "averaged" else theta), theta
