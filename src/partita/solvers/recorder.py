"""The trace of a run, and what callbacks are told."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from ..core.contracts.point import Point
from ..core.contracts.progress import Callback, Progress
from ..core.results import Row, measure


class Recorder:
    """Keeps the rows of a trace and tells the callbacks.

    Parameters
    ----------
    solver : str
        Its name.
    scale : float
        What gradients are divided by.
    callbacks : iterable of callables
    """

    solver: str
    scale: float

    def __init__(self, solver: str, scale: float, callbacks: Iterable[Callback]) -> None:
        self.solver, self.scale = solver, scale
        self.callbacks: tuple[Callable[[Progress], bool | None], ...] = tuple(callbacks)
        self.start: float = time.perf_counter()
        self.rows: list[Row] = []

    def seconds(self) -> float:
        """Since the start."""
        return time.perf_counter() - self.start

    def describe(self, point: Point) -> Row:
        """The row that describes a point now."""
        return measure(point, self.scale, self.seconds())

    def add(self, point: Point) -> tuple[float, bool]:
        """Record a point; return its scaled gradient norm and whether a callback asks to stop."""
        row = measure(point, self.scale, self.seconds())
        self.rows.append(row)
        stop = False
        for callback in self.callbacks:
            progress = Progress(self.solver, len(self.rows) - 1, *row, parameters=point.parameters)
            stop = bool(callback(progress)) or stop
        return row[1], stop
