"""One pass of partial_fit over a memory-mapped sparse matrix of 5 million x 1,000, with the peak of resident memory.

The matrix is written once (30 non-zeros a row, about 2 GB in float64 and int32 with the labels) and read by a second process
that reports its own peak: anonymous memory and, apart, with the pages of the file that the system keeps mapped.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from harness import machine, print_load, write_results
from scipy import sparse

PER_ROW = 30
CHUNK = 100_000


def generate(folder: Path, rows: int, columns: int) -> None:
    """Write data.npy, indices.npy, indptr.npy and y.npy a chunk at a time."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(columns) * 0.5
    maps = {
        name: np.lib.format.open_memmap(folder / f"{name}.npy", "w+", dtype, (count,))
        for name, dtype, count in (
            ("data", np.float64, rows * PER_ROW),
            ("indices", np.int32, rows * PER_ROW),
            ("y", np.int8, rows),
        )
    }
    law = 1.0 / (np.arange(columns) + 10.0)
    cumulative = np.cumsum(law / law.sum())
    for lo in range(0, rows, CHUNK):
        hi = min(rows, lo + CHUNK)
        indices = np.sort(np.searchsorted(cumulative, rng.random((hi - lo, PER_ROW))), axis=1).clip(0, columns - 1)
        # A column drawn twice keeps its place with value 0, so that rows hold no duplicates that matter.
        repeated = np.zeros(indices.shape, bool)
        repeated[:, 1:] = indices[:, 1:] == indices[:, :-1]
        data = np.where(repeated, 0.0, rng.exponential(1.0, indices.shape))
        scores = (data * weights[indices]).sum(1)
        maps["data"][lo * PER_ROW : hi * PER_ROW] = data.ravel()
        maps["indices"][lo * PER_ROW : hi * PER_ROW] = indices.ravel()
        maps["y"][lo:hi] = scores - np.median(scores) + rng.logistic(size=hi - lo) > 0
    np.save(folder / "indptr.npy", np.arange(rows + 1, dtype=np.int64) * PER_ROW)
    for mapped in maps.values():
        mapped.flush()


def peak(field: str) -> float:
    """A field of /proc/self/status in gigabytes (VmHWM: peak resident; RssAnon: anonymous now)."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(field):
            return int(line.split()[1]) / 1e6
    return float("nan")


def learn(folder: Path, rows: int, columns: int) -> None:
    """Open the maps chunk by chunk and learn; prints a line of JSON."""
    from partita import SoftmaxRegression

    indptr = np.load(folder / "indptr.npy", mmap_mode="r")

    def piece(lo: int) -> tuple[sparse.csr_matrix, np.ndarray]:
        """CHUNK rows from `lo` on; maps opened for one piece let the system drop its pages afterwards."""
        hi = min(rows, lo + CHUNK)
        a, b = int(indptr[lo]), int(indptr[hi])
        data, indices, y = (np.load(folder / f"{name}.npy", mmap_mode="r") for name in ("data", "indices", "y"))
        return sparse.csr_matrix((data[a:b], indices[a:b], indptr[lo : hi + 1] - a), (hi - lo, columns)), y[lo:hi]

    begin = time.perf_counter()
    model = SoftmaxRegression(l2=1.0).fit_stream(map(piece, range(0, rows, CHUNK)), classes=[0, 1])
    seconds = time.perf_counter() - begin
    X, y = piece(rows - CHUNK)
    loss = -float(np.mean(model.predict_log_proba(X)[np.arange(len(y)), y.astype(int)]))
    print(json.dumps({"seconds": seconds, "seen": model.n_seen_, "peak_gb": peak("VmHWM"), "loss": loss}))


def main() -> None:
    """Generate, learn in a process of its own, report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=5_000_000)
    parser.add_argument("--columns", type=int, default=1000)
    parser.add_argument("--learn", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.learn:
        learn(arguments.learn, arguments.rows, arguments.columns)
        return
    print_load("start")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        generate(folder, arguments.rows, arguments.columns)
        size = sum(path.stat().st_size for path in folder.iterdir()) / 1e9
        command = [
            sys.executable,
            __file__,
            "--learn",
            name,
            "--rows",
            str(arguments.rows),
            "--columns",
            str(arguments.columns),
        ]
        result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()[-1])
    print(
        f"{arguments.rows:,} x {arguments.columns:,}, {size:.2f} GB on disk: one pass in {result['seconds']:.0f} s, "
        f"peak resident memory {result['peak_gb']:.2f} GB, loss per example on the last {CHUNK:,}: {result['loss']:.4f}"
    )
    print_load("end")
    write_results("out_of_core", {"machine": machine(), "size_gb": size, **result})


if __name__ == "__main__":
    main()
