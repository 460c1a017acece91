"""Approximate inference on the 33 UAI 2014 (PR) instances: bounds around log Z, and errors of belief propagation.

All columns are differences to the exact log Z of `logz.csv`, in nats. `upper` is tree-reweighted belief propagation;
`fitted` the best of it with trees fitted to the potentials, also on joint states where tables have more than two
variables. `lower` is the best of mean field from ten starts, from the beliefs of `upper`, and from a decoded
configuration; its seconds are of the ten starts. The error of a variable is the largest over its states. Numbers after
seconds are sweeps, with `*` where messages have not converged: there other options are tried, and named below the table.
Bounds hold all the same. Seconds do not include compilation.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from harness import digits, machine, markdown, print_load, read_results, write_results
from uai import chosen_instances, compile_kernels, timed

from partita.core import Result
from partita.io import read_evidence, read_uai
from partita.structures import FactorGraph

HEADER = ["instance", "exact log Z", "lower", "upper", "fitted", "bracket", "gap", "BP log Z", "BP marginals: worst", "mean"]
HEADER += ["lower s", "upper s", "fitted s", "BP s", "exact s"]
#: Tried in turn until messages converge.
ATTEMPTS: dict[str, list[dict[str, Any]]] = {
    "trw": [{}, {"max_iter": 5000}, {"damping": 0.5, "max_iter": 5000}],
    "bp": [{}, {"damping": 0.9, "max_iter": 5000}],
}
TREES = {"tree_steps": 10, "max_iter": 300, "lower": False}
JOINT = TREES | {"joint": True}


def attempts(graph: FactorGraph, potentials: np.ndarray, engine: str) -> tuple[Result, dict[str, Any]]:
    """The first answer that has converged, else the lowest upper bound, or of BP the last answer."""
    tried = []
    for options in ATTEMPTS[engine]:
        result, seconds = timed(lambda options=options: graph.infer(potentials, engine, **options))
        tried.append((result, options, seconds))
        if result.status.ok:
            break
    if not result.status.ok and engine == "trw":
        tried.sort(key=lambda t: -t[0].upper[0])
    result, options, seconds = tried[-1]
    row = {"options": options, "seconds": seconds, "sweeps": result.n_iter, "converged": result.status.ok}
    return result, row | {"log_z": float(result.log_z[0])}


def marginal_errors(graph: FactorGraph, found: np.ndarray, exact: np.ndarray) -> dict[str, float]:
    """The largest and the mean difference, over variables that are not observed."""
    pairs = zip(graph.variable_marginals(found), graph.variable_marginals(exact), strict=True)
    worst = [float(np.abs(p - q).max()) for p, q in pairs if len(p) > 1]
    return {"worst": max(worst), "mean": float(np.mean(worst))}


def measure(path: Path, log_z: float, memory_limit: float) -> dict[str, Any]:
    graph, potentials = read_uai(path, read_evidence(f"{path}.evid"))
    exact, seconds = timed(lambda: graph.infer(potentials, "exact", memory_limit=memory_limit))
    row: dict[str, Any] = {"log_z": log_z, "exact_seconds": seconds}

    reweighted, row["trw"] = attempts(graph, potentials, "trw")
    row["trw"] |= {"upper": float(reweighted.upper[0]), "lower": float(reweighted.lower[0])}
    beliefs, row["bp"] = attempts(graph, potentials, "bp")
    row["bp"]["marginals"] = marginal_errors(graph, beliefs.marginals, exact.marginals)

    field, seconds = timed(lambda: graph.infer(potentials, "mean_field", n_starts=10))
    row["mean_field"] = {"seconds": seconds, "converged": field.status.ok, "lower": float(field.lower[0])}
    row["fitted"] = {}
    for name, options in (("pairs", TREES), ("joint", JOINT)):
        if name == "pairs" or max(map(len, graph.factors)) > 2:
            result, seconds = timed(lambda options=options: graph.infer(potentials, "trw", **options))
            row["fitted"][name] = {"upper": float(result.upper[0]), "seconds": seconds, "converged": result.status.ok}
    return row


def cells(name: str, row: dict[str, Any]) -> list[Any]:
    z, trw, bp, fitted = row["log_z"], row["trw"], row["bp"], list(row["fitted"].values())
    lower = max(trw["lower"], row["mean_field"]["lower"])
    best = min(trw["upper"], *(f["upper"] for f in fitted))
    rounding = 1e-12 * abs(z)  # of log Z itself
    holds = "yes" if lower <= z + rounding and z - rounding <= best else "NO"
    values = [f"{lower - z:.3g}", f"{trw['upper'] - z:+.3g}", f"{best - z:+.3g}", holds, f"{best - lower:.3g}"]
    errors = [f"{bp['log_z'] - z:+.2g}", *(f"{bp['marginals'][key]:.2g}" for key in ("worst", "mean"))]
    marks = [f"{digits(r['seconds'], 2)} ({r['sweeps']}{'' if r['converged'] else '*'})" for r in (trw, bp)]
    seconds = [digits(x, 2) for x in (row["mean_field"]["seconds"], sum(f["seconds"] for f in fitted), row["exact_seconds"])]
    return [name, f"{z:.4f}", *values, *errors, seconds[0], marks[0], seconds[1], marks[1], seconds[2]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="instances whose names have one of these parts: Grids,DBN")
    parser.add_argument("--memory-limit", type=float, default=12e9, help="bytes, of exact marginals (default: 12e9)")
    arguments = parser.parse_args()
    print_load("start")
    folder, exact = chosen_instances(arguments.only)
    compile_kernels("exact", "trw", "bp", "mean_field")
    payload = read_results("uai_bounds") | {"machine": machine()}
    for name, log_z in exact.items():
        row = measure(folder / f"{name}.uai", log_z, arguments.memory_limit)
        payload.setdefault("instances", {})[name] = row
        write_results("uai_bounds", payload)
        print(" ".join(map(str, cells(name, row))), flush=True)
    rows = {name: payload["instances"][name] for name in exact}
    print(markdown(HEADER, [cells(name, row) for name, row in rows.items()]))
    for engine in ATTEMPTS:
        for options in ATTEMPTS[engine][1:]:
            named = [name for name, row in rows.items() if row[engine]["options"] == options]
            print(f"{engine} with {options}: {', '.join(named) or 'none'}")
    print_load("end")


if __name__ == "__main__":
    main()
