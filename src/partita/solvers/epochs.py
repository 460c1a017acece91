"""What stochastic solvers share: one iteration is one pass over the data in mini-batches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.protocols import BatchSource, Capability, EstimatedPoint, Objective, Point
from ..core.results import FloatArray, Status
from ..core.validation import check_count, check_real

#: Relative decrease of the loss that counts as improvement.
IMPROVEMENT = 1e-4
#: Relative rise above the best loss that is no longer noise.
RISE = 0.05
#: Epochs before gradients are corrected by those of the last visit: what the first epoch saw is out of date at once.
PLAIN_EPOCHS = 2


@dataclass
class EpochState:
    """Where a stochastic solver is between epochs."""

    source: BatchSource
    steps: int = 0  # mini-batches so far
    epochs: int = 0
    per_epoch: int = 1
    table: Any = None  # residual of every example when last seen
    total: FloatArray | None = None  # data gradient of those residuals, summed
    iterate: FloatArray | None = None  # where the next epoch starts, if not at the parameters reported
    best: float = np.inf
    since_best: int = 0
    interrupted_at: FloatArray | None = None
    extra: Any = None  # the method's own


@dataclass(frozen=True)
class EpochSolver:
    """Mini-batch training; subclasses say how a gradient becomes a step.

    Parameters
    ----------
    batch_size : int
        Examples per step.
    validation : float
        Part of the examples held out in [0, 1): the loss reported is theirs, and the best epoch is kept.
    patience : int
        Stop when the loss has not improved (by a ten-thousandth) for so many epochs.
    random_state : int or None
        Seed of the order of the examples.
    """

    batch_size: int = 256
    validation: float = 0.0
    patience: int = 5
    random_state: int | None = 0

    def __post_init__(self) -> None:
        check_count("batch_size", self.batch_size, minimum=1)
        if not 0.0 <= check_real("validation", self.validation) < 1.0:
            raise ValueError(f"validation must be in [0, 1), got {self.validation!r}")
        check_count("patience", self.patience, minimum=1)

    @property
    def name(self) -> str:
        raise NotImplementedError

    @property
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.SMOOTH, Capability.BATCHES})

    @property
    def reduces_variance(self) -> bool:
        """Whether gradients are corrected by the residuals of the last visit."""
        return False

    def first(self, objective: Objective, theta: FloatArray) -> EstimatedPoint:
        """Nothing is known at the start; a pass over the data would cost as much as an epoch."""
        return EstimatedPoint(theta, np.nan, np.full(objective.size, np.inf))

    def start(self, objective: Objective, point: Point) -> EpochState:
        source = objective.batches(self.random_state, self.validation)
        state = EpochState(source, per_epoch=len(source.shuffled(self.batch_size)))
        if self.reduces_variance:
            state.table, state.total = source.table(), np.zeros(source.size)
        return state

    def verdict(self, state: EpochState, point: EstimatedPoint) -> Status | None:
        """Why to stop: the loss has not improved for as many epochs as the patience, or even rises."""
        value = point.value
        improved = value < state.best - IMPROVEMENT * abs(state.best) if np.isfinite(state.best) else True
        state.since_best = 0 if improved else state.since_best + 1
        state.best = min(state.best, value)
        if state.since_best < self.patience:
            return None
        rising = not point.held_out and value > state.best + RISE * abs(state.best)
        return Status.UNSTABLE if rising else Status.STALLED

    def advance(self, state: EpochState, point: Point) -> EstimatedPoint:
        """One epoch."""
        source, theta = state.source, point.parameters if state.iterate is None else state.iterate
        loss, gradient = 0.0, np.zeros(source.size)
        if state.total is not None and state.epochs < PLAIN_EPOCHS:
            state.total = np.zeros(source.size)
        self.begin(state, theta)
        try:
            for lo, hi in source.shuffled(self.batch_size):
                batch_loss, residual = source.evaluate(theta, lo, hi)
                loss += batch_loss
                data, estimate = self._gradient(state, residual, lo, hi)
                gradient += data
                state.steps += 1
                theta = self.update(state, theta, estimate + source.penalty * theta, lo, hi)
        except KeyboardInterrupt:
            state.interrupted_at = theta
            raise
        theta, state.iterate = self.finish(state, theta)
        state.epochs += 1
        if state.total is not None:
            gradient = state.total
        held = source.held_out(theta)
        value = (loss if held is None else held) + 0.5 * float((source.penalty * theta) @ theta)
        return EstimatedPoint(theta, value, gradient + source.penalty * theta, held is not None)

    def _gradient(self, state: EpochState, residual: Any, lo: int, hi: int) -> tuple[FloatArray, FloatArray]:
        """The batch's part of the data gradient, and an unbiased estimate of the whole.

        With a table (SAGA) both need one product: the change of the residuals since the last visit, pulled back.
        """
        source = state.source
        factor = source.n_examples / (hi - lo)
        if state.table is None or state.total is None:
            data = source.pull_back(residual, lo, hi)
            return data, factor * data
        slots = source.slots(lo, hi)
        if state.epochs < PLAIN_EPOCHS:
            state.table[slots] = residual
            data = source.pull_back(residual, lo, hi)
            state.total += data
            return data, factor * data
        change = source.pull_back(residual - state.table[slots], lo, hi)
        state.table[slots] = residual
        estimate = factor * change + state.total
        state.total += change
        return change, estimate

    def begin(self, state: EpochState, theta: FloatArray) -> None:
        """Called before every epoch."""

    def finish(self, state: EpochState, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Called after every epoch; returns the parameters to report and those to go on from."""
        return theta, theta

    def update(self, state: EpochState, theta: FloatArray, gradient: FloatArray, lo: int, hi: int) -> FloatArray:
        """One step from an estimate of the gradient of the whole objective."""
        raise NotImplementedError
