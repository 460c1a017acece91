"""``make test-faults``: every kind of fault for a while, and a table of how it went.

``python tests/faults/run.py [--seconds S] [--seed N] [--only KIND …]``; a kind is a module of this folder with a function
``main(budget_seconds, seed) -> Counts``. Exits with 1 if there was a crash, a hang, a silent acceptance or a bare exception.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "conformance")]

from harness import Counts  # noqa: E402

#: Modules that are tools, not kinds.
TOOLS = {"bombs", "harness", "texts", "run"}
COLUMNS = ("cases", "refused", "same", "legal", "crash", "hang", "silent", "bare")


def kinds() -> list[str]:
    return sorted(p.stem for p in HERE.glob("*.py") if p.stem not in TOOLS and not p.stem.startswith(("test_", "_")))


def run(kind: str, seconds: float, seed: int) -> Counts:
    found: Counts = importlib.import_module(kind).main(seconds, seed)
    return found


def row(name: str, counts: Counts, seconds: float) -> str:
    numbers = {**counts.cases, "cases": sum(counts.cases.values())}
    cells = "".join(f"{numbers.get(column, 0):>9}" for column in COLUMNS)
    return f"{name:<22}{cells}{seconds:>9.0f} s{'   skipped: ' + counts.skipped if counts.skipped else ''}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30.0, help="for each kind (default: 30)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="+", metavar="KIND", choices=kinds(), help=f"out of {', '.join(kinds())}")
    args = parser.parse_args()
    print(f"{'kind':<22}{''.join(f'{column:>9}' for column in COLUMNS)}     time", flush=True)
    failures, total = [], Counts()
    began = time.monotonic()
    for kind in args.only or kinds():
        start = time.monotonic()
        counts = run(kind, args.seconds, args.seed)
        print(row(kind, counts, time.monotonic() - start), flush=True)
        failures += [f"{kind}: {failure}" for failure in counts.failures]
        total.merge(counts)
    total.skipped = ""
    print(row("all", total, time.monotonic() - began))
    for failure in failures:
        print(failure[:600], file=sys.stderr)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
