"""Sequences through best labellings only. Their entropy is a sum over pairs and single labels: log Z is right up to the
certificate."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...core.memory import check_memory
from ...core.results import FloatArray
from ...inference.black_box import Example
from ...inference.entropies import TableEntropy


def sequence_example(chain: Any, E: FloatArray, A: FloatArray, name: str) -> Example:
    """A `Chain` of one sequence with checked potentials of labels (positions, labels) and of pairs (positions, labels,
    labels). Its parts are labels at positions, then pairs of labels at positions from the second."""
    T, n = E.shape
    check_memory(f"pairs of {n} labels", 64 * T * n * n, "Give fewer or shorter sequences at a time")

    def asked(scores: FloatArray) -> tuple[FloatArray, FloatArray]:
        return split_parts(scores, T, n)

    def point(y: Any) -> FloatArray:
        return joined_parts(*chain.indicators(y))

    beside = (np.arange(T) > 0).astype(np.float64) + (np.arange(T) < T - 1)
    counts = np.concatenate([np.repeat(1.0 - beside, n), np.ones((T - 1) * n * n)])
    entropy = TableEntropy(counts, exact=True)
    return Example(joined_parts(E, A), entropy, asked, point, lambda scores: point(chain.argmax(asked(scores))[0]), name)


def joined_parts(unary: FloatArray, pairwise: FloatArray) -> FloatArray:
    """Numbers of labels and of pairs as those of parts."""
    return np.concatenate([unary.ravel(), pairwise[1:].ravel()])


def split_parts(parts: FloatArray, T: int, n: int) -> tuple[FloatArray, FloatArray]:
    """Numbers of parts as those of labels and of pairs, which are zero at the first position."""
    pairwise = np.zeros((T, n, n))
    pairwise[1:] = parts[T * n :].reshape(T - 1, n, n)
    return parts[: T * n].reshape(T, n).copy(), pairwise
