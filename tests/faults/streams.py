"""The command with standard streams that are closed, full or broken: a sentence and a status, never a traceback."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from harness import Counts

#: A command line, the status it must end with, and words that standard error must hold (if it is open).
LINES = [
    ("tag train -m m >&-", 2, "standard output is closed"),
    ("tag train -m m -o out >&-", 0, ""),
    ("tag -m m <&-", 2, "standard input is closed"),
    ("tag -m m <&- >&- 2>&-", 2, ""),
    ("tag train -m m >/dev/full", 2, "No space left"),
    ("tag train -m m | head -c 1", (0, 141), ""),
    ("train train -m new 2>&-", 0, ""),
    ("train train -m new -v 2>/dev/full", 0, ""),
    ("train train -m new -v 2>&1 | head -1", 0, ""),
    ("train - -m new <&-", 2, "standard input is closed"),
    ("train train -m new --dev train >&-", 2, "standard output is closed"),
    ("eval train -m m >&-", 2, "standard output is closed"),
    ("eval - -m m <&-", 2, "standard input is closed"),
    ("dump -m m >&-", 2, "standard output is closed"),
    ("dump -m m >/dev/full", 2, "No space left"),
    ("dump -m m | head -1", (0, 141), ""),
    ("infer g.uai >&-", 2, "standard output is closed"),
    ("infer g.uai >/dev/full", 2, "No space left"),
    ("infer g.uai 2>&-", 0, ""),
    ("--help >&-", 0, ""),
    ("bogus 2>&-", 2, ""),
]
COMMAND = f'"{sys.executable}" -W ignore -m partita'


def main(budget_seconds: float, seed: int, lines: list[tuple[str, object, str]] | None = None) -> Counts:
    if os.name != "posix" or not os.path.exists("/dev/full"):
        return Counts(skipped="streams are closed by a POSIX shell, and filled by /dev/full")
    counts = Counts()
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "train"), "w") as file:
            file.write("the D x\ncat N y\n\na D x\ncat N y\nsat V y\n")
        with open(os.path.join(folder, "g.uai"), "w") as file:
            file.write("MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n")
        subprocess.run(f"{COMMAND} train train -m m -q", shell=True, cwd=folder, check=True)
        for line, status, words in LINES if lines is None else lines:
            counts.add(*_attempt(line, status, words, folder))
    return counts


def _attempt(line: str, status: object, words: str, folder: str) -> tuple[str, str]:
    new = os.path.join(folder, "new")
    if os.path.exists(new):
        os.unlink(new)
    whole = f"{COMMAND} {line}; echo status ${{PIPESTATUS[0]}} >&9"
    reading, writing = os.pipe()
    try:
        command = ["bash", "-c", f"exec 9>&{writing}; {whole}"]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=60, pass_fds=[writing])
    except subprocess.TimeoutExpired:
        return "hang", line
    finally:
        os.close(writing)
        with os.fdopen(reading) as said:
            found = said.read().split()[-1:] if not sys.exc_info()[0] else []
    expected = [str(s) for s in status] if isinstance(status, tuple) else [str(status)]
    if "Traceback" in done.stderr:
        return "bare", f"{line}: {done.stderr[-200:]}"
    if not found or found[0] not in expected:
        return "bare", f"{line}: status {found}, not {expected}: {done.stderr[-200:]}"
    if words not in done.stderr:
        return "bare", f"{line}: does not say {words!r}: {done.stderr[-200:]}"
    if "-m new" in line and status == 0 and not os.path.exists(new):
        return "silent", f"{line}: no model"
    return ("refused" if status == 2 else "same"), ""
