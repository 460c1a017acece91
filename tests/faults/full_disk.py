"""Saving where there is no room: an OSError that says so, the old file as it was, and nothing left over."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from typing import Any

import numpy as np
from harness import HERE, Counts, run_cases

#: What runs on a small file system of its own: 300 kB, one file there, larger ones to come.
SCRIPT = """
import os, sys
sys.path.insert(0, {here!r})
import full_disk
print(full_disk.save_without_room(sys.argv[1]))
"""


def save_without_room(folder: str) -> str:
    """Save models that do not fit into a folder; "" if all is as it should be."""
    from kills import _model

    import partita as pt
    from partita.features import Templates  # noqa: F401

    path = os.path.join(folder, "m")
    _model(1.0, 10_000).save(path)
    with open(path, "rb") as file:
        before = file.read()
    for size in (400_000, 3_000_000):
        model = _model(1.0, size)
        model.coef_ = np.random.default_rng(0).normal(size=model.coef_.shape)  # does not compress
        try:
            model.save(path)
        except OSError as error:
            if not error.strerror:
                return f"no reason: {error!r}"
        else:
            return "it was saved all the same"
        with open(path, "rb") as file:
            if file.read() != before:
                return "the old file is not what it was"
        if os.listdir(folder) != ["m"]:
            return f"left over: {os.listdir(folder)}"
        pt.load(path)
    return ""


def attempt(case: str) -> tuple[str, str]:
    wrong = {"limit": _limited, "device": _device, "tmpfs": _mounted}[case]()
    return ("silent", wrong) if wrong else ("refused", "")


def _limited() -> str:
    """A limit of the size of files, in a child."""
    import resource
    import signal

    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
        with tempfile.TemporaryDirectory() as folder:
            os.write(writing, (save_without_room(folder) or "fine").encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading) as said:
        text = said.read()
    os.waitpid(child, 0)
    return "" if text == "fine" else text or "the child died"


def _device() -> str:
    from kills import _model

    try:
        _model(1.0, 10_000).save("/dev/full")
    except OSError:
        return ""
    return "a full device took a model"


def _mounted() -> str:
    """A file system of 300 kB in a namespace of mounts that ends with the process."""
    with tempfile.TemporaryDirectory() as folder:
        mount = f'mount -t tmpfs -o size=300k none {folder} && exec {sys.executable} -c "$CODE" {folder}'
        environment = os.environ | {"CODE": SCRIPT.format(here=str(HERE))}
        done = subprocess.run(["unshare", "-m", "sh", "-c", mount], env=environment, capture_output=True, text=True)
        return done.stdout.strip() if done.returncode == 0 else f"failed: {done.stderr[-300:]}"


def _can_mount() -> bool:
    if not hasattr(os, "geteuid") or os.geteuid() != 0 or shutil.which("unshare") is None:
        return False
    with tempfile.TemporaryDirectory() as folder:
        command = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=300k", "none", folder]
        return subprocess.run(command, capture_output=True).returncode == 0


def main(budget_seconds: float, seed: int) -> Counts:
    if not hasattr(os, "fork"):
        return Counts(skipped="no fork, no limits of files and no full device here")
    kinds: list[Any] = ["limit", *(["device"] if os.path.exists("/dev/full") else []), *(["tmpfs"] if _can_mount() else [])]
    counts = run_cases("full_disk:attempt", [(kind, kind) for kind in kinds], max(budget_seconds, 60.0), seconds=60.0)
    counts.skipped = "" if "tmpfs" in kinds else "no small file system: that takes root and unshare"
    return counts
