"""What stochastic solvers share: one iteration is one pass over the data in mini-batches."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar

import numpy as np

from ...core.contracts.batches import AnyBatchSource, HasBatches, ResidualTable
from ...core.contracts.capabilities import Capability
from ...core.contracts.objective import Objective
from ...core.contracts.progress import EstimatedPoint
from ...core.contracts.solver import Solver
from ...core.results import FloatArray, Status
from ...core.validation import check_count, check_real

#: Relative decrease of the loss that counts as improvement.
IMPROVEMENT = 1e-4
#: Relative rise above the best loss that is no longer noise.
RISE = 0.05
#: What steps are multiplied by after an epoch whose loss rose, and how often.
SHORTER, MOST_TIMES = 0.5, 30
#: Largest entry of the mean gradient above which a loss that does not improve is due to steps that are too long, and how
#: often they are shortened for that in a row.
FLAT, TRIES = 1e-3, 3
#: Epochs before gradients are corrected by those of the last visit: what the first epoch saw is out of date at once.
PLAIN_EPOCHS = 2


@dataclass
class EpochState:
    """Where a stochastic solver is between epochs."""

    source: AnyBatchSource
    steps: int = 0  # mini-batches so far
    epochs: int = 0
    per_epoch: int = 1
    table: ResidualTable[Any, Any] | None = None  # residual of every example when last seen
    total: FloatArray | None = None  # data gradient of those residuals, summed
    iterate: FloatArray | None = None  # where the next epoch starts, if not at the parameters reported
    best: float = np.inf
    since_best: int = 0
    interrupted_at: FloatArray | None = None
    factor: float = 1.0  # of all steps: less than one after a loss that rose
    shortened: int = 0  # how often
    tried: int = 0  # how often since the loss last improved
    lowest: float = np.inf  # training loss of an epoch, and the parameters before and after it
    around: tuple[FloatArray, ...] = ()
    plain: int = PLAIN_EPOCHS  # epochs that begin with nothing remembered


EpochStateT = TypeVar("EpochStateT", bound=EpochState)


@dataclass(frozen=True)
class EpochSolver(Solver[EpochStateT, HasBatches, EstimatedPoint]):
    """Mini-batch training; subclasses say how a gradient becomes a step, and add what they remember to the state.

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

    stochastic = True
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
    def requires(self) -> frozenset[Capability]:
        return frozenset({Capability.SMOOTH, Capability.BATCHES})

    @property
    def reduces_variance(self) -> bool:
        """Whether gradients are corrected by the residuals of the last visit."""
        return False

    @property
    def chooses_steps(self) -> bool:
        """Whether the length of steps is the solver's own choice, which it may correct."""
        return True

    @property
    def holds_out(self) -> bool:
        return self.validation > 0.0

    def blas_threads(self, objective: Objective) -> int | None:
        """Mini-batches are too small for threads in BLAS to pay."""
        return 1

    def with_seed(self, seed: Any) -> Self:
        return replace(self, random_state=seed)

    def first(self, objective: Objective, theta: FloatArray) -> EstimatedPoint:
        """Nothing is known at the start; a pass over the data would cost as much as an epoch."""
        return EstimatedPoint(theta, np.nan, np.full(objective.size, np.inf))

    def start(self, objective: HasBatches, point: EstimatedPoint) -> EpochStateT:
        source = objective.batches(self.random_state, self.validation)
        state = self.begun(source, len(source.shuffled(self.batch_size)), point.parameters)
        if self.reduces_variance:
            state.table, state.total = source.table(), np.zeros(source.size)
        return state

    def interrupted_at(self, state: EpochStateT) -> FloatArray | None:
        """Where an epoch was when it was interrupted."""
        return state.interrupted_at

    def verdict(self, state: EpochStateT, point: EstimatedPoint) -> Status | None:
        """Why to stop: the loss has not improved for as many epochs as the patience, or even rises."""
        value = point.value
        improved = value < state.best - IMPROVEMENT * abs(state.best) if np.isfinite(state.best) else True
        state.since_best = 0 if improved else state.since_best + 1
        state.tried = 0 if improved else state.tried
        state.best = value if improved else state.best  # many small steps count as an improvement in the end
        if state.since_best < self.patience or self._goes_on(state, point):
            return None
        rising = not point.held_out and value > state.best + RISE * abs(state.best)
        return Status.UNSTABLE if rising else Status.STALLED

    def _goes_on(self, state: EpochStateT, point: EstimatedPoint) -> bool:
        """Where the loss does not improve though the gradient is large, steps are too long: shorten them, and go on."""
        source = state.source
        if not self.chooses_steps or point.held_out or state.tried == TRIES or state.shortened >= MOST_TIMES:
            return False
        if float(np.abs(point.gradient).max(initial=0.0)) <= FLAT * source.scale:
            return False
        state.factor, state.shortened, state.tried = SHORTER * state.factor, state.shortened + 1, state.tried + 1
        state.since_best = 0
        return True

    def advance(self, state: EpochStateT, point: EstimatedPoint) -> EstimatedPoint:
        """One epoch; where its loss has risen, back to the best one with shorter steps."""
        source, before = state.source, point.parameters if state.iterate is None else state.iterate
        state.around = state.around or (before,)
        if state.total is not None and state.epochs < state.plain:
            state.total = np.zeros(source.size)
        self.begin(state, before)
        theta, losses, gradient = self._pass(state, before)
        theta, state.iterate = self.finish(state, theta)
        state.epochs += 1
        with np.errstate(over="ignore", invalid="ignore"):
            loss = float(losses.sum()) + _penalty(source, theta)
        if self.chooses_steps and state.shortened < MOST_TIMES and self._rose(state, loss, losses):
            return self._step_back(state)
        if loss < state.lowest:
            state.lowest, state.around = loss, (before, theta)
        if state.total is not None:
            gradient = state.total
        return self._reported(state, theta, loss, gradient)

    def _pass(self, state: EpochStateT, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Steps on all mini-batches: the parameters at the end, and losses and gradient as met on the way."""
        source = state.source
        gradient, losses, batches = np.zeros(source.size), [], source.shuffled(self.batch_size)
        try:
            with np.errstate(over="ignore", invalid="ignore"):
                for lo, hi in batches:
                    loss, residual = source.evaluate(theta, lo, hi)
                    losses.append(loss)
                    if not np.isfinite(loss):
                        break  # it has diverged: the rest of the epoch has nothing to tell
                    data, estimate = self._gradient(state, residual, lo, hi)
                    gradient += data
                    state.steps += 1
                    theta = self.update(state, theta, estimate + source.penalty * theta, lo, hi)
        except KeyboardInterrupt:
            state.interrupted_at = theta
            raise
        return theta, np.array(losses), gradient

    def _rose(self, state: EpochStateT, loss: float, losses: FloatArray) -> bool:
        """Whether an epoch left the way down. Of the first one, only what it met in its second half can tell."""
        if not np.isfinite(loss):
            return True
        if state.epochs == 1:
            half = len(losses) // 2
            if not losses[half:].sum() > (1.0 + RISE) * losses[: len(losses) - half].sum():
                return False
            state.lowest = self._measure(state, state.around[0])[0]
        return loss > state.lowest + RISE * abs(state.lowest)

    def _step_back(self, state: EpochStateT) -> EstimatedPoint:
        """The better end of the best epoch, with what is measured there; steps are shorter from now on."""
        state.factor, state.shortened = SHORTER * state.factor, state.shortened + 1
        losses = [self._measure(state, theta)[0] for theta in state.around]
        best = state.around[int(np.nanargmin(np.where(np.isfinite(losses), losses, np.inf)))]
        loss, gradient = self._measure(state, best)  # last: it fills the table
        state.lowest, state.around, state.iterate = loss, (best,), best
        state.epochs, state.since_best = max(state.epochs, state.plain), -1
        self.restart(state, best)
        return self._reported(state, best, loss, gradient)

    def _measure(self, state: EpochStateT, theta: FloatArray) -> tuple[float, FloatArray]:
        """The training loss, penalty included, and the gradient of its data part, which is remembered if any is."""
        source, loss, gradient = state.source, _penalty(state.source, theta), np.zeros(state.source.size)
        with np.errstate(over="ignore", invalid="ignore"):
            for lo, hi in sorted(source.shuffled(self.batch_size)):
                part, residual = source.evaluate(theta, lo, hi)
                loss += part
                gradient += source.pull_back(residual, lo, hi)
                if state.table is not None:
                    state.table[source.slots(lo, hi)] = residual
        if state.table is not None:
            state.total = gradient.copy()
        return loss, gradient

    def _reported(self, state: EpochStateT, theta: FloatArray, loss: float, gradient: FloatArray) -> EstimatedPoint:
        source = state.source
        with np.errstate(over="ignore", invalid="ignore"):  # the loop has a status for values that are not finite
            held = source.held_out(theta)
            value = loss if held is None else held + _penalty(source, theta)
            return EstimatedPoint(theta, value, gradient + source.penalty * theta, held is not None)

    def _gradient(self, state: EpochStateT, residual: Any, lo: int, hi: int) -> tuple[FloatArray, FloatArray]:
        """The batch's part of the data gradient, and an unbiased estimate of the whole.

        With a table (SAGA) both need one product: the change of the residuals since the last visit, pulled back.
        """
        source = state.source
        factor = source.n_examples / (hi - lo)
        if state.table is None or state.total is None:
            data = source.pull_back(residual, lo, hi)
            return data, factor * data
        slots = source.slots(lo, hi)
        if state.epochs < state.plain:
            state.table[slots] = residual
            data = source.pull_back(residual, lo, hi)
            state.total += data
            return data, factor * data
        change = source.pull_back(residual - state.table[slots], lo, hi)
        state.table[slots] = residual
        estimate = factor * change + state.total
        state.total += change
        return change, estimate

    @abstractmethod
    def begun(self, source: AnyBatchSource, per_epoch: int, theta: FloatArray) -> EpochStateT:
        """The state before the first epoch, which starts from theta and has `per_epoch` steps."""

    def begin(self, state: EpochStateT, theta: FloatArray) -> None:
        """Called before every epoch."""

    def restart(self, state: EpochStateT, theta: FloatArray) -> None:
        """Called when the next epoch starts somewhere else than the last one ended."""

    def finish(self, state: EpochStateT, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Called after every epoch; returns the parameters to report and those to go on from."""
        return theta, theta

    @abstractmethod
    def update(self, state: EpochStateT, theta: FloatArray, gradient: FloatArray, lo: int, hi: int) -> FloatArray:
        """One step from an estimate of the gradient of the whole objective."""


def _penalty(source: AnyBatchSource, theta: FloatArray) -> float:
    return 0.5 * float((source.penalty * theta) @ theta)
