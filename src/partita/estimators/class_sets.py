"""Labels of which only a set is known."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length, validate_data

from .data import class_codes, training_data


def read_class_sets(estimator: Any, X: Any, y: Any) -> tuple[Any, Any, NDArray[np.bool_]]:
    """X as `training_data` gives it, the sorted classes, and which of them each example may have.

    An entry of y is a class, a set of classes, or None for any.
    """
    if not _has_sets(y):
        X, y = training_data(estimator, X, y)
        classes, codes = class_codes(y)
        return X, classes, np.eye(len(classes), dtype=bool)[codes]
    X = validate_data(estimator, X, accept_sparse="csr", dtype=np.float64, order="C", accept_large_sparse=True)
    check_consistent_length(X, y)
    entries = [None if item is None else item if isinstance(item, set | frozenset) else {item} for item in y]
    if any(entry is not None and not entry for entry in entries):
        raise ValueError("y has an empty set: expected a class, a set of classes, or None where nothing is known")
    try:
        found: list[Any] = sorted(set().union(*(entry for entry in entries if entry is not None)))
    except TypeError as error:
        raise ValueError(f"y must hold classes of one kind, all numbers or all strings: {error}") from error
    place = {label: k for k, label in enumerate(found)}
    allowed = np.zeros((len(entries), len(found)), dtype=bool)
    for row, entry in zip(allowed, entries, strict=True):
        row[slice(None) if entry is None else [place[label] for label in entry]] = True
    return X, np.array(found), allowed


def _has_sets(y: Any) -> bool:
    objects = isinstance(y, list | tuple) or getattr(getattr(y, "dtype", None), "kind", "") == "O"
    return objects and any(item is None or isinstance(item, set | frozenset) for item in y)
