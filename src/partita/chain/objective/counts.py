"""Known labels as arrays: indicators of labels, and numbers of transitions."""

from __future__ import annotations

import numpy as np

from ...core.results import FloatArray, IntArray


def observed(y: IntArray, offsets: IntArray, weights: FloatArray, n_labels: int) -> tuple[FloatArray, FloatArray]:
    """Indicators of the labels (positions, labels) and numbers of transitions, weighted."""
    per_position = np.repeat(weights, np.diff(offsets))
    return indicators(y, offsets, per_position, per_position, n_labels)


def indicators(
    y: IntArray, offsets: IntArray, labels: FloatArray, moves: FloatArray, n_labels: int
) -> tuple[FloatArray, FloatArray]:
    """The same with a weight for the label of each position, and one for the transition into it."""
    R = np.zeros((len(y), n_labels))
    R[np.arange(len(y)), y] = labels
    return R, transition_counts(y, offsets, moves, n_labels)


def transition_counts(y: IntArray, offsets: IntArray, moves: FloatArray, n_labels: int) -> FloatArray:
    """Numbers of transitions, with a weight for that into each position."""
    inner = np.ones(len(y), bool)
    inner[offsets[:-1]] = False
    where = np.flatnonzero(inner)
    pairs = y[where - 1].astype(np.int64) * n_labels + y[where]
    C = np.bincount(pairs, weights=moves[where], minlength=n_labels**2).reshape(n_labels, n_labels)
    return np.asarray(C, dtype=np.float64)
