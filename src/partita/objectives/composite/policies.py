"""Which likelihood objects are computed for an example: laws of selection indicators.

They are what `CompositeLikelihood(policy=...)` takes, as they are or made by a function of the orders of the objects:

>>> from partita import CompositeLikelihood
>>> from partita.objectives import Multinomial
>>> one_of_all = CompositeLikelihood(policy=lambda orders: Multinomial([1.0 / len(orders)] * len(orders)))
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.results import FloatArray

BoolArray = NDArray[np.bool_]


@runtime_checkable
class Policy(Protocol):
    """A law of indicators Z, one for each object."""

    @property
    def mean(self) -> FloatArray:
        """E[Z]."""
        ...

    @property
    def second(self) -> FloatArray:
        """E[Z Z']."""
        ...

    def draw(self, count: int, rng: np.random.Generator) -> BoolArray:
        """A row of indicators for each of `count` examples."""
        ...


class Independent:
    """Every object by itself, with a probability of its own.

    >>> import numpy as np
    >>> from partita.objectives import Independent
    >>> Independent([0.5, 1.0]).second
    array([[0.5, 0.5],
           [0.5, 1. ]])
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        self.mean: FloatArray = _shares(probabilities)

    @property
    def second(self) -> FloatArray:
        out = np.outer(self.mean, self.mean)
        np.fill_diagonal(out, self.mean)
        return out

    def draw(self, count: int, rng: np.random.Generator) -> BoolArray:
        return np.asarray(rng.random((count, len(self.mean))) < self.mean)


class Listed:
    """Any law, as a list of sets of objects and their probabilities.

    Parameters
    ----------
    rows : bool array of shape (sets, objects)
    probabilities : array of shape (sets,)
    """

    rows: NDArray[Any]
    probabilities: FloatArray

    def __init__(self, rows: ArrayLike, probabilities: ArrayLike) -> None:
        self.rows, self.probabilities = np.asarray(rows, dtype=bool), _shares(probabilities, positive=False)
        if self.rows.ndim != 2 or len(self.rows) != len(self.probabilities):
            raise ValueError(f"rows must be a matrix with {len(self.probabilities)} rows, got {self.rows.shape}")
        if not np.isclose(self.probabilities.sum(), 1.0, atol=1e-9):
            raise ValueError(f"probabilities must sum to one, got {self.probabilities.sum()}")

    @cached_property
    def mean(self) -> FloatArray:
        return np.asarray(self.probabilities @ self.rows)

    @cached_property
    def second(self) -> FloatArray:
        return np.asarray((self.rows.T * self.probabilities) @ self.rows)

    def draw(self, count: int, rng: np.random.Generator) -> BoolArray:
        return np.asarray(self.rows[rng.choice(len(self.rows), count, p=self.probabilities)])


class Multinomial:
    """Exactly one object; none with the probability that is left, if there is any.

    >>> from partita.objectives import Multinomial
    >>> Multinomial([0.25, 0.75]).mean
    array([0.25, 0.75])
    """

    def __init__(self, probabilities: ArrayLike) -> None:
        self.mean: FloatArray = _shares(probabilities)
        if self.mean.sum() > 1.0 + 1e-9:
            raise ValueError(f"probabilities must sum to at most one, got {self.mean.sum()}")

    @property
    def second(self) -> FloatArray:
        return np.diag(self.mean)

    def draw(self, count: int, rng: np.random.Generator) -> BoolArray:
        left = max(1.0 - self.mean.sum(), 0.0)
        chosen = rng.choice(len(self.mean) + 1, count, p=np.append(self.mean, left) / (self.mean.sum() + left))
        return np.asarray(chosen[:, None] == np.arange(len(self.mean)))


class Product:
    """Policies for groups of objects, one after another, independent of each other.

    >>> from partita.objectives import Independent, Multinomial, Product
    >>> Product([Multinomial([0.5, 0.5]), Independent([0.1])]).second
    array([[0.5 , 0.  , 0.05],
           [0.  , 0.5 , 0.05],
           [0.05, 0.05, 0.1 ]])
    """

    def __init__(self, parts: Sequence[Policy]) -> None:
        self.parts: list[Policy] = list(parts)

    @cached_property
    def mean(self) -> FloatArray:
        return np.concatenate([part.mean for part in self.parts])

    @cached_property
    def second(self) -> FloatArray:
        out, first = np.outer(self.mean, self.mean), 0
        for part in self.parts:
            last = first + len(part.mean)
            out[first:last, first:last] = part.second
            first = last
        return out

    def draw(self, count: int, rng: np.random.Generator) -> BoolArray:
        return np.concatenate([part.draw(count, rng) for part in self.parts], axis=1)


def _shares(probabilities: Any, positive: bool = True) -> FloatArray:
    p = np.asarray(probabilities, dtype=np.float64)
    if p.ndim != 1 or not len(p) or not ((p >= 0.0) & (p <= 1.0)).all() or (positive and not p.min() > 0.0):
        raise ValueError(f"probabilities must be numbers {'above 0, at most 1' if positive else 'from 0 to 1'}, got {p!r}")
    return p
