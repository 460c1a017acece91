"""The k best dependency trees of a sentence, by best trees under restrictions (Lawler's partition)."""

from __future__ import annotations

import numpy as np

from ...core.results import BoolArray, FloatArray, IntArray
from ...inference.kbest import k_best
from . import sums
from .dependency_trees import DependencyTrees


def k_best_trees(n_words: int, potentials: FloatArray, k: int, single_root: bool) -> tuple[IntArray, FloatArray]:
    """At most k trees, as heads of words, and their scores, best first; `potentials` are those of the pairs of a sentence.

    Restrictions are on the head of a word: to one, or other than some. Each is a question to Chu and Liu's, and Edmonds',
    algorithm, and those of a split are asked together.
    """

    def solve(allowed: BoolArray) -> tuple[IntArray, FloatArray]:
        trees = DependencyTrees([n_words] * len(allowed), single_root, 1)
        flat = np.where(allowed, potentials, -np.inf).ravel()
        heads, found = sums.best_heads(trees.graphs, flat, trees.workers)
        heads = heads.reshape(len(allowed), n_words)
        number = np.arange(1, n_words + 1)
        own = heads - (heads > number)  # of the heads that a word may have
        values = np.full(len(allowed), -np.inf)
        for i in np.flatnonzero(found):
            values[i] = potentials[np.arange(n_words) * n_words + own[i]].sum()
        return np.where(np.asarray(found)[:, None], own, 0), values

    own, scores = k_best(np.full(n_words, n_words), solve, k)
    return own + (own >= np.arange(1, n_words + 1)), scores
