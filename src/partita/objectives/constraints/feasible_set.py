"""A convex set of flat parameter vectors: bounds, rows, cones. What constraints compile to and what solvers work with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from ...core.results import FloatArray

#: Violation of a row, per length of its normal and size of its bound, that counts as rounding.
ROUNDING = 1e-9
#: The same for cones, which interior-point solvers satisfy less exactly.
CONIC_ROUNDING = 1e-6
#: Distance to a bound, per size of the entry, from which on it holds nothing.
NEAR_BOUND = 1e-6


@dataclass(frozen=True)
class NormBall:
    """``||x[where] - center|| <= radius`` in the 1- or 2-norm."""

    where: NDArray[np.int64]
    center: FloatArray
    radius: float
    norm: int

    def off(self, x: FloatArray) -> FloatArray:
        """The difference to the center."""
        return np.asarray(x[self.where] - self.center)

    def excess(self, x: FloatArray) -> float:
        """Norm minus radius, at least 0."""
        return max(0.0, float(np.linalg.norm(self.off(x), self.norm)) - self.radius)

    def pull(self, x: FloatArray, held: NDArray[np.bool_]) -> FloatArray:
        """x moved inside by shrinking the entries that are not held at a bound towards the center."""
        off, free = self.off(x), ~held[self.where]
        if float(np.linalg.norm(off, self.norm)) <= self.radius or not off[free].any():
            return x
        rest, length = (float(np.linalg.norm(part, self.norm)) for part in (off[~free], off[free]))
        room = max(0.0, self.radius**self.norm - rest**self.norm) ** (1.0 / self.norm)
        moved = x.copy()
        moved[self.where[free]] = self.center[free] + off[free] * (room / length) * (1.0 - 1e-15)
        return moved


@dataclass(frozen=True)
class Cone:
    """``offset - matrix x - auxiliary t`` lies in a product of cones, for some t.

    Attributes
    ----------
    kinds : tuple of (str, int)
        Names of Clarabel's cones without "ConeT", in the order of the rows, with their dimension.
    violation : callable
        How far a parameter vector is from the set, 0 inside.
    ball : NormBall, optional
        What the cone describes, if it is a ball: solutions can then be refined beyond the accuracy of Clarabel.
    """

    matrix: Any
    auxiliary: Any
    offset: FloatArray
    kinds: tuple[tuple[str, int], ...]
    violation: Callable[[FloatArray], float]
    ball: NormBall | None = None


@dataclass(frozen=True)
class FeasibleSet:
    """``lower <= x <= upper``, ``row_lower <= rows x <= row_upper``, x in every cone; groups in `ties` share one value.

    Ties are no rows: programs over the set have one variable for each group.
    """

    lower: FloatArray
    upper: FloatArray
    rows: Any = None
    row_lower: Any = None
    row_upper: Any = None
    cones: tuple[Cone, ...] = ()
    ties: tuple[NDArray[np.int64], ...] = ()

    @staticmethod
    def everything(size: int) -> FeasibleSet:
        """The whole space."""
        return FeasibleSet(np.full(size, -np.inf), np.full(size, np.inf))

    @staticmethod
    def tied(numbers: NDArray[np.int64]) -> FeasibleSet:
        """Vectors whose entries with the same number are equal."""
        order = np.argsort(numbers, kind="stable")
        groups = np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)
        whole = FeasibleSet.everything(len(numbers))
        return FeasibleSet(whole.lower, whole.upper, ties=tuple(group for group in groups if len(group) > 1))

    @staticmethod
    def intersection(size: int, parts: Sequence[FeasibleSet]) -> FeasibleSet:
        """The set of vectors that lie in every part."""
        whole = FeasibleSet.everything(size)
        lower = np.max([whole.lower, *(part.lower for part in parts)], axis=0)
        upper = np.min([whole.upper, *(part.upper for part in parts)], axis=0)
        with_rows = [part for part in parts if part.rows is not None]
        rows = sp.csr_matrix(sp.vstack([part.rows for part in with_rows])) if with_rows else None
        cones = tuple(cone for part in parts for cone in part.cones)
        ties = tuple(merged_groups(group for part in parts for group in part.ties))
        for group in ties:  # so that a bound on one member is exact for all
            lower[group], upper[group] = lower[group].max(), upper[group].min()
        return FeasibleSet(
            lower,
            upper,
            rows,
            np.concatenate([part.row_lower for part in with_rows]) if with_rows else None,
            np.concatenate([part.row_upper for part in with_rows]) if with_rows else None,
            cones,
            ties,
        )

    @property
    def size(self) -> int:
        return len(self.lower)

    @property
    def is_box(self) -> bool:
        """Whether there are bounds and ties only, which need no matrix."""
        return self.rows is None and not self.cones

    @cached_property
    def numbers(self) -> NDArray[np.int64] | None:
        """The variable of each entry; None if no entries are tied."""
        if not self.ties:
            return None
        leader = np.arange(self.size)
        for group in self.ties:
            leader[group] = group.min()
        return np.asarray(np.unique(leader, return_inverse=True)[1], dtype=np.int64)

    def mean(self, x: FloatArray) -> FloatArray:
        """x with the mean of its group in place of every tied entry."""
        if self.numbers is None:
            return x
        return np.asarray((np.bincount(self.numbers, x) / np.bincount(self.numbers))[self.numbers])

    def row_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Both sides of the rows; empty without rows."""
        empty = np.zeros(0)
        return (empty, empty) if self.rows is None else (self.row_lower, self.row_upper)

    def row_values(self, x: FloatArray) -> FloatArray:
        return np.zeros(0) if self.rows is None else np.asarray(self.rows @ x)

    def violation(self, x: FloatArray) -> float:
        """The largest violation: of bounds as they are, of rows and cones beyond rounding."""
        worst = float(np.maximum(self.lower - x, x - self.upper).max(initial=0.0))
        if self.rows is not None:
            values = self.rows @ x
            room = ROUNDING * (1.0 + np.asarray(abs(self.rows) @ np.abs(x)))
            excess = np.maximum(self.row_lower - values, values - self.row_upper)
            worst = max(worst, float(np.where(excess > room, excess, 0.0).max(initial=0.0)))
        if self.ties:
            apart = np.abs(x - self.mean(x))
            worst = max(worst, float(np.where(apart > ROUNDING * (1.0 + np.abs(x)), apart, 0.0).max(initial=0.0)))
        for cone in self.cones:
            excess = cone.violation(x)
            worst = max(worst, excess if excess > CONIC_ROUNDING * (1.0 + float(np.abs(x).max(initial=0.0))) else 0.0)
        return worst

    def contains(self, x: FloatArray) -> bool:
        return self.violation(x) <= 0.0

    def snap(self, x: FloatArray) -> FloatArray:
        """x with the rounding removed that can be: bounds and ties hold exactly.

        A tied group of which one member is on its bound is put there as a whole: members differ by rounding, bounds of a
        group are equal, and a value an ulp off the bound would no longer count as held by it.
        """
        snapped = np.clip(x, self.lower, self.upper)
        if self.rows is None:
            for cone in self.cones:
                if cone.ball is not None:
                    snapped = cone.ball.pull(snapped, (snapped == self.lower) | (snapped == self.upper))
        if self.numbers is None:
            return snapped
        low, high = (np.full(self.numbers.max() + 1, fill) for fill in (np.inf, -np.inf))
        np.minimum.at(low, self.numbers, snapped)
        np.maximum.at(high, self.numbers, snapped)
        low, high, together = low[self.numbers], high[self.numbers], self.mean(snapped)
        together = np.where(high >= self.upper, self.upper, np.clip(together, low, high))
        return np.where(low == high, snapped, np.where(low <= self.lower, self.lower, together))

    def bound_slack(self, x: FloatArray, slope: FloatArray) -> FloatArray:
        """The way from x to the bound that holds up a fall along `-slope`; inf without a bound."""
        return np.asarray(np.where(slope > 0.0, x - self.lower, self.upper - x))

    def held(self, x: FloatArray, slope: FloatArray) -> FloatArray:
        """What bounds hold of `slope`: all of it on a bound, nothing far from it, linear in the slack in between.

        A point an ulp off its bound so has nearly the multiplier that it has on it.
        """
        near = self.bound_slack(x, slope) / (NEAR_BOUND * (1.0 + np.abs(x)))
        return np.asarray(slope * np.maximum(0.0, 1.0 - near))

    def reach(self, x: FloatArray, direction: FloatArray) -> float:
        """The largest t for which ``x + t direction`` is known to be feasible; inf if there is no end."""
        if self.cones:
            return 0.0
        furthest = _ratio(x, direction, self.lower, self.upper, 0.0)
        if self.rows is not None:
            slopes = np.asarray(self.rows @ direction)
            noise = 1e-12 * np.asarray(abs(self.rows) @ np.abs(direction))
            furthest = min(furthest, _ratio(self.row_values(x), slopes, self.row_lower, self.row_upper, noise))
        return furthest

    def tight(self, x: FloatArray) -> bool:
        """Whether a bound or a row holds with equality, up to rounding, at x; ties always do."""
        if self.ties:
            return True
        room = 1e-9 * (1.0 + np.abs(x))
        if np.any((x <= self.lower + room) | (x >= self.upper - room)):
            return True
        if self.rows is not None:
            values = self.row_values(x)
            room = 1e-9 * (1.0 + np.asarray(abs(self.rows) @ np.abs(x)))
            return bool(np.any((values <= self.row_lower + room) | (values >= self.row_upper - room)))
        return False


def merged_groups(groups: Iterable[Any]) -> list[NDArray[np.int64]]:
    """Groups that share a member become one."""
    merged: list[set[int]] = []
    for group in groups:
        new = {int(i) for i in group}
        apart = [other for other in merged if not other & new]
        for other in merged:
            if other & new:
                new |= other
        merged = [*apart, new]
    return [np.array(sorted(group), dtype=np.int64) for group in merged if len(group) > 1]


def _ratio(x: FloatArray, slopes: FloatArray, lower: FloatArray, upper: FloatArray, noise: Any) -> float:
    """The largest t with ``lower <= x + t slopes <= upper``; slopes up to `noise` count as none."""
    falls, rises = slopes < -noise, slopes > noise
    down = (x[falls] - lower[falls]) / -slopes[falls]
    up = (upper[rises] - x[rises]) / slopes[rises]
    return max(0.0, float(min(down.min(initial=np.inf), up.min(initial=np.inf))))
