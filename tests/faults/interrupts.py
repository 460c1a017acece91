"""Interrupts at random moments of every estimator's fit: it stays as it was, or is whole and usable; never half of each.

An interrupt comes before a random line of the library
(chosen among all that a fit runs), or at a random time by a signal, wherever Python then is. Each estimator runs in a
process of its own, so that a hang is noticed. A line can also be interrupted twice: two Ctrl-C in a row.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1] / "conformance")]
from harness import Counts  # noqa: E402
from zoo import CASES, contents, unchanged  # noqa: E402

#: What may come of an interrupt. "too late": after the end of a fit, or raised when all was stored. Python itself drops what
#: is raised in destructors, and NumPy may make another error of an interrupt; the estimator must then be as it was.
OUTCOMES = ("tried", "as before", "kept", "too late", "dropped by Python", "another error, as before", "hangs", "failures")
#: Seconds that a process may take beyond its time before it counts as hanging.
GRACE = 120.0


class Injected(KeyboardInterrupt):
    """What is raised here, to be told from a real Ctrl-C of whoever runs this."""


class Lines:
    """Counts the lines of the library that run in this thread, and interrupts before chosen ones."""

    def __init__(self, at: tuple[int, ...] = ()) -> None:
        self.count, self.at, self.where, self.fired = 0, at, "", False

    def __enter__(self) -> Lines:
        sys.settrace(self._call)
        return self

    def __exit__(self, *_: Any) -> None:
        sys.settrace(None)

    def _call(self, frame: Any, event: str, _: Any) -> Any:
        return self._line if "/partita/" in frame.f_code.co_filename else None

    def _line(self, frame: Any, event: str, _: Any) -> Any:
        if event == "line":
            self.count += 1
            if self.count in self.at:
                self.fired = True
                self.where += f" {Path(frame.f_code.co_filename).name}:{frame.f_lineno}"
                raise Injected
        return self._line


class Alarm:
    """Interrupts after so many seconds."""

    def __init__(self, seconds: float) -> None:
        self.seconds, self.where, self.off, self.fired = seconds, f" after {seconds:.4f} s", False, False

    def __enter__(self) -> Alarm:
        signal.signal(signal.SIGALRM, self._ring)
        signal.setitimer(signal.ITIMER_REAL, self.seconds)
        return self

    def __exit__(self, *_: Any) -> None:
        self.off = True  # first: an alarm from here on is none of the fit's
        signal.setitimer(signal.ITIMER_REAL, 0.0)

    def _ring(self, *_: Any) -> None:
        if not self.off:
            self.fired = True
            raise Injected


def verdict(case: Any, model: Any, before: Any, whole: list[set[str]], raised: bool, fired: bool) -> str:
    """One of `OUTCOMES`, or what is wrong."""
    now = contents(model)
    if raised and unchanged(before, now):
        return "as before"
    lacking = [sorted(keys - set(part)) for keys, part in zip(whole, now, strict=True) if keys - set(part)]
    if lacking:
        return f"half stored: {lacking[0]} missing"
    case.use(model)
    trace = getattr(model, "model", model).trace_
    if case.objective is not None and not np.isclose(trace.objective[-1], case.objective(model), rtol=1e-6):
        return f"the trace ends with {trace.objective[-1]}, the objective is {case.objective(model)}"
    status = getattr(model, "model", model).status_.name
    if fired and not raised and status != "INTERRUPTED":
        return f"the interrupt got lost: {status}"
    return "kept" if status == "INTERRUPTED" else "too late"


def attempt(case: Any, model: Any, how: Any, whole: list[set[str]]) -> str:
    before, raised = contents(model), False
    dropped: list[Any] = []
    sys.unraisablehook = lambda hook: dropped.append(hook.exc_type)
    try:
        with how:
            case.fit(model)
    except Injected:
        raised = True
    except KeyboardInterrupt:  # raised anew by the library, in place of the one that was caught
        raised = True
    except (SystemError, TypeError) as error:
        return "another error, as before" if unchanged(before, contents(model)) else f"{type(error).__name__}: {error}"
    except Exception as error:
        return f"{type(error).__name__}: {error}"
    try:
        if Injected in dropped and not raised:
            return verdict(case, model, before, whole, False, False).replace("too late", "dropped by Python")
        return verdict(case, model, before, whole, raised, how.fired)
    except Exception as error:
        return f"unusable, {type(error).__name__}: {error}"


def one_estimator(name: str, seconds: float, seed: int) -> dict[str, Any]:
    """Interrupt fits of one estimator for so many seconds, at least three."""
    case, rng = CASES[name], np.random.default_rng(seed)
    warnings.simplefilter("ignore")
    case.fit(case.made())  # compiles
    with Lines() as lines:
        case.fit(case.made())
    start = time.perf_counter()
    model = case.made()
    case.fit(model)
    took = time.perf_counter() - start
    whole = [set(part) for part in contents(model)]
    counts: dict[str, Any] = dict.fromkeys(OUTCOMES, 0)
    counts["wrong"] = []
    end = time.perf_counter() + seconds
    while counts["tried"] < 3 or time.perf_counter() < end:
        model = case.made()
        if rng.random() < 0.5:
            case.fit(model)  # then what it had must stay
        kind = rng.integers(3)
        if kind == 2 and threading.current_thread() is threading.main_thread():
            how: Any = Alarm(max(1e-6, float(rng.random()) * took))
        else:
            first = int(rng.integers(1, lines.count + 1))
            how = Lines((first,) if kind == 0 else (first, first + int(rng.integers(1, 40))))
        found = attempt(case, model, how, whole)
        counts["tried"] += 1
        if found in counts:
            counts[found] += 1
        else:
            counts["failures"] += 1
            counts["wrong"].append(f"{name}, interrupted at{how.where}: {found}")
    return counts


def main(budget_seconds: float = 60.0, seed: int = 0) -> Counts:
    """Interrupt every estimator. "same": it stayed as it was; "legal": it is whole and usable; a failure is "silent"."""
    share, total, counts = budget_seconds / len(CASES), Counter(), Counts()
    for name in CASES:
        command = [sys.executable, __file__, "--one", name, str(share), str(seed)]
        try:
            run = subprocess.run(command, capture_output=True, text=True, timeout=share + GRACE, check=False)
        except subprocess.TimeoutExpired:
            counts.add("hang", name)
            continue
        if run.returncode:
            counts.add("crash", f"{name}: exit {run.returncode}, {run.stderr.strip().splitlines()[-1:]}")
            continue
        found = json.loads(run.stdout.splitlines()[-1])
        for line in found.pop("wrong"):
            counts.add("silent", line)
        total.update(found)
    counts.cases["same"] += sum(total[key] for key in ("as before", "dropped by Python", "another error, as before"))
    counts.cases["legal"] += sum(total[key] for key in ("kept", "too late"))
    return counts


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(one_estimator(sys.argv[2], float(sys.argv[3]), int(sys.argv[4]))))
    else:
        sys.exit("python tests/faults/run.py --only interrupts")
