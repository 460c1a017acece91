"""What no labelling of a chain may have, as tables."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...core.results import FloatArray, IntArray

BoolArray = NDArray[np.bool_]


class Forbidden(NamedTuple):
    """Labels that may not follow each other, not stand first, and not stand last.

    Parameters
    ----------
    transitions : array of bool of shape (n_labels, n_labels), optional
        Row: the label before.
    starts, ends : arrays of bool of shape (n_labels,), optional
        None, everywhere, if nothing of the kind is forbidden.
    """

    transitions: BoolArray | None = None
    starts: BoolArray | None = None
    ends: BoolArray | None = None

    @property
    def nothing(self) -> bool:
        """Whether there is no table at all."""
        return self.transitions is None and self.starts is None and self.ends is None

    def mask(self, unary: FloatArray, pairwise: FloatArray, offsets: IntArray) -> None:
        """Set the scores of what is forbidden to -inf, in place. No sequence is empty."""
        if self.transitions is not None:
            pairwise[self.transitions] = -np.inf
        for rule, rows in ((self.starts, offsets[:-1]), (self.ends, offsets[1:] - 1)):
            if rule is not None:
                unary[np.ix_(rows, np.flatnonzero(rule))] = -np.inf
