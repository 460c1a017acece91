"""Tables of words, with labels in one column: joined, cut, and checked before anything is learned from them."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ...core.arrays.columns import Columns
from ...estimators.labels import column_labels
from ..features.attribute_index import AttributeIndex
from .forbidden import Rules, check_possible, forbidden_tables


def join_columns(tables: Sequence[Columns]) -> Columns:
    """The sequences of several files with the same number of columns, as of one."""
    first = tables[0]
    for other in tables[1:]:
        if other.n_columns != first.n_columns:
            raise ValueError(f"{other.where(0)}: {other.n_columns} columns, but {first.source} has {first.n_columns}")
    if len(tables) == 1:
        return first
    codes, vocabularies = [], []
    for c in range(first.n_columns):
        index = AttributeIndex()
        codes.append(np.concatenate([index.number(t.vocabularies[c].tolist())[t.codes[:, c]] for t in tables]))
        vocabularies.append(np.array(index.names, object))
    offsets = np.concatenate([[0], np.cumsum(np.concatenate([np.diff(t.offsets) for t in tables]))])
    lines = np.concatenate([t.line_numbers for t in tables])
    names = [t.source for t in tables]
    parts = tuple(zip(np.cumsum([0, *(t.n_tokens for t in tables[:-1])]).tolist(), names, strict=True))
    return Columns(np.column_stack(codes), tuple(vocabularies), offsets, lines, ", ".join(names), parts)


def check_labels(columns: Columns, label: int, classes: ArrayLike) -> None:
    """Raise a ValueError that names file and line if a label is not among the classes."""
    c = columns.index(label)
    known = set(np.asarray(classes).tolist())
    unknown = np.array([word not in known for word in columns.vocabularies[c]])
    if unknown.any():
        token = int(np.argmax(unknown[columns.codes[:, c]]))
        raise ValueError(f"{columns.where(token)}: label {columns.values(c)[token]!r} is unknown to the model")


def check_allowed(columns: Columns, label: int, forbidden: Rules) -> None:
    """Raise a ValueError that names file and line if labels break a rule (see `ChainCRF`)."""
    labels = column_labels(columns, label)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # pairs of labels that are not here: the model warns of those in no training data
        tables = forbidden_tables(forbidden, labels.classes)
    check_possible(labels, columns.offsets, tables, columns.where)


def select_columns(columns: Columns, chosen: Sequence[int]) -> Columns:
    """Some of the columns."""
    return replace(columns, codes=columns.codes[:, chosen], vocabularies=tuple(columns.vocabularies[c] for c in chosen))


def check_width(columns: Columns, widths: Sequence[int], reason: str) -> None:
    """Raise a ValueError that names file and line unless there is one of some numbers of columns."""
    if columns.n_tokens and columns.n_columns not in widths:
        expected = " or ".join(map(str, widths))
        raise ValueError(f"{columns.where(0)}: {columns.n_columns} columns, but {expected} expected: {reason}")
