"""Checks of user input. Every message says which parameter, what came and what was expected."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from typing import Any

import numpy as np

from .contracts.capabilities import LOW_RANK


def check_real(name: str, value: Any, *, minimum: float = -np.inf, strict: bool = False, finite: bool = True) -> float:
    """Return `value` as a float, or raise a ValueError that names it."""
    if type(value) is float and minimum < value < np.inf:  # nearly always, and these checks are part of small fits
        return value
    bound = "" if minimum == -np.inf else f" {'>' if strict else '>='} {minimum:g}"
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise ValueError(f"{name} must be a number{bound}, got {value!r} ({type(value).__name__})")
    number = float(value)
    if np.isnan(number) or (finite and np.isinf(number)) or number < minimum or (strict and number == minimum):
        raise ValueError(f"{name} must be a{' finite' if finite else ''} number{bound}, got {value!r}")
    return number


def is_whole(value: Any) -> bool:
    """Whether a value is an integer, of Python or NumPy, and no bool."""
    return type(value) is int or (isinstance(value, numbers.Integral) and not isinstance(value, bool))


def check_count(name: str, value: Any, *, minimum: int = 0) -> int:
    """Return `value` as an int, or raise a ValueError that names it."""
    if not is_whole(value) or value < minimum:
        raise ValueError(f"{name} must be an integer >= {minimum}, got {value!r}")
    return int(value)


def check_flag(name: str, value: Any) -> bool:
    """Return `value` as a bool, or raise a ValueError that names it."""
    if value is not True and value is not False and not isinstance(value, np.bool_):
        raise ValueError(f"{name} must be True or False, got {value!r}")
    return bool(value)


def check_verbose(value: Any) -> None:
    """Raise a ValueError unless `value` is True, False or a count."""
    check_count("verbose", int(value) if isinstance(value, bool) else value)


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, or raise a ValueError that lists them."""
    if not isinstance(value, str) or value not in choices:
        options = ", ".join(repr(choice) for choice in choices)
        raise ValueError(f"{name} must be one of {options}; got {value!r}")
    return value


def check_no_options(engine: str, options: Mapping[str, Any]) -> None:
    """Raise a ValueError that names options given to an engine that has none."""
    if options:
        raise ValueError(f"engine {engine!r} has no options, got {', '.join(sorted(options))}")


def check_low_rank(method: Any, allow_invalid: bool) -> str:
    """Return the name of a low-rank bound; the first paper's needs `allow_invalid`, because it is no bound."""
    check_choice("low_rank", method, LOW_RANK)
    if method == "original" and not allow_invalid:
        raise ValueError(
            "low_rank='original' (Algorithm 4 of the majorization paper) is not an upper bound: with features (0,0), (1,1) "
            "and rank 1 it gives 1.943 where log Z is 2.127. Use 'lanczos' or 'exact', or pass allow_invalid=True"
        )
    return str(method)


def check_weights(name: str, values: Any, count: int) -> np.ndarray:
    """Return non-negative finite weights as float64 of shape (count,); None gives ones."""
    if values is None:
        return np.ones(count)
    if isinstance(values, numbers.Real):
        values = np.full(count, float(values))
    weights = np.array(values, dtype=np.float64, order="C")  # a copy: objectives keep it, and callers change theirs
    if weights.shape != (count,):
        raise ValueError(f"{name} must have shape ({count},), one entry per example; got {weights.shape}")
    if not np.all(np.isfinite(weights)) or weights.min(initial=0.0) < 0.0:
        raise ValueError(f"{name} must be finite and non-negative")
    if not weights.sum() > 0.0:
        raise ValueError(f"{name} must have a positive sum; every weight is zero")
    return weights


def check_level(level: Any) -> None:
    """A level of confidence is between 0 and 1."""
    if not 0.0 < check_real("level", level) < 1.0:
        raise ValueError(f"level must be in (0, 1), got {level!r}")
