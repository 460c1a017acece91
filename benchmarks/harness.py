"""What every benchmark shares: thread counts, the state of the machine, tables and JSON files."""

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"
_MARK = "PARTITA_BENCHMARK_THREADS"
_THREAD_VARIABLES = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS")


def with_threads(threads: int) -> None:
    """Run this script again in a process limited to `threads` threads, unless it already is that process.

    The libraries read these variables when they are imported, so they must be set before Python starts.
    """
    if os.environ.get(_MARK) == str(threads):
        return
    environment = os.environ | dict.fromkeys((*_THREAD_VARIABLES, _MARK), str(threads))
    sys.exit(subprocess.run([sys.executable, *sys.argv], env=environment).returncode)


def machine() -> dict[str, Any]:
    """Describe the machine, the versions and the load of the moment."""
    versions = {}
    for package in ("partita", "numpy", "scipy", "numba", "scikit-learn"):
        try:
            versions[package] = version(package)
        except PackageNotFoundError:
            versions[package] = "not installed"
    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "cpus": os.cpu_count(),
        "versions": versions,
        "load": os.getloadavg(),
        "date": time.strftime("%Y-%m-%d %H:%M"),
    }


def print_load(when: str) -> None:
    """Print the load averages, so that a disturbed run can be recognised."""
    print(f"load at the {when}: " + ", ".join(f"{load:.2f}" for load in os.getloadavg()), flush=True)


def markdown(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Format a markdown table with aligned columns."""
    lines = [[str(cell) for cell in line] for line in (header, *rows)]
    widths = [max(len(line[j]) for line in lines) for j in range(len(header))]
    lines.insert(1, ["-" * width for width in widths])
    padded = ([cell.ljust(width) for cell, width in zip(line, widths, strict=True)] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in padded)


def digits(value: float | None, places: int = 3) -> str:
    """Format a number to `places` significant digits without an exponent where that is readable."""
    if value is None:
        return "-"
    plain = 1e-6 <= abs(value) < 10**places
    return f"{value:#.{places}g}".rstrip(".") if plain else f"{value:.{places - 1}e}"


def read_results(name: str) -> dict[str, Any]:
    """Read `results/<name>.json`, or nothing if it is not there."""
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else {}


def write_results(name: str, payload: dict[str, Any]) -> None:
    """Write `results/<name>.json`."""
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(payload, indent=1) + "\n")
