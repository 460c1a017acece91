"""Warnings about engines that stopped short: one for a call, however many answers it takes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from .errors import ConvergenceWarning
from .results import Status
from .warn import warn

_held: ContextVar[list[str] | None] = ContextVar("_held", default=None)


def report(engine: str, status: Status) -> None:
    """Warn if an engine has not converged; within `holding`, note it instead."""
    if not status.ok:
        _give(f"{engine} has {status}")


def _give(text: str) -> None:
    held = _held.get()
    if held is not None:
        held.append(text)
        return
    warn(text, ConvergenceWarning)


@contextmanager
def holding() -> Iterator[list[str]]:
    """Within it, warnings about engines go to a list: the caller says what is to be said."""
    held: list[str] = []
    token = _held.set(held)
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
