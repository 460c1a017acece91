"""What a Bayesian network learns from: rows in which something is known, real numbers in standard units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.results import FloatArray, IntArray
from ..data.network import NetworkLayout
from ..objective import NetworkLikelihood


@dataclass(frozen=True)
class NetworkProblem:
    """Rows of a table, for a network whose states are known.

    Attributes
    ----------
    layout : NetworkLayout
    states : int array
        Of the variables that are not Gaussian, -1 where unknown.
    values : array
        Of the Gaussian ones, in standard units, NaN where unknown.
    weights : array
        Of the rows.
    location, scale : arrays
        What was taken off the values, and what they were divided by.
    """

    layout: NetworkLayout
    states: IntArray
    values: FloatArray
    weights: FloatArray
    location: FloatArray
    scale: FloatArray

    @classmethod
    def of(cls, layout: NetworkLayout, states: IntArray, values: FloatArray, weights: FloatArray) -> NetworkProblem:
        """The rows of these that say something."""
        location, scale = _units(values, weights)
        rows = _informative(layout, states, values, weights)
        return cls(layout, states[rows], ((values - location) / scale)[rows], weights[rows], location, scale)

    @property
    def is_complete(self) -> bool:
        """Whether every state is known."""
        return not (self.states < 0).any()

    def check_complete(self) -> None:
        """Raise a ValueError that names a row and a variable whose state is unknown."""
        if not self.is_complete:
            row, v = np.argwhere(self.states < 0)[0]
            raise ValueError(
                f"method='supervised' needs all values known, but row {row} has none for {self.layout.discrete[v]!r}; "
                "use 'em'"
            )

    def check_equal_weights(self) -> None:
        """Raise a ValueError unless all rows weigh the same."""
        if (self.weights != self.weights[0]).any():
            raise ValueError("the relaxation needs equal weights of rows; use method='em'")

    def objective(self, states: IntArray, **options: Any) -> NetworkLikelihood:
        """The likelihood of the rows with these states."""
        return NetworkLikelihood(self.layout.net, states, self.values, weights=self.weights, **options)


def in_standard_units(values: FloatArray) -> FloatArray:
    """Columns with mean zero and standard deviation one, as far as they are known; rows count alike."""
    location, scale = _units(values, np.ones(len(values)))
    return np.asarray((values - location) / scale)


def _units(values: FloatArray, weights: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Mean and standard deviation of columns, as far as they are known."""
    known = ~np.isnan(values)
    total = np.maximum(weights @ known, 1e-300)
    filled = np.where(known, values, 0.0)
    mean = weights @ filled / total
    deviation = np.sqrt(weights @ np.where(known, (filled - mean) ** 2, 0.0) / total)
    return mean, np.where(deviation > 0.0, deviation, 1.0)


def _informative(layout: NetworkLayout, states: IntArray, values: FloatArray, weights: FloatArray) -> IntArray:
    """Rows in which something is known."""
    rows = np.flatnonzero(((states >= 0).any(axis=1) | ~np.isnan(values).all(axis=1)) & (weights > 0.0))
    if not len(rows):
        raise ValueError("the data have no row with a known value and a positive weight")
    for v, name in enumerate(layout.discrete):
        count = len(layout.states[name])
        if (states[rows, v] < 0).all() and count > len(rows):
            raise ValueError(f"{name!r} has {count} states and is unknown in all of {len(rows)} rows: give more rows")
    return rows
