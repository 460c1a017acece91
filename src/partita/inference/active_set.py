"""A mean of configurations that a solver has found, moved by exchanges between them (pairwise Frank-Wolfe steps)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np

from ..core.results import FloatArray, IntArray
from ..numerics.corrective import correct
from ..numerics.exchanges import GroupTerms, Place, Vertices, exchange
from ..numerics.secant import bracketed, found_step, is_found, narrowed, next_step

#: Shares below which a configuration is dropped.
LEAST_SHARE = 1e-15
#: Exchanges after which the mean is summed anew: differences add up rounding.
FRESH = 64
#: Most Newton steps on all shares at once and most exchanges of two, and the operations that they may take together for one
#: call of a solver: some milliseconds.
NEWTON_STEPS, EXCHANGES, OPERATIONS = 30, 30, 1e7
#: Operations that a logarithm of a line search counts for, with the steps that it takes.
SEARCH = 100.0


class Sloped(Protocol):
    """A concave function, seen along a direction."""

    def along(self, tau: FloatArray, direction: FloatArray) -> Callable[[float], float]:
        """The slope of the value at steps in a direction."""
        ...


class ActiveSet:
    """A mean of configurations, with a little of the first mean in it that stays: logarithms remain finite.

    Configurations are kept as the places and sizes of their entries that are not zero: there are few of these.

    Parameters
    ----------
    first : array of shape (configurations, parts)
    floor : float
        The part of the mean of `first` that stays.
    image : callable, optional
        What a configuration adds to the parameters' side, for `Vertices`.

    Attributes
    ----------
    tau : array
        The mean.
    """

    floor: float
    tau: FloatArray

    def __init__(self, first: FloatArray, floor: float, image: Callable[[FloatArray], FloatArray] | None = None) -> None:
        self._since, self._image = 0, image
        self._images: list[FloatArray] = []
        self.floor, self._first = floor, first.mean(0)
        self._places: list[IntArray] = []
        self._sizes: list[FloatArray] = []
        self.shares: FloatArray = np.zeros(0)
        for row in first:
            k = self.add(row)
            self.shares[k] += 1.0 / len(first)
        self._summed()

    def __len__(self) -> int:
        return len(self._places)

    def add(self, vertex: FloatArray) -> int:
        """The number of a configuration, a new one if need be; it has no share yet."""
        places = np.flatnonzero(vertex)
        sizes = vertex[places]
        for k, (mine, has) in enumerate(zip(self._places, self._sizes, strict=True)):
            if len(mine) == len(places) and (mine == places).all() and (has == sizes).all():
                return k
        self._places.append(places)
        self._sizes.append(sizes)
        self._images.append(np.zeros(0) if self._image is None else self._image(vertex))
        self.shares = np.append(self.shares, 0.0)
        self._flatten()
        return len(self._places) - 1

    def _flatten(self) -> None:
        self._flat = np.concatenate([*self._places, np.zeros(0, np.int64)])
        self._values = np.concatenate([*self._sizes, np.zeros(0)])
        self._owner = np.repeat(np.arange(len(self)), [len(places) for places in self._places])

    @property
    def binary(self) -> bool:
        """Whether all configurations are sets of parts."""
        return bool((self._values == 1.0).all())

    def improve(
        self, terms: GroupTerms, fixed: FloatArray, theta: FloatArray, scaling: FloatArray, promise: float
    ) -> tuple[bool, float, FloatArray]:
        """Move shares among known configurations, all of them sets of parts, until none is better than another by `promise`.

        By Newton steps on all shares, or exchanges between two at a time where there are very many. Parameters `theta` are
        those of the images, and fall by `scaling` for each unit of these. Returns whether anything moved, the difference of
        scores that is left, and the sum of the images of what moved.
        """
        starts = np.concatenate(([0], np.cumsum([len(places) for places in self._places])))
        vertices = Vertices(starts, self._flat, np.array(self._images), self.shares)
        owner = np.repeat(np.arange(len(terms.slack)), np.diff(terms.group_starts))
        rest = 1.0 - np.bincount(owner, self.tau[terms.group_parts], len(terms.slack))
        place, before, keep = Place(self.tau.copy(), rest, theta.copy()), self.shares.copy(), 1.0 - self.floor
        arguments = (terms, fixed, vertices, place, scaling, keep, promise)
        k, used = len(self), len(self._flat)
        steps = int(min(NEWTON_STEPS, OPERATIONS / (k * used + k**3 / 3.0 + k * k * len(theta) + SEARCH * len(self.tau))))
        turns, left = correct(*arguments, steps) if steps else (0, np.inf)
        if not turns:
            cost = 1.0 + used + SEARCH * 2.0 * used / k + k * len(theta)
            turns, left = exchange(*arguments, int(min(EXCHANGES, max(1.0, OPERATIONS / cost))))
        self.shares /= self.shares.sum()
        change = keep * ((self.shares - before) @ vertices.images)
        if turns:
            self._since = FRESH
            self._tidy()
        return turns > 0, float(left), change

    def scores(self, gradient: FloatArray) -> FloatArray:
        """The score of each configuration."""
        return np.asarray(np.bincount(self._owner, gradient[self._flat] * self._values, len(self)), dtype=np.float64)

    def exchange(self, giver: int, taker: int, energy: Sloped) -> float:
        """Move what is best of a share from one configuration to another; returns the step, zero if nothing gains."""
        direction = np.zeros_like(self.tau)
        direction[self._places[taker]] += self._sizes[taker]
        direction[self._places[giver]] -= self._sizes[giver]
        direction *= 1.0 - self.floor
        step = line_search(energy.along(self.tau, direction), float(self.shares[giver]))
        if not step > 0.0:
            return 0.0
        self.shares[taker] += step
        self.shares[giver] -= step
        self.tau = self.tau + step * direction
        self._tidy()
        return step

    def toward(self, taker: int, energy: Sloped) -> float:
        """Move what is best of everything to one configuration; returns the step, zero if nothing gains."""
        direction = self.floor * self._first - self.tau
        direction[self._places[taker]] += (1.0 - self.floor) * self._sizes[taker]
        step = line_search(energy.along(self.tau, direction), 1.0)
        if not step > 0.0:
            return 0.0
        self.shares *= 1.0 - step
        self.shares[taker] += step
        self.tau = self.tau + step * direction
        self._tidy()
        return step

    def _tidy(self) -> None:
        """Drop configurations without a share."""
        self._since += 1
        kept = self.shares > LEAST_SHARE
        if not kept.all():
            chosen = np.flatnonzero(kept).tolist()
            self._places, self._sizes = [self._places[k] for k in chosen], [self._sizes[k] for k in chosen]
            self._images = [self._images[k] for k in chosen]
            self.shares = self.shares[kept]
            self._flatten()
        if self._since >= FRESH or not kept.all():
            self._summed()

    def _summed(self) -> None:
        """The mean from its configurations."""
        self._since = 0
        self.shares /= self.shares.sum()
        weights = self.shares[self._owner] * self._values
        mean = np.bincount(self._flat, weights, len(self._first))
        self.tau = np.asarray(self.floor * self._first + (1.0 - self.floor) * mean)


def line_search(slope: Callable[[float], float], longest: float) -> float:
    """The step at which a concave function is largest."""
    at_lo, at_hi = slope(0.0), slope(longest)
    if at_hi >= 0.0 or at_lo <= 0.0:
        return longest if at_hi >= 0.0 else 0.0
    bracket = bracketed(longest, at_lo, at_hi)
    for _ in range(60):
        step = next_step(bracket)
        now = slope(step)
        bracket = narrowed(bracket, step, now)
        if is_found(bracket, now, 1e-4):
            break
    return float(found_step(bracket))
