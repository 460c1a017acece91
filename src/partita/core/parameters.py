"""Parameters of constructors, declared once with what they must be.

An estimator lists its parameters in ``PARAMETERS = {"l2": real(minimum=0.0), ...}``; each entry is a function of the name
and the value that raises a `ValueError` unless the value will do. They are part of every fit, small ones too: what nearly
always comes returns at once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from .arrays.potentials import real_array
from .parallel import thread_count
from .random import check_random_state
from .validation import check_choice, check_count, check_flag, check_real, check_verbose

#: A check of a parameter, by its name and value.
Check = Callable[[str, Any], object]


def real(minimum: float = -math.inf, maximum: float = math.inf, *, strict: bool = False, optional: bool = False) -> Check:
    """A finite number from `minimum` to `maximum` (above the minimum if `strict`), or None if `optional`."""
    below = minimum if strict else math.nextafter(minimum, -math.inf)
    above = math.nextafter(maximum, math.inf)

    def check(name: str, value: Any) -> None:
        if (type(value) is float and below < value < above) or (optional and value is None):
            return
        if not check_real(name, value, minimum=minimum, strict=strict) <= maximum:
            raise ValueError(f"{name} must be from {minimum:g} to {maximum:g}, got {value!r}")

    return check


def count(minimum: int = 0, *, optional: bool = False) -> Check:
    """A whole number, at least `minimum`, or None if `optional`."""

    def check(name: str, value: Any) -> None:
        if (type(value) is not int or value < minimum) and not (optional and value is None):
            check_count(name, value, minimum=minimum)

    return check


def choice(*options: str, optional: bool = False) -> Check:
    """One of some strings, or None if `optional`."""

    def check(name: str, value: Any) -> None:
        if not (optional and value is None):
            check_choice(name, value, options)

    return check


def instance(*types: type, what: str, optional: bool = True) -> Check:
    """An object of one of some types, which messages call `what`, or None if `optional`."""

    def check(name: str, value: Any) -> None:
        if not (optional and value is None) and not isinstance(value, types):
            raise ValueError(f"{name} must be {what}, got {value!r}")

    return check


def items(what: str, optional: bool = True) -> Check:
    """Several things, which messages call `what`, or None if `optional`. A string is one thing."""

    def check(name: str, value: Any) -> None:
        if not (optional and value is None) and (isinstance(value, str | bytes) or not isinstance(value, Iterable)):
            raise ValueError(f"{name} must be {what}, got {value!r}")

    return check


def array(*, optional: bool = True) -> Check:
    """An array of numbers, or None if `optional`."""

    def check(name: str, value: Any) -> None:
        if not (optional and value is None):
            real_array(name, value)

    return check


def checked(function: Callable[[Any], object]) -> Check:
    """Whatever a function of the value lets pass; it names the parameter itself."""
    return lambda name, value: function(value)


def flag(name: str, value: Any) -> None:
    """True or False."""
    if value is not True and value is not False:
        check_flag(name, value)


def threads(name: str, value: Any) -> None:
    """A number of threads, or None for all cores."""
    if value is not None:
        thread_count(value)


def verbosity(name: str, value: Any) -> None:
    """How much is said while training."""
    check_verbose(value)


def seed(name: str, value: Any) -> None:
    """None, an int or a generator."""
    if value is not None:
        check_random_state(value)


def class_weights(name: str, value: Any) -> None:
    """Weights of classes."""
    if value is not None and not isinstance(value, str | Mapping):
        raise ValueError(f"{name} must be None, 'balanced' or a dict by class, got {value!r}")


def anything(name: str, value: Any) -> None:
    """A parameter that can only be judged together with the data."""
