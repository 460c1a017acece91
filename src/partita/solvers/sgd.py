"""Stochastic gradient descent and its relatives: the usual rivals, which need a learning rate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.protocols import Objective, Point
from ..core.results import FloatArray
from ..core.validation import check_choice, check_real
from .epochs import EpochSolver, EpochState

METHODS = ("plain", "averaged", "adam", "saga", "svrg")


#: Averages weight late iterates more: the mean moves by (POWER + 1) / (t + POWER) of the way.
POWER = 7.0


@dataclass
class _Memory:
    """Running means: of gradients and their squares (Adam), or of iterates (averaged)."""

    first: FloatArray
    second: FloatArray


@dataclass(frozen=True)
class SGD(EpochSolver):
    """Mini-batch gradient descent.

    Parameters
    ----------
    method : {"plain", "averaged", "adam", "saga", "svrg"}
        ``"averaged"`` reports a mean of the iterates that weights late ones more; ``"saga"`` and ``"svrg"`` reduce the noise
        of the gradients by those of the last visit, or of a full pass at the start of each epoch.
    learning_rate : float
        Step for the gradient of the *mean* loss.
    decay : float
        The step after e epochs is ``learning_rate / (1 + e) ** decay`` (not for ``"saga"`` and ``"svrg"``).
    batch_size, validation, patience, random_state
        See `EpochSolver`.
    """

    method: str = "plain"
    learning_rate: float = 0.1
    decay: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("method", self.method, METHODS)
        check_real("learning_rate", self.learning_rate, minimum=0.0, strict=True)
        check_real("decay", self.decay, minimum=0.0)

    @property
    def name(self) -> str:
        return f"sgd ({self.method})"

    @property
    def reduces_variance(self) -> bool:
        return self.method in ("saga", "svrg")

    def start(self, objective: Objective, point: Point) -> EpochState:
        state = super().start(objective, point)
        state.extra = _Memory(np.zeros(objective.size), np.zeros(objective.size))
        return state

    def begin(self, state: EpochState, theta: FloatArray) -> None:
        """SVRG: the residuals of every example at the start of the epoch."""
        if self.method != "svrg" or state.table is None:
            return
        source = state.source
        state.total = np.zeros(source.size)
        for lo, hi in sorted(source.shuffled(self.batch_size)):
            _, residual = source.evaluate(theta, lo, hi)
            state.table[source.slots(lo, hi)] = residual
            state.total += source.pull_back(residual, lo, hi)

    def _gradient(self, state: EpochState, residual: Any, lo: int, hi: int) -> tuple[FloatArray, FloatArray]:
        if self.method != "svrg" or state.table is None or state.total is None:
            return super()._gradient(state, residual, lo, hi)
        source = state.source
        change = source.pull_back(residual - state.table[source.slots(lo, hi)], lo, hi)
        return change, source.n_examples / (hi - lo) * change + state.total

    def update(self, state: EpochState, theta: FloatArray, gradient: FloatArray, lo: int, hi: int) -> FloatArray:
        mean = gradient / state.source.scale
        memory: Any = state.extra
        rate = self.learning_rate
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
        return following

    def finish(self, state: EpochState, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        return (state.extra.first.copy() if self.method == "averaged" else theta), theta
