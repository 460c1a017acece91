"""Arbitrary feature vectors for every (example, label) pair."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...core.parallel import Workers
from ...core.results import FloatArray
from ...numerics import dense


class LabelFeatures:
    """Potentials ``s = f(x, y) . theta`` for features given label by label.

    Parameters
    ----------
    features : array of shape (examples, labels, d), or (sum of label counts, d)
        With label sets that differ between examples, the rows of an example lie together and `counts` says how many.
    counts : array of int, optional
        Number of labels of each example, for the second form.

    Examples
    --------
    >>> import numpy as np
    >>> from partita.features import LabelFeatures
    >>> LabelFeatures(np.ones((2, 3, 4))).forward(np.arange(4.0))
    array([6., 6., 6., 6., 6., 6.])
    """

    def __init__(self, features: ArrayLike, counts: ArrayLike | None = None, workers: Workers | None = None) -> None:
        F = np.asarray(features, dtype=np.float64)
        if counts is None:
            if F.ndim != 3:
                raise ValueError(f"features must have shape (examples, labels, d), or give counts; got {F.shape}")
            self.counts: NDArray[np.int64] = np.full(F.shape[0], F.shape[1], np.int64)
            F = F.reshape(-1, F.shape[2])
        else:
            self.counts = np.asarray(counts, dtype=np.int64)
            if F.ndim != 2 or self.counts.ndim != 1 or self.counts.sum() != len(F):
                raise ValueError("features must have shape (counts.sum(), d)")
        if F.size == 0 or self.counts.min() < 1:
            raise ValueError("features is empty, or an example has no label")
        if not np.isfinite(F).all():
            raise ValueError("features must not contain NaN or infinity")
        self.F = np.ascontiguousarray(F)
        self.n_examples: int = len(self.counts)
        self.size: int = self.F.shape[1]
        self.workers: Workers = workers or Workers(1)

    def _ranges(self) -> list[tuple[int, int]]:
        return self.workers.ranges(len(self.F), float(self.F.size))

    def forward(self, theta: FloatArray) -> FloatArray:
        """Flat potentials, the labels of an example together."""
        U = np.empty((len(self.F), 1))
        arguments = (self.F, theta.reshape(1, -1), np.zeros(1))
        self.workers.run(dense.forward, [(*arguments, lo, hi, U) for lo, hi in self._ranges()])
        return U.ravel()

    def adjoint(self, r: FloatArray) -> FloatArray:
        """sum r[i, y] f(x_i, y)."""
        ranges = self._ranges()
        G, g = np.zeros((len(ranges), 1, self.size)), np.zeros((len(ranges), 1))
        column = r.reshape(-1, 1)
        tasks: list[tuple[Any, ...]] = [(self.F, column, lo, hi, G[c], g[c]) for c, (lo, hi) in enumerate(ranges)]
        self.workers.run(dense.adjoint, tasks)
        return np.asarray(G.sum(0)[0])

    def remove_mean(self, flat: FloatArray) -> None:
        """Nothing: labels share all weights, so that none are the same for every label (see `LinearMap`)."""

    def outer(self, examples: NDArray[np.int64], roots: FloatArray) -> FloatArray:
        """Row m is ``sum_y roots[m, y] f(x, y)`` of example ``examples[m]``; `roots` is as wide as the largest set."""
        first = np.concatenate(([0], np.cumsum(self.counts)))[:-1]
        out = np.zeros((len(examples), self.size))
        for k in range(roots.shape[1]):
            live = self.counts[examples] > k
            out[live] += roots[live, k, None] * self.F[first[examples[live]] + k]
        return out

    def magnitudes(self) -> tuple[FloatArray, FloatArray]:
        """For every parameter, the sum of squares of its feature and how many of its values are not zero."""
        return np.einsum("ij,ij->j", self.F, self.F), np.count_nonzero(self.F, axis=0).astype(np.float64)
