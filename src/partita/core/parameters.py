"""Parameters of constructors, declared once with what they must be.

An estimator lists its parameters in ``PARAMETERS = {"l2": real(minimum=0.0), ...}``; each entry is a function of the name
and the value that raises a `ValueError` unless the value will do.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from .parallel import Workers
from .random import generator
from .validation import check_choice, check_count, check_flag, check_real, check_verbose

#: A check of a parameter, by its name and value.
Check = Callable[[str, Any], object]


def real(minimum: float = -math.inf, *, strict: bool = False, optional: bool = False) -> Check:
    """A finite number, at least `minimum` (above it if `strict`), or None if `optional`."""

    def check(name: str, value: Any) -> None:
        if not (optional and value is None):
            check_real(name, value, minimum=minimum, strict=strict)

    return check


def count(minimum: int = 0, *, optional: bool = False) -> Check:
    """A whole number, at least `minimum`, or None if `optional`."""

    def check(name: str, value: Any) -> None:
        if not (optional and value is None):
            check_count(name, value, minimum=minimum)

    return check


def choice(*options: str, optional: bool = False) -> Check:
    """One of some strings, or None if `optional`."""

    def check(name: str, value: Any) -> None:
        if not (optional and value is None):
            check_choice(name, value, options)

    return check


def checked(function: Callable[[Any], object]) -> Check:
    """Whatever a function of the value lets pass; it names the parameter itself."""
    return lambda name, value: function(value)


def flag(name: str, value: Any) -> None:
    """True or False."""
    check_flag(name, value)


def threads(name: str, value: Any) -> None:
    """A number of threads, or None for all cores."""
    Workers(value)


def verbosity(name: str, value: Any) -> None:
    """How much is said while training."""
    check_verbose(value)


def seed(name: str, value: Any) -> None:
    """None, an int or a generator."""
    generator(value)


def anything(name: str, value: Any) -> None:
    """A parameter that can only be judged together with the data."""
