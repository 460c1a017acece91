"""Labels that have hidden states: the states of a chain are pairs of the two."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.sparse as sp

from ...core.results import IntArray
from ...core.types import LabelArray
from ...estimators.labels import Labels
from ...estimators.nearest_means import nearest_means


def hidden_labels(labels: Labels, n_hidden: int) -> Labels:
    """What labels say of states, which are ``label * n_hidden + hidden``: a set each, or a state if there is only one."""
    n, names = len(labels.classes), state_names(labels.classes, n_hidden)
    if n_hidden == 1:
        return replace(labels, classes=names)
    given = np.zeros((0, n), bool) if labels.sets is None else labels.sets
    sets = np.repeat(np.vstack([given, np.eye(n, dtype=bool)]), n_hidden, axis=1)
    codes = np.where(labels.codes >= 0, -1 - len(given) - labels.codes, labels.codes)
    return Labels(names, codes, sets)


def state_names(classes: LabelArray, n_hidden: int) -> LabelArray:
    """The pairs (label, hidden state) in order."""
    names = np.empty(len(classes) * n_hidden, object)
    names[:] = [(label, h) for label in classes.tolist() for h in range(n_hidden)]
    return names


def hidden_pairs(pairs: IntArray, n_hidden: int, both: bool) -> IntArray:
    """Pairs whose second entry, or `both`, are labels, once for every hidden state of these."""
    h = np.arange(n_hidden)
    first = pairs[:, 0, None, None] * n_hidden + h[:, None] if both else pairs[:, 0, None, None]
    second = pairs[:, 1, None, None] * n_hidden + h
    return np.stack(np.broadcast_arrays(first, second), axis=-1).reshape(-1, 2)


def clusters(X: sp.csr_matrix, groups: IntArray, n_hidden: int, random: np.random.Generator) -> IntArray:
    """The number of the k-means cluster of every row of X within its group; 0 where the group is below zero."""
    out = np.zeros(len(groups), np.int64)
    for group in np.unique(groups[groups >= 0]):
        rows = np.flatnonzero(groups == group)
        out[rows] = nearest_means(X[rows], n_hidden, random)
    return out


def parts(starts: IntArray, n_positions: int, n_hidden: int) -> IntArray:
    """In which of `n_hidden` equal parts of its piece each position is; pieces begin at `starts`."""
    lengths = np.diff(np.append(starts, n_positions))
    within = np.arange(n_positions) - np.repeat(starts, lengths)
    return np.asarray(within * n_hidden // np.repeat(lengths, lengths), dtype=np.int64)
