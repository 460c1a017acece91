"""Cases run one after the other in a process of their own, so that a crash or a hang is counted and not suffered.

A kind of fault is a module with a function ``main(budget_seconds, seed) -> Counts``. It makes cases (plain values), names a
function ``"module:function"`` that tries one case and says how it went, and lets `run_cases` do the rest.
"""

from __future__ import annotations

import importlib
import multiprocessing
import os
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
#: The tables of estimators and of questions to them.
TABLES = HERE.parent / "conformance"
#: How a case can go. What is refused is refused by a sentence; what is the same gives the same answers; what is legal gives
#: other answers, because the change made another model of it. The rest must not be.
GOOD = ("refused", "same", "legal")
BAD = ("crash", "hang", "silent", "bare")


@dataclass
class Counts:
    """How the cases of a kind went."""

    cases: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    skipped: str = ""

    def add(self, outcome: str, detail: str = "") -> None:
        self.cases[outcome] += 1
        if outcome in BAD:
            self.failures.append(f"{outcome}: {detail}")

    def merge(self, other: Counts) -> Counts:
        self.cases.update(other.cases)
        self.failures += other.failures
        self.skipped = "; ".join(filter(None, (self.skipped, other.skipped)))
        return self

    @property
    def ok(self) -> bool:
        return not self.failures


def _serve(connection: Any, growth: int | None) -> None:
    """In the process of the cases: try each that comes, and say how it went."""
    sys.path[:0] = [str(HERE), str(TABLES)]
    warnings.simplefilter("ignore")
    os.environ["NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING"] = "1"
    import questions  # noqa: F401  (and all estimators: before the limit of memory, and before the clock of the first case)

    if growth is not None:
        _limit_memory(growth)
    connection.send(("ready", ""))
    while True:
        function, case = connection.recv()
        module, name = function.split(":")
        try:
            answer = getattr(importlib.import_module(module), name)(case)
        except BaseException as error:
            answer = ("bare", f"{type(error).__name__}: {error}")
        connection.send(answer)


def _limit_memory(growth: int) -> None:
    """Let the process take only so many bytes more."""
    import resource

    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + growth
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def can_limit_memory() -> bool:
    try:
        import resource  # noqa: F401
    except ImportError:
        return False
    return Path("/proc/self/statm").exists()


class Worker:
    """A process that tries cases; started again when it dies."""

    def __init__(self, growth: int | None = None) -> None:
        self.growth = growth
        self.process: Any = None

    def start(self) -> None:
        if self.process is not None:
            return
        context = multiprocessing.get_context("spawn")
        self.connection, theirs = context.Pipe()
        self.process = context.Process(target=_serve, args=(theirs, self.growth))
        self.process.start()
        theirs.close()
        if not self.connection.poll(120):
            raise RuntimeError("the process of the cases does not start")
        self.connection.recv()

    def attempt(self, function: str, case: Any, seconds: float) -> tuple[str, str]:
        """How a case went: within so many seconds, or it hangs."""
        self.start()
        self.connection.send((function, case))
        try:
            if self.connection.poll(seconds):
                outcome, detail = self.connection.recv()
                return outcome, detail
        except (EOFError, ConnectionError):
            self.process.join(10)
            code = self.process.exitcode
            self.stop()
            return "crash", f"exit status {code}"
        self.stop()
        return "hang", f"no answer in {seconds:g} seconds"

    def stop(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.join()
            self.connection.close()
            self.process = None


def run_cases(
    function: str,
    cases: Iterable[tuple[str, Any]],
    budget: float,
    seconds: float = 30.0,
    growth: int | None = None,
    most: int | None = None,
    worker: Worker | None = None,
) -> Counts:
    """Try cases (a description and a value each) until they, the time, or `most` are used up.

    The start of the process does not count. A `worker` that is given is left running.
    """
    counts, began = Counts(), None
    own = worker is None
    worker = Worker(growth) if worker is None else worker
    try:
        for number, (description, case) in enumerate(cases):
            if most is not None and number >= most:
                break
            worker.start()
            began = time.monotonic() if began is None else began
            if time.monotonic() - began > budget:
                break
            outcome, detail = worker.attempt(function, case, seconds)
            counts.add(outcome, f"{description}: {detail}")
    finally:
        if own:
            worker.stop()
    return counts


def judge(error: BaseException) -> tuple[str, str]:
    """Whether an exception is a sentence for users: its kind is one they are told to expect, and it says something."""
    from partita import CapabilityError, NumericalError

    text = f"{type(error).__name__}: {error}"
    expected = isinstance(error, ValueError | CapabilityError | NumericalError) and not isinstance(error, UnicodeError)
    told = len(str(error).split()) >= 3
    return ("refused" if expected and told else "bare"), text[:300]


def scratch() -> tempfile.TemporaryDirectory[str]:
    """A folder for files of cases."""
    return tempfile.TemporaryDirectory(prefix="partita-faults-")
