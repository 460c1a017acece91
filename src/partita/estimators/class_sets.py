"""Labels of which only a set is known, one for each example."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.validation import check_consistent_length, validate_data

from ..core.arrays.unknown import is_unknown
from ..core.results import FloatArray
from .data import class_codes, sound_input, text_is_named, training_data
from .labels import Labels, encode_flat


def encode_examples(y: Any, count: int, what: str, classes: Any = None) -> Labels:
    """The labels of `count` examples, each a class, a set of classes, or None for any; `what` is the name of an example.

    With `classes`, these are all that there may be.
    """
    if isinstance(y, str | bytes | dict | set | frozenset) or not hasattr(y, "__len__"):
        raise ValueError(f"y must be a list with one label for each {what}, got {type(y).__name__}")
    if len(y) != count:
        raise ValueError(f"X and y must have as many {what}s; got {count} and {len(y)}")
    return encode_flat(list(y), lambda i: f"{what} {i}", classes)


def read_class_sets(estimator: Any, X: Any, y: Any) -> tuple[Any, Any, NDArray[np.bool_]]:
    """X as `training_data` gives it, the sorted classes, and which of them each example may have.

    An entry of y is a class, a set of classes, or None for any.
    """
    if not has_sets(y):
        X, y = training_data(estimator, X, y)
        classes, codes = class_codes(y)
        return X, classes, np.eye(len(classes), dtype=bool)[codes]
    with text_is_named(X):
        X = validate_data(
            *(estimator, sound_input(X)), accept_sparse="csr", dtype=np.float64, order="C", accept_large_sparse=True
        )
    check_consistent_length(X, y)
    labels = encode_examples(y, X.shape[0], "example").compact()
    return X, labels.classes, labels.allowed()


def set_weights(class_weight: Any, classes: Any, allowed: NDArray[np.bool_]) -> FloatArray:
    """What `class_weight` makes of the weight of each example: that of its class, of a set of classes their mean.

    "balanced" counts an example of a set as a share for each of its classes.
    """
    shares = allowed / allowed.sum(axis=1, keepdims=True)
    if isinstance(class_weight, str):
        if class_weight != "balanced":
            raise ValueError(f"class_weight must be None, 'balanced' or a dict by class, got {class_weight!r}")
        return np.asarray(shares @ (len(allowed) / (len(classes) * shares.sum(axis=0))))
    return np.asarray(shares @ compute_class_weight(class_weight, classes=classes, y=classes))


def has_sets(y: Any) -> bool:
    """Whether y may hold sets or None: a list that does, or objects other than strings, which scikit-learn refuses."""
    if not isinstance(getattr(y, "dtype", np.dtype(object)), np.dtype) and hasattr(y, "isna"):
        return bool(np.asarray(y.isna(), dtype=bool).any())  # pandas' own types, with unknown entries
    if isinstance(y, list | tuple):
        return any(isinstance(item, set | frozenset) or is_unknown(item) for item in y)
    if getattr(y, "null_count", 0):  # a property of pyarrow's arrays, a method of polars' series
        return bool(y.null_count() if callable(y.null_count) else y.null_count)
    dtype = getattr(y, "dtype", None)
    if not isinstance(dtype, np.dtype) or y.ndim != 1:  # other kinds of dtype are pandas' own
        return False
    if dtype.kind == "f":  # what pandas makes of integers some of which are not known
        return bool(np.isnan(y).any())
    return dtype.kind == "O" and not all(isinstance(item, str) for item in y)
