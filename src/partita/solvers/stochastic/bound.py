"""Mini-batch steps scaled by a quadratic bound (SPFB, LSPFB), as published and mended."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...core.contracts.batches import AnyBatchSource, CurvatureSum, HasBatches
from ...core.contracts.capabilities import BOUNDS, Capability, QuadraticModel
from ...core.results import FloatArray
from ...core.validation import check_choice, check_count, check_flag, check_low_rank, check_real
from .epochs import PLAIN_EPOCHS, EpochSolver, EpochState
from .newton import RestrainedNewton

CURVATURES = ("fixed", "ema", "batch")
#: Part of an epoch after which curvature that is sampled once in a while is sampled again; the wait doubles every time.
FIRST_REFRESH = 0.25
#: The step with variance reduction, for curvature without a cushion. Chosen on adult and Fashion-MNIST.
AUTO_STEP = 0.3
#: Batches in an epoch from which, with as many examples in each as parameters, sampled curvature is as stable and cheaper.
PLENTY = 32
#: In a stream, batches after which the step begins to shrink, and how much its mean favours late iterates.
SLOW, POWER = 200.0, 3.0
#: Batches that the curvature of a stream is a mean of, at most.
MEMORY = 10.0
#: Growth of a stream after which its curvature is factored again; while it is short, curvature is taken from every batch.
GROWTH = 1.1


@dataclass
class _Scaling:
    """The curvature that scales steps, and the running mean of the first epoch's second half."""

    total: CurvatureSum
    next_refresh: float = 0.0
    mean: FloatArray | None = None
    averaged: int = 0


@dataclass(kw_only=True)
class BoundState(EpochState):
    """Where it is between epochs, with the curvature that scales steps; None if that is each batch's own."""

    scaling: _Scaling | None = None
    newton: RestrainedNewton | None = None  # instead, where curvature can be had whole


