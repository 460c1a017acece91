"""The door for estimators that come from files: what a fitted attribute must be, said in one line each.

A file is a stranger's input, and compiled kernels trust what they are given. Each check raises a `ModelFileError` that names
the attribute, what it is and what it must be.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..core.errors import ModelFileError
from ..core.results import Status, Trace

#: Whole numbers in files end here: beyond, they are no longer exact in the arrays they go into.
LARGEST = 1 << 53
#: Sums of products with weights beyond this overflow, and their differences are NaN; no fit ends there.
LARGEST_WEIGHT = 1e150
#: What `check_run` looks at.
RUN = ("n_iter_", "trace_", "status_")


def is_fitted(model: Any, *required: str) -> bool:
    """Whether there is anything fitted; if there is, all that is required must be."""
    if not any(name.endswith("_") and not name.startswith("__") for name in vars(model)):
        return False
    for name in required:
        if name not in vars(model):
            raise ModelFileError(f"{name} is missing")
    return True


def check_array(
    model: Any, name: str, shape: tuple[int | None, ...], dtype: Any = np.float64, finite: bool = True
) -> np.ndarray:
    """An array of exactly this type; None in a shape is any length. `finite`: no NaN, no inf, nothing that leads there."""
    value = getattr(model, name)
    if not isinstance(value, np.ndarray):
        raise _wrong(name, "an array", value)
    if value.dtype != dtype:
        raise ModelFileError(f"{name} must be an array of {np.dtype(dtype)}, got {value.dtype}")
    if value.ndim != len(shape) or any(s is not None and s != n for s, n in zip(shape, value.shape, strict=True)):
        wanted = ", ".join("any" if s is None else str(s) for s in shape)
        raise ModelFileError(f"{name} must have shape ({wanted}), got {value.shape}")
    if finite and value.dtype.kind == "f" and value.size and not max(value.max(), -value.min()) <= LARGEST_WEIGHT:
        wrong = value.ravel()[int(np.argmin(np.abs(value) <= LARGEST_WEIGHT))]
        raise ModelFileError(f"{name} must hold finite numbers, at most {LARGEST_WEIGHT:g}, got {wrong}")
    if not value.flags.c_contiguous:
        setattr(model, name, np.ascontiguousarray(value))
    return value


def check_integers(model: Any, name: str, shape: tuple[int | None, ...], least: int, below: int = LARGEST) -> np.ndarray:
    """An array of integers from `least` to `below` - 1, of any width."""
    value = getattr(model, name)
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "iu":
        raise _wrong(name, "an array of integers", value)
    check_array(model, name, shape, value.dtype)
    if value.size and (int(value.min()) < least or int(value.max()) >= below):
        raise ModelFileError(f"{name} must be from {least} to {below - 1}, got {value.min()} to {value.max()}")
    return value


def check_log_weights(model: Any, name: str, count: int) -> np.ndarray:
    """Logarithms of weights, at least one of which is not zero."""
    value = check_array(model, name, (count,), finite=False)
    if np.isnan(value).any() or (value == np.inf).any() or not (value > -np.inf).any():
        raise ModelFileError(f"{name} must hold logarithms of weights: no NaN, no inf, not all of them -inf")
    return value


def check_labels(name: str, value: Any, least: int = 1, floats: bool = False) -> Any:
    """Labels in an array: different, sorted, of one kind."""
    if not isinstance(value, np.ndarray) or value.ndim != 1:
        raise _wrong(name, "an array of labels", value)
    strings = value.dtype == object and all(isinstance(label, str) for label in value.tolist())
    if not (strings or value.dtype.kind in ("biuUf" if floats else "biuU")):
        raise ModelFileError(f"{name} must hold strings, integers or booleans, got {value.dtype}")
    if len(value) < least:
        raise ModelFileError(f"{name} must hold at least {least} labels, got {len(value)}")
    if not (value[:-1] < value[1:]).all():
        raise ModelFileError(f"{name} must be sorted, each label once")
    return value


def check_whole(model: Any, name: str, least: int = 0, most: int = LARGEST) -> int:
    """A whole number."""
    value: Any = getattr(model, name)
    if type(value) is not int or not least <= value <= most:
        raise _wrong(name, f"a whole number from {least} to {most}", value)
    return value


def check_number(model: Any, name: str, least: float = -math.inf) -> float:
    """A number, perhaps infinite, not NaN."""
    value = getattr(model, name)
    if not isinstance(value, int | float) or isinstance(value, bool) or not value >= least:
        raise _wrong(name, "a number" if least == -math.inf else f"a number >= {least:g}", value)
    return float(value)


def check_bool(model: Any, name: str) -> bool:
    """True or False."""
    value = getattr(model, name)
    if not isinstance(value, bool):
        raise _wrong(name, "true or false", value)
    return value


def check_text(model: Any, name: str) -> str:
    """A string."""
    value = getattr(model, name)
    if not isinstance(value, str):
        raise _wrong(name, "a string", value)
    return value


def check_run(model: Any) -> None:
    """What every solver leaves behind: iterations, a trace, a status."""
    check_whole(model, "n_iter_")
    if not isinstance(model.status_, Status):
        raise _wrong("status_", "a status", model.status_)
    trace = model.trace_
    if not isinstance(trace, Trace):
        raise _wrong("trace_", "a trace", trace)
    for name, column in vars(trace).items():
        if column.dtype != np.float64 or column.shape != trace.objective.shape or column.ndim != 1:
            raise ModelFileError(f"trace_.{name} must be a vector of float64, as long as trace_.objective")
    if hasattr(model, "objectives_"):
        check_array(model, "objectives_", (None,), finite=False)


def check_columns(model: Any) -> int:
    """The number of features, and their names if there are any."""
    count = check_whole(model, "n_features_in_")
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        good = isinstance(names, np.ndarray) and names.shape == (count,) and all(isinstance(n, str) for n in names.tolist())
        if not good:
            raise ModelFileError(f"feature_names_in_ must hold {count} names, as n_features_in_ says")
    return count


def _wrong(name: str, wanted: str, value: Any) -> ModelFileError:
    shown = repr(value)
    shown = shown if len(shown) <= 60 else f"{shown[:57]}…"
    return ModelFileError(f"{name} must be {wanted}, got {shown} ({type(value).__name__})")
