"""The numerical tests under other BLAS kernels, for any processor, and with one thread: ``make test-portable``.

OpenBLAS and numba choose kernels by the processor, and every kernel rounds the last digit in its own way. What passes with
one of them should pass with all. Settings that this machine cannot run are left out and said so.

    python tests/portable.py                    # all settings, the numerical folders
    python tests/portable.py Nehalem generic    # some
    python tests/portable.py --short            # all settings, the tests marked `rounding` only
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ElementTree
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
#: Families of BLAS kernels, by what `OPENBLAS_CORETYPE` calls them: SSE, AVX, AVX2 and AVX-512.
FAMILIES = ("Nehalem", "Sandybridge", "Haswell", "SkylakeX")
#: Folders of tests whose outcome could depend on rounding.
NUMERICAL = (
    *("softmax", "chain", "graph", "matching", "tree", "oracle", "bayesnet", "conformance", "estimators"),
    *("inference", "numerics", "objectives", "reference", "solvers"),
)
#: Files with tests marked `rounding`: those that failed somewhere before.
SENSITIVE = tuple(
    f"tests/{name}.py"
    for name in ("softmax/test_constraints", "bayesnet/test_joint_em", "softmax/test_latent", "bayesnet/test_network")
)
#: What a family must do before it is believed to be there: a processor without its instructions ends with a signal.
PROBE = """
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
a = np.random.default_rng(0).standard_normal((300, 300))
scipy.linalg.cholesky(a @ a.T + np.eye(300)), np.linalg.eigh(a + a.T)
print(*{entry.get("architecture") for entry in threadpool_info() if entry["internal_api"] == "openblas"})
"""


def settings(cache: str) -> dict[str, dict[str, str]]:
    """Names of settings, and the environment of each."""
    found = {family: {"OPENBLAS_CORETYPE": family} for family in FAMILIES}
    # numba's cache does not hold kernels of two processors: a folder of its own.
    found["generic"] = {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": cache}
    found["one thread"] = {"OPENBLAS_NUM_THREADS": "1"}
    return found


def kernels_in_use(family: str | None = None) -> str:
    """What OpenBLAS uses if it is asked for a family of kernels, or left alone; empty if it cannot."""
    chosen = {} if family is None else {"OPENBLAS_CORETYPE": family}
    found = subprocess.run([sys.executable, "-c", PROBE], env=os.environ | chosen, capture_output=True, text=True)
    return found.stdout.strip() if found.returncode == 0 else ""


def run_tests(environment: dict[str, str], arguments: Sequence[str]) -> tuple[dict[str, int], list[str], str]:
    """Counts of a run of pytest by outcome, the names of tests that failed, and what it wrote."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.xml"
        command = [sys.executable, "-m", "pytest", f"--junitxml={report}", *arguments]
        ended = subprocess.run(command, cwd=ROOT, env=os.environ | environment, capture_output=True, text=True)
        if not report.exists():
            return {"failed": 1}, [f"pytest ended with {ended.returncode} and no report"], ended.stdout + ended.stderr
        cases = list(ElementTree.parse(report).iter("testcase"))
    counts, failed = {"passed": 0, "failed": 0, "skipped": 0}, []
    for case in cases:
        if case.find("failure") is not None or case.find("error") is not None:
            counts["failed"] += 1
            failed.append(f"{case.get('classname')}::{case.get('name')}")
        else:
            counts["skipped" if case.find("skipped") is not None else "passed"] += 1
    if ended.returncode not in (0, 1) and not failed:
        failed.append(f"pytest ended with {ended.returncode}")
        counts["failed"] += 1
    return counts, failed, ended.stdout + ended.stderr


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("settings", nargs="*", help="names of settings; default all")
    parser.add_argument("--short", action="store_true", help="only the tests that are marked as sensitive to rounding")
    parser.add_argument("-n", "--processes", default="2", help="processes of each run (default 2)")
    options = parser.parse_args()
    every = settings(str(ROOT / ".numba-generic"))
    if unknown := set(options.settings) - set(every):
        parser.error(f"settings must be among {', '.join(every)}; got {', '.join(sorted(unknown))}")
    arguments = ["-m", "rounding", *SENSITIVE] if options.short else [f"tests/{folder}" for folder in NUMERICAL]
    print(f"{'setting':<14}{'passed':>8}{'failed':>8}{'skipped':>9}{'seconds':>9}", flush=True)
    all_failed: dict[str, list[str]] = {}
    for name in options.settings or every:
        if name in FAMILIES and (used := kernels_in_use(name)) != name:
            print(f"{name:<14} left out: OpenBLAS here {'takes ' + used if used else 'does not run it'}", flush=True)
            continue
        start = time.perf_counter()
        counts, failed, _ = run_tests(every[name], ["-n", options.processes, "--dist", "worksteal", *arguments])
        row = (counts.get(outcome, 0) for outcome in ("passed", "failed", "skipped"))
        print("{:<14}{:>8}{:>8}{:>9}".format(name, *row), f"{time.perf_counter() - start:8.0f}", flush=True)
        if failed:
            all_failed[name] = failed
    for name, failed in all_failed.items():
        print(f"\nfailed under {name}:", *failed, sep="\n  ")
    return 1 if all_failed else 0


if __name__ == "__main__":
    sys.exit(main())
