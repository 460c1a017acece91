"""Warnings: they point to the line of whoever called this package, and engines that stopped short give one for a call."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import ConvergenceWarning
from .results import Status

#: What stands between a user and us, scikit-learn's wrappers of methods among it.
WITHIN = ("partita", "sklearn", "contextlib")


class Held(list[str]):
    """Warnings that are held back."""

    __slots__ = ("__weakref__",)


#: Where warnings go. An interrupt may keep `holding` from its end: what it holds is then gone, and warnings are given again.
_held: ContextVar[weakref.ref[Held] | None] = ContextVar("_held", default=None)


def warn(message: str, category: type[Warning] = UserWarning) -> None:
    """Give a warning that names the first caller outside the package, however deep within it we are."""
    level, frame = 2, sys._getframe(1)
    while frame.f_back is not None and frame.f_globals.get("__name__", "").split(".")[0] in WITHIN:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, category, stacklevel=level)


def report(engine: str, status: Status) -> None:
    """Warn if an engine has not converged; within `holding`, note it instead."""
    if not status.ok:
        _give(f"{engine} has {status}")


def _give(text: str) -> None:
    place = _held.get()
    held = None if place is None else place()
    if held is not None:
        held.append(text)
        return
    warn(text, ConvergenceWarning)


@contextmanager
def holding() -> Iterator[list[str]]:
    """Within it, warnings about engines go to a list: the caller says what is to be said."""
    held = Held()
    token = _held.set(weakref.ref(held))
    try:
        yield held
    finally:
        _held.reset(token)


@contextmanager
def one_warning() -> Iterator[None]:
    """Within it (or in a function that it decorates), the first warning about an engine counts, and is given at the end."""
    with holding() as held:
        yield
    if held:
        _give(held[0])
