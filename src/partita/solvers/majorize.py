"""Majorization-minimisation with a quadratic bound (Algorithm 2), plain and accelerated."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np

from ..core.contracts.capabilities import (
    BOUNDS,
    BoundedRay,
    Capability,
    HasConstrainedStep,
    HasLineBound,
    HasLowRankModel,
    HasModel,
    HasPreconditioner,
    HasSubspace,
    LowRankModel,
    Product,
    QuadraticModel,
    Subspace,
)
from ..core.contracts.objective import Objective
from ..core.contracts.point import Point
from ..core.contracts.solver import Solver
from ..core.results import FloatArray
from ..core.validation import check_choice, check_count, check_low_rank, check_real
from .lbfgs import Pair, add_pair, identity, two_loop

ACCELERATIONS = ("subspace", "anderson", "squarem")
ANDERSON_MEMORY = 5
#: Steps that directions along lines remember, and after how many their preconditioner is made anew.
LINE_MEMORY, REFRESH = 20, 10
#: How much longer than the last step the next is expected to be at most.
LINE_RADIUS = 2.0
#: Parameters from which lines are taken where there is a bound along them: a step costs one evaluation.
LINES_FROM = 300
#: Relative rise of the objective that counts as rounding.
ROUNDING = 4e-16
#: How often the diagonal of a low-rank bound may be doubled before giving up.
LARGEST_INFLATION = 8


class MajorizePoint(HasLineBound, HasModel, HasLowRankModel, HasSubspace, HasPreconditioner, HasConstrainedStep, Protocol):
    """What a point may be asked for: each by one form of the method."""

    def along(self, direction: FloatArray) -> MajorizeRay: ...


class MajorizeRay(BoundedRay, Protocol):
    """Points along a ray offer the same."""

    def at(self, step: float) -> tuple[MajorizePoint, float]: ...


@dataclass
class LineState:
    """What steps along lines remember: the curvature met, and how long the last step was."""

    preconditioned: bool
    pairs: deque[Pair] = field(default_factory=lambda: deque(maxlen=LINE_MEMORY))
    precondition: Product = identity
    radius: float = np.inf
    steps: int = 0


@dataclass
class MajorizeState:
    """Which form the method has on this objective, and what it remembers."""

    constrained: bool
    line: LineState | None  # where there is a bound along lines only
    history: deque[tuple[FloatArray, FloatArray]] = field(default_factory=lambda: deque(maxlen=ANDERSON_MEMORY + 1))
    low_rank: LowRankModel | None = None


@dataclass(frozen=True)
class Majorize(Solver[MajorizeState, Objective, MajorizePoint]):
    """Minimise a quadratic upper bound at every iteration: no tuning, and the objective never rises.

    Parameters
    ----------
    bound : str
        Which bound: ``"symmetric"`` (default), ``"symmetric_proved"``, ``"descending"``, ``"given"``, ``"ascending"``,
        ``"bohning"``.
    acceleration : {"subspace", "anderson", "squarem"} or None
        ``"subspace"`` minimises over the plane of the majorization step and the previous step; ``"anderson"`` mixes the
        last five steps; ``"squarem"`` extrapolates from two steps. Each falls back to the plain step whenever that is
        lower. None is the method of the paper.
    step : float
        Multiple of the majorization step, in (0, 2): every value there is monotone.
    rank : int, optional
        Use a low-rank form of the bound with so many directions: memory and time per step grow with the number of
        parameters, not with its square.
    low_rank : {"lanczos", "exact", "corrected", "original"}
        How it is made. ``"lanczos"`` takes the largest eigenpairs of the bound; the others pass once over the data.
        ``"original"`` is the first paper's, which is not a bound; it needs ``allow_invalid=True``.

    Notes
    -----
    On a constrained objective the bound is minimised over the set, by a quadratic program: still monotone, and every
    iterate is feasible. Acceleration then means the plane of this and the last step, cut where it would leave the set.

    Objectives of chains bound themselves along a line too. With many parameters and no `rank`, the direction is then
    L-BFGS's and the step minimises the bound on that line: monotone as well, one evaluation per iteration and no line
    search. `bound` and `acceleration` have no effect there.

    On chains, graphs, trees and matchings the quadratic is known by products with its curvature, and its minimum found by
    conjugate gradients: no number of parameters is too large. There `bound` is ``"bohning"`` or the symmetric one; orders
    stand for ``"symmetric_proved"``, unless there are so few parameters that the curvature is a matrix.
    """

    key = "majorize"
    bound: str = "symmetric"
    acceleration: str | None = "subspace"
    step: float = 1.0
    rank: int | None = None
    low_rank: str = "lanczos"
    allow_invalid: bool = False

    def __post_init__(self) -> None:
        check_choice("bound", self.bound, BOUNDS)
        if self.acceleration is not None:
            check_choice("acceleration", self.acceleration, ACCELERATIONS)
        if not 0.0 < check_real("step", self.step) < 2.0:
            raise ValueError(f"step must be in (0, 2), where majorization is monotone; got {self.step!r}")
        check_low_rank(self.low_rank, self.allow_invalid)
        if self.rank is not None:
            check_count("rank", self.rank, minimum=1)

    @property
    def name(self) -> str:
        parts = [self.bound, f"rank {self.rank} {self.low_rank}" if self.rank else None, self.acceleration]
        return f"majorize ({', '.join(part for part in parts if part)})"

    @property
    def requires(self) -> frozenset[Capability]:
        needs = {Capability.SMOOTH, Capability.QUADRATIC_BOUND if self.rank is None else Capability.LOW_RANK_BOUND}
        return frozenset(needs | {Capability.SUBSPACE} if self.acceleration == "subspace" else needs)

    @property
    def alternatives(self) -> tuple[frozenset[Capability], ...]:
        return (frozenset({Capability.SMOOTH, Capability.LINE_BOUND}),) if self.rank is None else ()

    @property
    def uses(self) -> frozenset[Capability]:
        return self.requires | {Capability.CONSTRAINED_STEP}

    def start(self, objective: Objective, point: Point) -> MajorizeState:
        offers = objective.capabilities
        long = self.rank is None and Capability.LINE_BOUND in offers and objective.size > LINES_FROM
        line = None if self.requires <= offers and not long else LineState(Capability.PRECONDITIONER in offers)
        return MajorizeState(Capability.CONSTRAINED_STEP in offers, line)

    def advance(self, state: MajorizeState, point: MajorizePoint) -> Point | None:
        if state.constrained:
            return self._constrained_step(point)
        if state.line is not None:
            return self._line_step(state.line, point)
        for model in self._models(state, point):
            following = self._step(state, point, -self.step * model.solve(point.gradient))
            if not following.value > point.value + ROUNDING * abs(point.value):
                return _progress(point, following)
        return None

    def _models(self, state: MajorizeState, point: MajorizePoint) -> Iterator[QuadraticModel]:
        """The bound; in low-rank form, then with more and more for the rest of the spectrum, which was estimated."""
        model = self._model(state, point)
        larger = state.low_rank
        yield model
        for _ in range(LARGEST_INFLATION - 1):
            if larger is None:
                return
            larger = larger.inflated()
            yield larger

    def _model(self, state: MajorizeState, point: MajorizePoint) -> QuadraticModel:
        if self.rank is None:
            return point.model(self.bound)
        options = (self.bound, self.rank, self.low_rank, self.allow_invalid)
        state.low_rank = point.low_rank_model(*options, start=state.low_rank)
        return state.low_rank

    def _step(self, state: MajorizeState, point: MajorizePoint, direction: FloatArray) -> Point:
        if self.acceleration == "subspace":
            return _plane_step(point, direction)
        if self.acceleration == "anderson":
            return _anderson_step(state.history, point, direction)
        if self.acceleration == "squarem":
            return self._squarem_step(state, point, direction)
        return _move(point, direction)

    def _line_step(self, line: LineState, point: MajorizePoint) -> Point | None:
        """Along the direction of L-BFGS to the minimum of the bound on that line."""
        if line.preconditioned and line.steps % REFRESH == 0:
            line.precondition = point.preconditioner()
        line.steps += 1
        ray = point.along(-two_loop(line.pairs, point.gradient, line.precondition))
        step = ray.bound(line.radius).step(self.step)
        line.radius = LINE_RADIUS * step
        following = _progress(point, ray.at(step)[0])
        if following is not None:
            add_pair(line.pairs, following.parameters - point.parameters, following.gradient - point.gradient)
        return following

    def _constrained_step(self, point: HasConstrainedStep) -> Point | None:
        """To the feasible minimiser of the bound, and from there along the plane's better point while that is feasible."""
        ray = point.constrained_step(self.bound)
        if ray is None:
            return None
        here = ray.stay()
        step = min(self.step, ray.reach)
        following = ray.at(step)[0]
        if self.acceleration is not None and ray.slope < 0.0:
            plane = here.subspace([ray.direction], momentum=True)
            first = np.zeros(plane.dimension)
            first[0] = step
            move = _plane_minimum(plane, first) - first
            further = min(1.0, plane.reach(first, move))
            better = plane.at(first + further * move) if further > 0.0 else following
            following = better if better.value < following.value else following
        if following.value < point.value:
            return following
        nearer: Point = min((following, here), key=_norm)
        tie = nearer.value <= point.value + ROUNDING * abs(point.value)
        return nearer if tie and _norm(nearer) < _norm(point) else None

    def _squarem_step(self, state: MajorizeState, point: MajorizePoint, direction: FloatArray) -> Point:
        """theta - 2 a r + a^2 v with a = -|r|/|v|, pulled back until it is no higher than two plain steps."""
        first = _move(point, direction)
        second = _move(first, -self.step * self._model(state, first).solve(first.gradient))
        r = first.parameters - point.parameters
        v = second.parameters - first.parameters - r
        length = float(np.linalg.norm(v))
        if length == 0.0 or second.value > first.value:
            return first if second.value > first.value else second
        a = -float(np.linalg.norm(r)) / length
        for _ in range(20):
            if a >= -1.0:
                break
            trial = _move(point, -2.0 * a * r + a * a * v)
            if trial.value <= second.value:
                return trial
            a = 0.5 * (a - 1.0)
        return second


