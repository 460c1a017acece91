"""Exact inference on the 33 UAI 2014 (PR) instances: width, seconds, and the distance to published answers.

Log Z is compared with `lnZ_exact` of `logz.csv` (bucket elimination in double precision), marginals of variables with the
published `.MAR` files, which have six digits. Seconds do not include reading; `plan` is the junction tree, which log Z and
marginals share. Compilation is done beforehand, on a small model. Instances that do not fit are named.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from datasets import data_directory
from harness import digits, machine, markdown, print_load, read_results, write_results

from partita import TooLargeError
from partita.io import read_evidence, read_marginals, read_uai
from partita.structures import FactorGraph

HEADER = ["instance", "variables", "width", "MB", "plan s", "log Z s", "marginals s", "log Z error", "marginal error"]


def timed(call: Callable[[], Any]) -> tuple[Any, float]:
    start = time.perf_counter()
    return call(), time.perf_counter() - start


def compile_kernels(*engines: str) -> None:
    """Use every engine on pairs of two states and on tables of three variables, one entry of which is forbidden."""
    small = FactorGraph.grid(4, 4), FactorGraph([3] * 4, [(0, 1, 2), (1, 2, 3), (0, 3)])
    for graph in small:
        potentials = np.zeros(graph.size)
        potentials[0] = 0.0 if graph is small[0] else -np.inf
        graph.log_partition(potentials)
        for engine in engines:
            graph.infer(potentials, engine)


def chosen_instances(only: str) -> tuple[Path, dict[str, float]]:
    """The folder, and the exact log Z of the instances whose names have one of the parts in `only`."""
    folder = data_directory() / "uai2014_pr"
    with open(folder / "logz.csv") as file:
        exact = {row["instance"]: float(row["lnZ_exact"]) for row in csv.DictReader(file)}
    return folder, {name: value for name, value in exact.items() if any(part in name for part in only.split(","))}


def marginal_error(path: Path, found: list[np.ndarray], evidence: dict[int, int]) -> float:
    """Largest difference to the published marginals; observed variables have all their states there."""
    published, worst = read_marginals(f"{path}.MAR"), 0.0
    for v, p in enumerate(found):
        ours = np.eye(len(published[v]))[evidence[v]] if v in evidence else p
        worst = max(worst, float(np.abs(ours - published[v]).max()))
    return worst


def measure(path: Path, exact: float, memory_limit: float, n_jobs: int | None) -> dict[str, Any]:
    evidence = read_evidence(f"{path}.evid")
    graph, potentials = read_uai(path, evidence, n_jobs=n_jobs)
    row: dict[str, Any] = {"variables": graph.n_variables, "memory_limit": memory_limit}

    try:
        tree, row["plan_seconds"] = timed(lambda: graph.tree(memory_limit))
    except TooLargeError as error:
        return row | {"too_large": str(error)}
    row |= {"width": tree.elimination.width, "bytes": tree.elimination.memory}
    log_z, row["log_z_seconds"] = timed(lambda: graph.log_partition(potentials, "exact", memory_limit=memory_limit)[0])
    result, row["marginals_seconds"] = timed(lambda: graph.infer(potentials, "exact", memory_limit=memory_limit))
    row |= {"log_z": float(log_z), "log_z_error": max(abs(z - exact) for z in (log_z, result.log_z[0])) / abs(exact)}
    row["marginal_error"] = marginal_error(path, graph.variable_marginals(result.marginals), evidence)
    return row


def cells(name: str, row: dict[str, Any]) -> list[Any]:
    if "too_large" in row:
        return [name, row["variables"], "too large", *["-"] * 6]
    seconds = [digits(row[f"{key}_seconds"]) for key in ("plan", "log_z", "marginals")]
    errors = [f"{row[f'{key}_error']:.0e}" for key in ("log_z", "marginal")]
    return [name, row["variables"], row["width"], digits(row["bytes"] / 1e6), *seconds, *errors]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="instances whose names have one of these parts: Grids,DBN")
    parser.add_argument("--memory-limit", type=float, default=12e9, help="bytes (default: 12e9)")
    parser.add_argument("--n-jobs", type=int, help="threads (default: all cores)")
    arguments = parser.parse_args()
    folder, exact = chosen_instances(arguments.only)
    print_load("start")
    compile_kernels("exact")
    payload = read_results("uai") | {"machine": machine()}
    for name in exact:
        row = measure(folder / f"{name}.uai", exact[name], arguments.memory_limit, arguments.n_jobs)
        payload.setdefault("instances", {})[name] = row
        write_results("uai", payload)
        print(" ".join(map(str, cells(name, row))), flush=True)
    rows = {name: payload["instances"][name] for name in exact}
    print(markdown(HEADER, [cells(name, row) for name, row in rows.items()]))
    for name, row in rows.items():
        if "too_large" in row:
            print(f"{name} does not fit: {row['too_large']}")
    print_load("end")


if __name__ == "__main__":
    main()
