"""Training data as users give them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from ..core.arrays.names import listed
from ..core.arrays.sparse import sound_csr
from ..core.errors import DataWarning
from ..core.interrupts import is_interrupt
from ..core.warn import warn

#: Span of integer labels up to which they are counted, and number from which that is worth it.
FEW_LABELS = 1000
#: How the types of dates and times begin, of NumPy, pandas, polars and pyarrow.
TIMES = ("date", "time", "duration", "period")


def training_data(estimator: Any, X: Any, y: Any) -> tuple[Any, Any]:
    """X as a float64 C-contiguous array or CSR matrix, and y as a vector of labels.

    Plain arrays that are already right are recognised at once: scikit-learn's own checks take longer than a small fit.
    Everything else, and everything wrong, goes through those checks and their messages.
    """
    if _plain(X, y):
        estimator.n_features_in_ = X.shape[1]
        estimator.__dict__.pop("feature_names_in_", None)
        return X, y
    with text_is_named(X):
        X, y = validate_data(
            *(estimator, sound_input(X), plain_labels(y)),
            accept_sparse="csr",
            dtype=np.float64,
            order="C",
            accept_large_sparse=True,
            ensure_min_features=1,
        )
    check_classification_targets(y)
    return X, y


def plain_labels(y: Any) -> Any:
    """Labels of the types they were given: of pandas' own integers and booleans scikit-learn makes floating numbers.

    Strings and numbers in one list are an error: NumPy would make strings of all. So is ``pd.NA``, at which NumPy fails.
    """
    if isinstance(y, list | tuple) or (getattr(y, "dtype", None) == np.dtype(object) and y.ndim == 1):
        _refuse_unknown([type(item).__name__ == "NAType" for item in y])
    if isinstance(y, list | tuple):
        kinds = set(map(type, y))
        if (
            len(kinds) > 1
            and any(issubclass(kind, str) for kind in kinds)
            and not all(issubclass(kind, str) for kind in kinds)
        ):
            names = ", ".join(sorted(kind.__name__ for kind in kinds))
            raise ValueError(f"y must hold labels of one type, got {names}: make strings, or numbers, of all")
        return y
    dtype = getattr(y, "dtype", None)
    if dtype is None or isinstance(dtype, np.dtype) or not hasattr(y, "isna"):
        return y
    _refuse_unknown(y.isna())
    kind = getattr(dtype, "kind", "O")
    return np.asarray(y, dtype=bool if kind == "b" else np.int64 if kind == "i" else None)


def _refuse_unknown(unknown: Any) -> None:
    unknown = np.asarray(unknown, dtype=bool)
    if unknown.any():
        raise ValueError(
            f"y is unknown in {int(unknown.sum())} of {len(unknown)} examples, the first in row {int(np.argmax(unknown))}: "
            "leave them out (fit takes None)"
        )


def warn_weightless(classes: Any, codes: Any, weights: Any) -> None:
    """A DataWarning for classes all of whose examples have weight zero: a free intercept takes their probability to zero."""
    totals = np.bincount(codes, weights=weights, minlength=len(classes))
    if not totals.all():
        warn(
            f"every example of class {listed(classes[totals == 0.0].tolist())} has weight zero: its probability tends to "
            "zero, as far as tol goes. Leave out those examples, or give them weight",
            DataWarning,
        )


@contextmanager
def text_is_named(X: Any) -> Iterator[None]:
    """Tell which column of a frame holds text, where NumPy only says that a string is no number."""
    try:
        yield
    except ValueError as error:
        if "could not convert string to float" not in str(error) or not hasattr(X, "columns"):
            raise
        for name in _names(X):
            try:
                np.asarray(X[name], dtype=np.float64)
            except (TypeError, ValueError):
                raise ValueError(
                    f"column {name!r} of X holds text ({error}): make numbers of it, for instance by OneHotEncoder"
                ) from None
        raise


def prediction_data(estimator: Any, X: Any) -> Any:
    """X for a fitted estimator as a float64 array or CSR matrix, its columns checked against those of the fit."""
    with text_is_named(X):
        return validate_data(
            *(estimator, sound_input(X)), accept_sparse="csr", dtype=np.float64, reset=False, accept_large_sparse=True
        )


def sound_input(X: Any) -> Any:
    """X, or for a sparse matrix a CSR matrix that is whole: SciPy and scikit-learn trust its indices as kernels do.

    Dates and times are refused: NumPy takes some for numbers, of nanoseconds since 1970.
    """
    if sp.issparse(X):
        return sound_csr("X", X)
    refuse_times("X", X)
    return X


def refuse_times(what: str, X: Any) -> None:
    """Raise a ValueError for an array, or a column of a frame, of dates or times."""
    if hasattr(X, "columns"):
        types = X.schema.types if hasattr(X, "column_names") else getattr(X, "dtypes", ())
        columns = [(f"column {name!r} of {what}", kind) for name, kind in zip(_names(X), types, strict=False)]
    else:
        columns = [(what, getattr(X, "dtype", ""))]
    for name, kind in columns:
        if str(kind).lower().startswith(TIMES):
            raise ValueError(f"{name} holds dates or times: make numbers of it, such as days since the first")


def _names(frame: Any) -> Any:
    """Names of the columns of a frame; in tables of pyarrow, `columns` are something else."""
    return getattr(frame, "column_names", frame.columns)


def class_codes(y: Any) -> tuple[Any, Any]:
    """The sorted classes and the position of each label among them: ``np.unique`` without its sort for small integers."""
    if y.dtype.kind not in "iu" or y.dtype == np.uint64 or y.ndim != 1 or len(y) < FEW_LABELS:
        return np.unique(y, return_inverse=True)
    low, high = int(y.min()), int(y.max())
    if high - low >= FEW_LABELS:
        return np.unique(y, return_inverse=True)
    shifted = y.astype(np.int64) - low
    present = np.bincount(shifted, minlength=high - low + 1) > 0
    found = np.flatnonzero(present)
    return (found + low).astype(y.dtype), (np.cumsum(present) - 1)[shifted]


def _plain(X: Any, y: Any) -> bool:
    return (
        type(X) is np.ndarray
        and type(y) is np.ndarray
        and X.ndim == 2
        and y.ndim == 1
        and X.dtype == np.float64
        and X.flags.c_contiguous
        and y.dtype.kind in "iubU"
        and len(X) == len(y)
        and X.size > 0
        and bool(np.isfinite(X.sum()))
    )


class unchanged_on_failure:
    """Put every attribute of the estimator back if the block raises, an interrupt included.

    No generator: one that an interrupt keeps from its end is closed later, and would put things back then.
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator: Any = estimator
        self.before: dict[str, Any] = dict(estimator.__dict__)

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is not None:
            self.estimator.__dict__ = self.before  # in one step: a second interrupt finds all of it or nothing
            if is_interrupt(error):
                raise KeyboardInterrupt from error


class ListInput:
    """Mixin for estimators: X is a list of examples, not a table, and y is needed."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.input_tags.two_d_array = False
        tags.target_tags.required = True
        return tags