def _progress(point: Point, following: Point) -> Point | None:
    """The following point, unless it is no better.

    A bound guarantees descent up to rounding; at that level only a smaller gradient still is progress.
    """
    if following.value < point.value:
        return following
    tie = following.value <= point.value + ROUNDING * abs(point.value)
    return following if tie and _norm(following) < _norm(point) else None


def _norm(point: Point) -> float:
    return float(np.linalg.norm(point.gradient))


def _move(point: MajorizePoint, step: FloatArray) -> MajorizePoint:
    return point.along(step).at(1.0)[0]


def _plane_step(point: HasSubspace, direction: FloatArray) -> Point:
    """Damped Newton in the coordinates of (majorization step, last step), from the majorization step itself."""
    plane = point.subspace([direction], momentum=True)
    first = np.zeros(plane.dimension)
    first[0] = 1.0
    return plane.at(_plane_minimum(plane, first))


def _plane_minimum(plane: Subspace, c: FloatArray) -> FloatArray:
    value, gradient, hessian = plane.evaluate(c)
    first = float(np.abs(gradient).max())
    for _ in range(10):
        scale = np.sqrt(np.maximum(np.abs(np.diag(hessian)), 1e-300))
        values, vectors = np.linalg.eigh(hessian / np.outer(scale, scale))
        # absolute values: where the objective is not convex, the step still descends
        move = -(vectors @ ((vectors.T @ (gradient / scale)) / np.maximum(np.abs(values), 1e-12))) / scale
        damping = 1.0
        while damping > 1e-3:
            trial = plane.evaluate(c + damping * move)
            if trial[0] <= value:
                break
            damping *= 0.5
        else:
            break
        c = c + damping * move
        value, gradient, hessian = trial
        if float(np.abs(gradient).max()) <= 1e-3 * first:
            break
    return c


def _anderson_step(history: deque[tuple[FloatArray, FloatArray]], point: MajorizePoint, residual: FloatArray) -> Point:
    """Anderson mixing of the fixed-point map, kept only if it is lower than the plain step."""
    plain = _move(point, residual)
    history.append((point.parameters, residual))
    if len(history) < 2:
        return plain
    thetas = np.array([theta for theta, _ in history])
    residuals = np.array([r for _, r in history])
    dr = np.diff(residuals, axis=0)
    mix, *_ = np.linalg.lstsq(dr.T, residual, rcond=1e-10)
    step = residual - mix @ (np.diff(thetas, axis=0) + dr)
    mixed = _move(point, step)
    return mixed if mixed.value <= plain.value else plain
