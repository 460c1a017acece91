"""Sequences that a chain learns from: what is left once those without a position or a weight are gone."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...core.results import FloatArray, IntArray
from ...estimators.labels import Labels, position_of
from .sequences import ATTRIBUTES, SequenceData


@dataclass(frozen=True)
class Examples:
    """Sequences with labels, each with at least one position and a positive weight.

    Attributes
    ----------
    data : SequenceData
    labels : Labels
        Of all positions.
    weights : array
        One for each sequence.
    numbers : array of int
        Their numbers among the sequences that were given.
    owns_names : bool
        Whether the columns were made of tokens here: a model may then forget the names that have no weight.
    """

    data: SequenceData
    labels: Labels
    weights: FloatArray
    numbers: IntArray
    owns_names: bool = False

    @classmethod
    def of(cls, data: SequenceData, labels: Labels, weights: FloatArray, given: object = None) -> Examples:
        """The sequences that are not empty and have a positive weight; `given` is what the user passed as X."""
        full = (data.lengths > 0) & (weights > 0.0)
        if not full.any():
            raise ValueError("X has no sequence with a position and a positive weight")
        numbers = np.flatnonzero(full)
        data = SequenceData.unchecked(data.X, data.offsets, labels, data.attributes, data.kind)
        if not full.all():
            data, weights = data.take(numbers), weights[full]
        assert data.labels is not None
        own = data.kind == ATTRIBUTES and not isinstance(given, SequenceData)
        return cls(data, data.labels, weights, numbers, own)

    @property
    def n_positions(self) -> int:
        """Of all sequences."""
        return int(self.data.offsets[-1])

    def compact(self) -> Examples:
        """Without labels that occur nowhere."""
        return replace(self, labels=self.labels.compact())

    def where(self, position: int) -> str:
        """The name of a position in y, for messages."""
        return f"{position_of(position, self.data.offsets, self.numbers)} of y"
