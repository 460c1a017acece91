"""Chains whose labels are not all known: which, and the sums over the labellings that agree with what is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ...core.parallel import Workers
from ...core.results import FloatArray, IntArray
from ..structure.forward_backward import ChainSums


@dataclass(frozen=True)
class Partial:
    """The chains with unknown labels: their numbers, rows, offsets among those, -inf for labels ruled out, and weights."""

    chains: IntArray
    rows: IntArray
    offsets: IntArray
    clamp: FloatArray
    weights: FloatArray

    @classmethod
    def of(cls, y: IntArray, sets: Any, offsets: IntArray, weights: FloatArray) -> Partial | None:
        """What is known of chains whose labels are ``-1 - k`` where only row k of `sets` is known; None if all are known."""
        unknown = np.flatnonzero(np.add.reduceat(y < 0, offsets[:-1]))
        if not len(unknown):
            return None
        rows = np.concatenate([np.arange(*offsets[s : s + 2]) for s in unknown])
        allowed = np.zeros((len(rows), sets.shape[1]), bool)
        labels = y[rows]
        known = labels >= 0
        allowed[np.flatnonzero(known), labels[known]] = True
        allowed[~known] = sets[-1 - labels[~known]]
        ends = np.concatenate(([0], np.cumsum(np.diff(offsets)[unknown])))
        return cls(unknown, rows, ends, np.where(allowed, 0.0, -np.inf), weights[unknown])

    def sums(self, U: FloatArray, A: FloatArray, workers: Workers, weights: FloatArray | None = None) -> ChainSums:
        """Sums over the labellings that agree, at scores U of these rows."""
        return ChainSums(U + self.clamp, A, self.offsets, self.weights if weights is None else weights, workers)

    def only(self, k: int) -> Partial:
        """The k-th of these chains alone."""
        part = slice(int(self.offsets[k]), int(self.offsets[k + 1]))
        ends = self.offsets[k : k + 2] - self.offsets[k]
        return Partial(self.chains[k : k + 1], self.rows[part], ends, self.clamp[part], self.weights[k : k + 1])