@dataclass
class Stream:
    """What a stream has taught so far."""

    total: CurvatureSum
    iterate: FloatArray
    mean: FloatArray
    seen: int = 0
    weight: float = 0.0
    steps: int = 0
    window: float = 0.0  # examples that the curvature is a mean of, about
    next_curvature: float = 0.0

    def copy(self) -> Stream:
        """One that can go on while this one stays as it is."""
        return replace(self, total=self.total.copy())

    @classmethod
    def after(cls, solver: StochasticBound, objective: HasBatches, theta: FloatArray, seen: int) -> Stream:
        """A stream that goes on from parameters learned from `seen` examples otherwise."""
        method = "exact" if solver.low_rank == "lanczos" else solver.low_rank
        total = objective.batches(solver.random_state).curvature(solver.rank, method)
        return cls(total, theta, theta, seen, float(seen), seen // solver.batch_size)


@dataclass(frozen=True)
class StochasticBound(EpochSolver[BoundState]):
    """Stochastic majorization: mini-batch gradients scaled by the inverse of a bound's curvature. No learning rate.

    Parameters
    ----------
    rank : int, optional
        Low-rank curvature with so many directions (LSPFB). None keeps a matrix as far as that is cheap: all parameters up
        to 300, one Gram matrix shared by the labels up to 2,000 columns, the diagonal beyond.
    batch_size : int
        Examples per step.
    lag : int
        With ``curvature="ema"``, batches between updates of the curvature.
    step : "auto", float or str
        Multiple of the scaled step: a number, ``"c/t"`` (t counts batches; the papers take 4/t) or ``"c/epoch"`` for
        c / (1 + epochs so far). ``"auto"`` is about one Newton step in an epoch where curvature is kept whole, and more
        where no example has much leverage; else constant with variance reduction; and without it 4/t but at most
        batch_size / (batch_size + number of parameters). Steps that are given are kept, also where they are too long: 4/t
        is more than the bound's own step for four batches, and small batches know little of the curvature. Such a fit
        returns the best parameters that it met; its status is UNSTABLE or DIVERGED, or MAX_ITER where it stands still.
    curvature : {"fixed", "ema", "batch"}
        ``"fixed"`` (default) keeps the curvature whole up to 1,000 parameters (2,000 columns for two classes), takes it
        anew in every epoch and restrains examples of high leverage: stable at any batch size. Beyond, where an epoch has
        32 batches of as many examples as parameters, and with `rank`, `bound` or `step` given, it samples the curvature
        now and then (at 0, 1/4, 1/2, 1, 2, 4 ... epochs), damped so that no batch outweighs it. ``"ema"`` is a moving
        average over the batches before this one. ``"batch"`` is the published method: curvature and gradient of the same
        batch, which is biased.
    bound : str
        Which curvature: a bound's name or ``"hessian"``. Default: ``"hessian"`` for ``"fixed"``, else ``"descending"``.
    variance_reduction : bool, optional
        Correct gradients by those of each example's last visit (SAGA), which removes their noise at no cost but one number
        per example and label. Default: with ``"fixed"`` only.
    low_rank : {"exact", "corrected", "lanczos", "original"}
        Form of the low-rank curvature; ``"lanczos"`` only with ``curvature="batch"``; ``"original"`` is no bound and needs
        `allow_invalid`.
    damping : float
        In streams, and with ``"fixed"`` where curvature is not kept whole, multiple of the damping that keeps a single batch
        from outweighing the curvature.
    validation, patience, random_state
        See `EpochSolver`.
    """

    key = "stochastic"
    rank: int | None = None
    lag: int = 1
    step: Any = "auto"
    curvature: str = "fixed"
    bound: str | None = None
    variance_reduction: bool | None = None
    low_rank: str = "exact"
    damping: float = 0.5
    allow_invalid: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rank is not None:
            check_count("rank", self.rank, minimum=1)
        check_count("lag", self.lag, minimum=1)
        check_choice("curvature", self.curvature, CURVATURES)
        if self.bound is not None:
            check_choice("bound", self.bound, ("hessian", *BOUNDS))
        if self.variance_reduction is not None:
            check_flag("variance_reduction", self.variance_reduction)
        check_low_rank(self.low_rank, self.allow_invalid)
        if self.low_rank == "lanczos" and self.curvature != "batch":
            raise ValueError("low_rank='lanczos' cannot be accumulated; use 'exact' or curvature='batch'")
        if self.curvature == "batch" and self.variance_reduction:
            raise ValueError("variance_reduction needs curvature='fixed' or 'ema'; 'batch' is the published method")
        check_real("damping", self.damping, minimum=0.0)
        parse_step(self.step)

    @property
    def name(self) -> str:
        low = f", rank {self.rank}" if self.rank else ""
        return f"stochastic bound ({self.curvature}{low})"

    @property
    def requires(self) -> frozenset[Capability]:
        if self.curvature != "batch":
            return super().requires
        return super().requires | {Capability.LOW_RANK_BOUND if self.rank else Capability.QUADRATIC_BOUND}

    @property
    def reduces_variance(self) -> bool:
        return self.curvature == "fixed" if self.variance_reduction is None else self.variance_reduction

    @property
    def chooses_steps(self) -> bool:
        return bool(self.step == "auto")

    @property
    def _restrains(self) -> bool:
        """Whether it may take the steps of `RestrainedNewton`: nothing that they do without was asked for."""
        plain = self.step == "auto" and self.rank is None and self.bound in (None, "hessian")
        return plain and self.curvature == "fixed" and self.reduces_variance

    @property
    def _kind(self) -> str:
        return self.bound or ("hessian" if self.curvature == "fixed" else "descending")

    def begun(self, source: AnyBatchSource, per_epoch: int, theta: FloatArray) -> BoundState:
        if self.curvature == "batch":
            return BoundState(source, per_epoch=per_epoch)
        plenty = per_epoch >= PLENTY and self.batch_size >= source.size
        if self._restrains and not plenty and (newton := RestrainedNewton.begun(source, theta, per_epoch)):
            return BoundState(source, per_epoch=per_epoch, newton=newton, plain=1)
        total = source.curvature(self.rank, self.low_rank)
        self._sample(source, total, theta)
        return BoundState(source, per_epoch=per_epoch, scaling=_Scaling(total, FIRST_REFRESH * per_epoch))

    def _sample(self, source: AnyBatchSource, total: CurvatureSum, theta: FloatArray) -> None:
        """Curvature from a random sample of the examples, scaled to all of them."""
        lo, hi = source.sample_rows()
        total.decay(0.0)
        source.add_curvature(total, self._kind, theta, lo, hi, source.n_examples / (hi - lo))
        self._prepare(source, total)

    def _prepare(self, source: AnyBatchSource, total: CurvatureSum) -> None:
        damping = self.damping if self.curvature == "fixed" else 0.0
        total.prepare(source.penalty, self.batch_size, damping)

    def size_of_step(self, state: BoundState) -> float:
        """The multiple of the scaled step that the next one is."""
        if state.newton is not None:
            return state.newton.size_of_step(max(1, state.source.n_examples // state.per_epoch))
        if self.step == "auto" and self.reduces_variance and state.scaling is not None:
            return AUTO_STEP * float(state.scaling.total.cushion)
        if self.step == "auto":  # a batch smaller than the number of parameters knows only so much of the way
            return min(self.batch_size / (self.batch_size + state.source.size), 4.0 / state.steps)
        factor, decay = parse_step(self.step)
        if decay == "t":
            return factor / state.steps
        return factor / (1.0 + (state.steps - 1) / state.per_epoch) if decay == "epoch" else factor

    def _gradient(self, state: BoundState, residual: Any, lo: int, hi: int) -> tuple[FloatArray, FloatArray]:
        if state.newton is None or state.table is None or state.total is None:
            return super()._gradient(state, residual, lo, hi)
        part, estimate = state.newton.gradient(state.table, state.total, residual, lo, hi, self.size_of_step(state))
        state.total += part
        return part, estimate

    def update(self, state: BoundState, theta: FloatArray, gradient: FloatArray, lo: int, hi: int) -> FloatArray:
        if state.newton is not None:
            following = np.asarray(theta - self.size_of_step(state) * state.newton.total.solve(gradient))
            state.newton.refresh_if_due(state.steps, following)
            return following
        eta, scaling = state.factor * self.size_of_step(state), state.scaling
        if scaling is None:
            share = (hi - lo) / state.source.n_examples
            return np.asarray(theta - eta * self._batch_model(state, theta, lo, hi).solve(share * gradient))
        if self.curvature == "fixed" and state.steps > scaling.next_refresh:
            self._sample(state.source, scaling.total, theta)
            scaling.next_refresh *= 2.0
        following = theta - eta * scaling.total.solve(gradient)
        if self.curvature == "ema" and state.steps % self.lag == 0:
            self._fold_in(state, scaling.total, theta, lo, hi)
        if self.reduces_variance and state.epochs < PLAIN_EPOCHS and 2 * (state.steps % state.per_epoch) > state.per_epoch:
            scaling.averaged += 1
            mean = following if scaling.mean is None else scaling.mean
            scaling.mean = mean + (following - mean) / scaling.averaged
        return np.asarray(following)

    def stream(self, state: Stream | None, objective: HasBatches, theta: FloatArray) -> tuple[FloatArray, Stream]:
        """One pass over examples that will not come back; what is returned is a mean of late iterates.

        Steps are as in `update`, with everything per example: the curvature is a mean that forgets (half of its weight is on
        the last tenth to half of the stream), the penalty is spread over the examples seen so far. A constant step with
        averaging needs no tuning; the slow decay takes care of curvature that changes along the way.
        """
        source = objective.batches(self.random_state)
        method = "exact" if self.low_rank == "lanczos" else self.low_rank
        state = state.copy() if state else Stream(source.curvature(self.rank, method), theta, theta)
        for lo, hi in source.shuffled(self.batch_size):
            _, residual = source.evaluate(state.iterate, lo, hi)
            count = hi - lo
            state.seen += count
            state.steps += 1
            weight = source.weight(lo, hi)
            state.weight += weight
            penalty = source.penalty / state.weight
            if state.seen >= state.next_curvature:
                state.window = min(state.window, MEMORY * self.batch_size) + count
                share = count / state.window
                state.total.decay(1.0 - share)
                source.add_curvature(state.total, self.bound or "hessian", state.iterate, lo, hi, share / weight)
                state.next_curvature = max(state.seen, GROWTH * state.seen - count)
                state.total.prepare(penalty, min(count, self.batch_size), self.damping)
            gradient = source.pull_back(residual, lo, hi) / weight + penalty * state.iterate
            eta = AUTO_STEP * state.total.cushion / np.sqrt(1.0 + state.seen / (SLOW * self.batch_size))
            eta = max(eta, 1.0 / state.steps)  # the first batches are most of what is known
            state.iterate = state.iterate - eta * state.total.solve(gradient)
            state.mean = state.mean + (state.iterate - state.mean) * (POWER + 1.0) / (state.steps + POWER)
        return state.mean, state

    def _batch_model(self, state: BoundState, theta: FloatArray, lo: int, hi: int) -> QuadraticModel:
        point = state.source.problem(lo, hi).at(theta)
        if self.rank is None:
            return point.model(self._kind)
        return point.low_rank_model(self._kind, self.rank, self.low_rank, self.allow_invalid, None)

    def _fold_in(self, state: BoundState, total: CurvatureSum, theta: FloatArray, lo: int, hi: int) -> None:
        """Add this batch to the moving average: from the next batch on, so that no gradient meets its own curvature."""
        source, share = state.source, 1.0 / min(state.steps // self.lag + 1, state.per_epoch)
        total.decay(1.0 - share)
        source.add_curvature(total, self._kind, theta, lo, hi, share * source.n_examples / (hi - lo))
        self._prepare(source, total)

    def restart(self, state: BoundState, theta: FloatArray) -> None:
        """Steps were too long, or the curvature was that of another place."""
        if state.newton is not None:
            state.newton.slow_down()
            state.newton.refresh(theta)

    def finish(self, state: BoundState, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The first epochs, whose gradients have all their noise, end at the mean of their second half."""
        scaling = state.scaling
        if state.newton is not None:
            state.newton.recover()
        if scaling is not None and scaling.mean is not None:
            theta = scaling.mean
            scaling.mean, scaling.averaged = None, 0
        return theta, theta


def parse_step(step: Any) -> tuple[float, str | None]:
    """``"c/t"`` and ``"c/epoch"`` as (c, "t") and (c, "epoch"); a number as (number, None)."""
    if step == "auto":
        return 1.0, None
    if isinstance(step, str):
        match = re.fullmatch(r"([0-9.eE+-]+)/(t|epoch)", step)
        if not match:
            raise ValueError(f"step must be 'auto', a number, 'c/t' or 'c/epoch' such as '4/t'; got {step!r}")
        return check_real("step", float(match[1]), minimum=0.0, strict=True), match[2]
    return check_real("step", step, minimum=0.0, strict=True), None
