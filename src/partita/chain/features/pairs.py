"""Which attributes and labels, and which pairs of neighbouring labels, deserve a weight."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from ...core.results import IntArray


def label_indicator(y: IntArray, n_labels: int, sets: Any = None) -> sp.csr_matrix:
    """A row per position with ones for the label that stands there, or for each of a set; none where nothing is known.

    Codes below zero are rows of `sets`, -1 for the first; a row that allows every label says nothing.
    """
    rows, columns = np.flatnonzero(y >= 0), y[y >= 0]
    if sets is not None:
        table = sets & ~sets.all(axis=1, keepdims=True)
        hidden = np.flatnonzero(y < 0)
        where, label = np.nonzero(table[-1 - y[hidden]])
        rows, columns = np.concatenate([rows, hidden[where]]), np.concatenate([columns, label])
    return sp.csr_matrix((np.ones(len(rows)), (rows, columns)), shape=(len(y), n_labels))


def state_pairs(X: Any, labels: sp.csr_matrix, every: bool, minimum: float) -> tuple[IntArray, IntArray]:
    """Pairs of an attribute and a label: those that occur together, or every label with every attribute that occurs.

    Of those, the ones over which the values of the attribute add up to at least `minimum`; -inf keeps all.
    """
    n = labels.shape[1]
    if every:
        used = np.flatnonzero(np.bincount(X.indices, minlength=X.shape[1]))
        attribute, label = np.repeat(used, n), np.tile(np.arange(n), len(used))
    else:
        pattern = sp.csr_matrix((np.ones(X.nnz), X.indices, X.indptr), shape=X.shape)
        seen = (labels.T.tocsr() @ pattern).tocsc()
        seen.sort_indices()
        attribute, label = np.repeat(np.arange(X.shape[1]), np.diff(seen.indptr)), seen.indices.astype(np.int64)
    if minimum > 0.0 or (minimum > -np.inf and X.data.min(initial=0.0) < 0.0):
        totals = (X.T.tocsr() @ labels).tocsr()
        enough = np.asarray(totals[attribute, label]).ravel() >= minimum
        attribute, label = attribute[enough], label[enough]
    return attribute, label


def label_pairs(labels: sp.csr_matrix, offsets: IntArray, every: bool, minimum: float) -> IntArray:
    """Pairs of labels that follow each other, or all pairs; of those, the ones that do at least `minimum` times."""
    inner = np.ones(labels.shape[0], bool)
    inner[offsets[:-1]] = False
    here = np.flatnonzero(inner)
    counts = (labels[here - 1].T @ labels[here]).toarray()
    return np.argwhere(counts >= (minimum if every else max(1, minimum)))
