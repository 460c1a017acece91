"""Progress lines, as a solver callback."""

from __future__ import annotations

import sys
import time
from contextlib import suppress

from ..core.contracts.progress import Callback, Progress


class ProgressPrinter:
    """Writes one line per iteration to standard error, at most one in `every` seconds; `prefix` tells runs apart."""

    def __init__(self, every: float = 0.5, prefix: str = "") -> None:
        self.every: float = every
        self.prefix: str = prefix
        self._last = -1.0

    def __call__(self, progress: Progress) -> bool:
        if self._last < 0.0 or progress.seconds - self._last >= self.every:
            self._last = progress.seconds
            _say(
                f"{self.prefix}{progress.solver}: iteration {progress.iteration}, objective {progress.objective:.8g}, "
                f"gradient {progress.gradient_norm:.2e}, {progress.seconds:.2f} s\n"
            )
        return False


def progress_printers(verbose: int, prefix: str = "") -> list[Callback]:
    """The printer that a `verbose` asks for, if it does: 1 is twice a second, 2 every iteration."""
    return [ProgressPrinter(0.5 if verbose == 1 else 0.0, prefix)] if verbose else []


class CountPrinter:
    """Writes how many of a number of things are done to standard error, from one second on, at most one line a second."""

    def __init__(self, name: str, total: int) -> None:
        self.name: str = name
        self.total: int = total
        self._start = self._last = time.monotonic()

    def __call__(self, done: int) -> None:
        now = time.monotonic()
        if now - self._last >= 1.0:
            self._last = now
            _say(f"{self.name}: {done} of {self.total} draws, {now - self._start:.1f} s\n")


def _say(text: str) -> None:
    """Write to standard error; a fit does not fail because nobody listens."""
    with suppress(AttributeError, OSError, ValueError):  # there is none, or it is full or closed
        sys.stderr.write(text)
