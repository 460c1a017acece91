"""Loopy belief propagation on a grid against PGMax: seconds for a parallel sweep, and the same messages after it.

PGMax (`pip install pgmax "jax==0.4.30" "jaxlib==0.4.30" "numpy<2.3"`; its last release fails with newer versions) runs its
own update under `jax.jit`, in single and in double precision. Every program has a process of its own, tied to as many cores
as it may use, which builds the model, compiles, and then runs when it is told to: one after another, repetition by
repetition. Seconds for a sweep are those of the longer run less those of the shorter one, by the sweeps between them:
setting up and concluding cancel. The Ising potentials have a fixed seed, and messages are compared as log-odds.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from harness import digits, machine, markdown, print_load, write_results

SHORT, LONG = 20, 120
Run = Callable[[int, float], np.ndarray]


def ising(side: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Pairs of neighbours, couplings and fields; spins are -1 and 1."""
    rng = np.random.default_rng(0)
    number = np.arange(side * side).reshape(side, side)
    right = np.column_stack([number[:, :-1].ravel(), number[:, 1:].ravel()])
    down = np.column_stack([number[:-1].ravel(), number[1:].ravel()])
    pairs = np.vstack([right, down])
    return pairs, rng.normal(0.0, 0.5, len(pairs)), rng.normal(0.0, 0.5, side * side)


def partita(side: int, threads: int, double: bool) -> Run:
    from partita.structures import FactorGraph

    _, J, h = ising(side)
    graph = FactorGraph.grid(side, side, n_jobs=threads)  # its pairs are in the same order
    potentials = np.concatenate([np.outer(h, [-1, 1]).ravel(), np.outer(J, [1, -1, -1, 1]).ravel()])

    def run(sweeps: int, damping: float) -> np.ndarray:
        options = {"schedule": "parallel", "damping": damping, "max_iter": sweeps, "tol": 0.0}
        messages = graph.infer(potentials, "bp", **options).messages.reshape(-1, 2)
        return np.asarray(messages[:, 1] - messages[:, 0])

    return run


def pgmax(side: int, threads: int, double: bool) -> Run:
    import jax

    jax.config.update("jax_enable_x64", double)
    from pgmax import fgraph, fgroup, infer, vgroup

    kind = np.float64 if double else np.float32
    pairs, J, h = ising(side)
    grid = vgroup.NDVarArray(num_states=2, shape=(side, side))
    names = [[grid[divmod(int(v), side)] for v in pair] for pair in pairs]
    tables = np.multiply.outer(J, np.array([[1, -1], [-1, 1]])).astype(kind)
    graph = fgraph.FactorGraph(variable_groups=[grid])
    graph.add_factors(fgroup.PairwiseFactorGroup(variables_for_factors=names, log_potential_matrix=tables))
    engine = infer.build_inferer(graph.bp_state, backend="bp")
    evidence = np.multiply.outer(h, np.array([-1, 1])).reshape(side, side, 2).astype(kind)
    arrays = engine.init(evidence_updates={grid: evidence})
    compiled = jax.jit(lambda a, n, d: engine.run(a, num_iters=n, damping=d, temperature=1.0), static_argnums=1)

    def run(sweeps: int, damping: float) -> np.ndarray:
        messages = np.asarray(compiled(arrays, sweeps, damping).ftov_msgs)
        return np.asarray(messages.reshape(-1, 2)[:, 1] - messages.reshape(-1, 2)[:, 0], dtype=np.float64)

    return run


def child(program: str, side: int, threads: int, double: bool, dampings: list[float], folder: str) -> None:
    """Compile, save messages after both numbers of sweeps, then answer every line on standard input with seconds."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:threads])
    run = {"partita": partita, "PGMax": pgmax}[program](side, threads, double)
    for damping in dampings:
        messages = [run(sweeps, damping) for sweeps in (SHORT, LONG)]
        np.save(Path(folder) / f"{program}-{threads}-{double}-{damping}.npy", messages)
    print("ready", flush=True)
    for line in sys.stdin:
        seconds = []
        for sweeps in (SHORT, LONG):
            start = time.perf_counter()
            run(sweeps, float(line))
            seconds.append(time.perf_counter() - start)
        print(json.dumps(seconds), flush=True)


def race(side: int, threads: int, dampings: list[float], repeats: int, limit: float) -> list[dict[str, Any]]:
    programs = [("partita", threads, True), ("PGMax", threads, True), ("PGMax", threads, False)]
    environment = os.environ | {"NUMBA_NUM_THREADS": str(threads), "OMP_NUM_THREADS": str(threads)}
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as folder:
        children = []
        for program in programs:
            command = [sys.executable, __file__, "--child", json.dumps([program[0], side, *program[1:], dampings, folder])]
            pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "env": environment}
            children.append(subprocess.Popen(command, **pipes))
            if not children[-1].stdout.readline().startswith("ready"):
                raise RuntimeError(f"{program[0]} did not start; see above")
        for damping in dampings:
            times: list[list[list[float]]] = [[] for _ in programs]
            for _ in range(repeats):
                for process, seen in zip(children, times, strict=True):
                    process.stdin.write(f"{damping}\n")
                    process.stdin.flush()
                    seen.append(json.loads(process.stdout.readline()))
            ours = np.load(Path(folder) / f"partita-{threads}-True-{damping}.npy")
            for (program, _, double), seen in zip(programs, times, strict=True):
                messages = np.load(Path(folder) / f"{program}-{threads}-{double}-{damping}.npy")
                short, long = np.array(seen).T
                row = {"program": program, "precision": "double" if double else "single", "threads": threads}
                row |= {"damping": damping, "sweep": float(np.median(long - short)) / (LONG - SHORT)}
                row |= {"call": float(np.median(long)), "difference": float(np.abs(messages - ours).max()), "seconds": seen}
                rows.append(row)
        for process in children:
            process.stdin.close()
            process.wait(limit)
    return rows


def main() -> None:
    """Race, print, and write `results/bp_race.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=200)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--dampings", type=float, nargs="+", default=[0.0, 0.5])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--child", type=json.loads)
    arguments = parser.parse_args()
    if arguments.child:
        child(*arguments.child)
        return
    print_load("start")
    rows = [
        row
        for threads in arguments.threads
        for row in race(arguments.side, threads, arguments.dampings, arguments.repeats, limit=60.0)
    ]
    first = {(row["threads"], row["damping"]): row["sweep"] for row in rows if row["program"] == "partita"}
    table = []
    for row in rows:
        ratio = row["sweep"] / first[row["threads"], row["damping"]]
        cells = [row[key] for key in ("program", "precision", "threads", "damping")]
        cells += [digits(1e3 * row["sweep"]), f"{ratio:.1f}x", digits(row["call"]), f"{row['difference']:.0e}"]
        table.append(cells)
    header = ["program", "precision", "threads", "damping", "ms for a sweep", "ratio", f"s for {LONG} sweeps", "difference"]
    print(f"{arguments.side} x {arguments.side} grid; difference: of log-odds of messages after {SHORT} and {LONG} sweeps")
    print(markdown(header, table))
    print_load("end")
    write_results("bp_race", {"machine": machine(), "side": arguments.side, "rows": rows})


if __name__ == "__main__":
    main()
