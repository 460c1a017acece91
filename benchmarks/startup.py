"""The price of starting: seconds to import Partita and to do the first fit of a process, warm and cold.

Every number is measured inside a fresh Python process, so interpreter start is not in it. Warm: numba finds
its compiled functions on disk. Cold: `NUMBA_CACHE_DIR` points to an empty directory.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile

from harness import digits, machine, markdown, print_load, write_results

IMPORT_PARTITA = "import partita"
IMPORT_ESTIMATOR = "from partita import SoftmaxRegression"
IMPORT_SKLEARN = "import sklearn.linear_model"
FIT = "SoftmaxRegression().fit(X, y)"
PREPARE = """
from sklearn.datasets import load_wine
from partita import SoftmaxRegression
X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)
"""
CHAIN = """
from partita import ChainCRF
ChainCRF().fit([[["the"], ["cat"]], [["a"], ["cat"], ["sat"]]], [["D", "N"], ["D", "N", "V"]])
"""
TIMED = """{prepare}
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""


def seconds(statement: str, prepare: str = "", cache: str | None = None) -> float:
    """Time one statement in a fresh process; `cache` is the directory of numba's compiled functions."""
    environment = dict(os.environ)
    if cache:
        environment["NUMBA_CACHE_DIR"] = cache
    command = [sys.executable, "-W", "ignore", "-c", TIMED.format(prepare=prepare, statement=statement)]
    process = subprocess.run(command, env=environment, capture_output=True, text=True)
    if process.returncode:
        raise RuntimeError(f"{statement!r} failed in a fresh process:\n{process.stderr}")
    return float(process.stdout.split()[-1])


def cold_seconds(statement: str, prepare: str = "") -> float:
    """Time one statement in a fresh process with nothing compiled beforehand."""
    with tempfile.TemporaryDirectory() as empty:
        return seconds(statement, prepare, empty)


def main() -> None:
    """Measure, print, and write `results/startup.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--cold-repeats", type=int, default=2)
    options = parser.parse_args()
    print_load("start")
    for warm_up in (FIT, IMPORT_SKLEARN, CHAIN):
        seconds(warm_up, PREPARE)
    many, few = range(options.repeats), range(options.cold_repeats)
    times = {
        "import sklearn.linear_model": [seconds(IMPORT_SKLEARN) for _ in many],
        "import partita": [seconds(IMPORT_PARTITA) for _ in many],
        "from partita import SoftmaxRegression": [seconds(IMPORT_ESTIMATOR) for _ in many],
        "first fit (wine), warm cache": [seconds(FIT, PREPARE) for _ in many],
        "second fit (wine)": [seconds(FIT, PREPARE + FIT) for _ in many],
        "import ChainCRF and a tiny fit, warm cache": [seconds(CHAIN) for _ in many],
        "import ChainCRF and a tiny fit, cold cache": [cold_seconds(CHAIN) for _ in few],
        "import partita, cold cache": [cold_seconds(IMPORT_PARTITA) for _ in few],
        "first fit (wine), cold cache": [cold_seconds(FIT, PREPARE) for _ in few],
    }
    rows = [(what, digits(min(all_)), digits(statistics.median(all_)), len(all_)) for what, all_ in times.items()]
    print(markdown(["what", "min s", "median s", "repeats"], rows))
    write_results("startup", {"seconds": times, "machine": machine()})
    print_load("end")


if __name__ == "__main__":
    main()
