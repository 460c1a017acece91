"""Training on factor graphs: weights recovered at the rate of the square root of n, and what every solver needs.

Data are exact samples of known weights: Ising grids (a field for every spin, a coupling for every pair, all free), and CRFs
on random trees of 15 nodes with 3 labels, 4 features of nodes, and a table for the edges. Nothing is penalised, so weights
of CRFs are compared centred: those of a feature sum to zero over the labels, and the table of the edges sums to zero,
which takes away what no data can tell. `rate` is the RMSE times the square root of n, relative to the first row: one is as
expected. `z^2` is the mean of squared errors by squared standard errors: one if these are right.

The second table has seconds (iterations) from zero to an excess over the best objective found, relative to it. The bound is
a dense matrix by a recursion over the junction tree; where it is too large it is refused.
"""

import argparse
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from bp_race import ising
from harness import digits, machine, markdown, print_load, write_results
from uai import timed

from partita import CapabilityError, GraphCRF, MarkovNetwork
from partita.structures import FactorGraph

NODES, LABELS, FEATURES = 15, 3, 4
SOLVERS = ("majorize", "lbfgs", "newton", "auto", "cg", "steepest")
TARGETS = (1e-2, 1e-4, 1e-6, 1e-8)
TOL = 1e-9  # of the gradient, per value in the data
Fit = Callable[..., Any]


def ising_problem(side: int, n: int, seed: int) -> tuple[Fit, np.ndarray]:
    """A call that fits n samples of a grid, and the weights they are drawn from."""
    pairs, J, h = (x / 2 if x.dtype.kind == "f" else x for x in ising(side))
    potentials = np.concatenate([np.outer(h, [-1, 1]).ravel(), np.outer(J, [1, -1, -1, 1]).ravel()])
    X = FactorGraph.grid(side, side).sample(potentials, n, seed)

    def fit(**options: Any) -> Any:
        return MarkovNetwork.ising(pairs.tolist(), **options).fit(X)

    return fit, np.concatenate([h, J])


def crf_problem(n: int, seed: int) -> tuple[Fit, np.ndarray]:
    """A call that fits n random trees, and the centred weights from which their labels are drawn."""
    truth = np.random.default_rng(0)
    nodes, edges = truth.standard_normal((FEATURES, LABELS)), 0.5 * truth.standard_normal((LABELS, LABELS))
    weights = np.concatenate([(nodes - nodes.mean(1, keepdims=True)).ravel(), (edges - edges.mean()).ravel()])
    rng = np.random.default_rng(seed)
    X = []
    for _ in range(n):
        tree = np.column_stack([rng.integers(0, np.arange(1, NODES)), np.arange(1, NODES)])
        X.append((rng.standard_normal((NODES, FEATURES)), tree))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a model that is not trained, to be given the true weights
        model = GraphCRF(l2=0.0, fit_intercept=False, max_iter=0).fit(X, [np.arange(NODES) % LABELS] * n)
    model.parameters_ = weights
    y = [labels[:, 0] for labels in model.sample(X, 1, rng)]

    def fit(**options: Any) -> Any:
        return GraphCRF(l2=0.0, fit_intercept=False, **options).fit(X, y)

    return fit, weights


def centred(model: Any) -> np.ndarray:
    if isinstance(model, MarkovNetwork):
        return np.asarray(model.parameters_)
    nodes, edges = model.weights_.values()
    return np.concatenate([(nodes - nodes.mean(1, keepdims=True)).ravel(), (edges - edges.mean()).ravel()])


def errors(model: Any) -> np.ndarray:
    """Standard errors, in the order of the parameters."""
    found = model.standard_errors()
    return np.concatenate([e.ravel() for e in found.values()]) if isinstance(found, dict) else found


def recovery(name: str, problem: Callable[[int, int], tuple[Fit, np.ndarray]], sizes: list[int], repeats: int) -> list[Any]:
    rows: list[dict[str, Any]] = []
    for n in sizes:
        squares, z2 = [], []
        for seed in range(repeats):
            fit, truth = problem(n, 1000 * n + seed)
            model = fit(tol=1e-8)
            error = centred(model) - truth
            squares.append(float(np.mean(error**2)))
            z2.append(float(np.mean((error / errors(model)) ** 2)))
        rmse = float(np.sqrt(np.mean(squares)))
        row = {"problem": name, "weights": len(truth), "n": n, "repeats": repeats, "rmse": rmse}
        row["rate"] = rmse * np.sqrt(n) / (rows[0]["rmse"] * np.sqrt(rows[0]["n"])) if rows else 1.0
        row |= {"z2": float(np.mean(z2)), "z2_error": float(np.std(z2, ddof=1) / np.sqrt(repeats))}
        rows.append(row)
    return rows


def race(name: str, fit: Fit, max_iter: int) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for solver in SOLVERS:
        row: dict[str, Any] = {"problem": name, "solver": solver}
        try:
            fit(solver=solver, tol=TOL, max_iter=2)  # load the compiled kernels
            model, row["seconds"] = timed(lambda solver=solver: fit(solver=solver, tol=TOL, max_iter=max_iter))
        except CapabilityError:
            rows.append(row | {"refused": True})
            continue
        trace = model.trace_
        row |= {"status": model.status_.name, "iterations": model.n_iter_, "trace_seconds": list(map(float, trace.seconds))}
        row |= {"objective": list(map(float, trace.objective)), "weights": centred(model).tolist()}
        rows.append(row)
        print(
            f"{name}, {solver}: {row['objective'][-1]:.6f}, {row['iterations']} iterations, {row['seconds']:.2f} s",
            flush=True,
        )
    return rows


def race_cells(rows: list[dict[str, Any]]) -> list[list[Any]]:
    full = [row for row in rows if "objective" in row]
    best = min(min(row["objective"]) for row in full)
    optimum = next(np.array(row["weights"]) for row in full if row["solver"] == "newton")
    cells = []
    for row in rows:
        line = [row["problem"], row["solver"] + (" (refused)" if row.get("refused") else "")]
        if "objective" not in row:
            cells.append([*line, *["-"] * (len(TARGETS) + 4)])
            continue
        values = np.array(row["objective"])
        for target in TARGETS:
            at = np.flatnonzero(values <= best + target * abs(best))
            line.append(f"{digits(row['trace_seconds'][at[0]], 2)} ({at[0]})" if len(at) else "-")
        each = 1e3 * row["trace_seconds"][-1] / max(row["iterations"], 1)
        apart = np.abs(np.array(row["weights"]) - optimum).max()
        line += [f"{row['iterations']} {row['status'].lower()}", digits(each), f"{(values.min() - best) / abs(best):.0e}"]
        cells.append([*line, f"{apart:.0e}"])
    return cells


def recover(repeats: int) -> list[dict[str, Any]]:
    """The first table."""
    rows = recovery("Ising 10 x 10", lambda n, seed: ising_problem(10, n, seed), [500, 2000, 8000], repeats)
    rows += recovery("CRF on trees", crf_problem, [50, 200, 800], 5 * repeats)
    header = ["problem", "weights", "n", "fits", "RMSE", "rate", "z^2"]
    table = [
        [row[key] for key in ("problem", "weights", "n", "repeats")]
        + [digits(row["rmse"]), f"{row['rate']:.3f}", f"{row['z2']:.2f} +- {row['z2_error']:.2f}"]
        for row in rows
    ]
    print(markdown(header, table), flush=True)
    return rows


def main() -> None:
    """Train, print, and write `results/graph_training.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=6, help="fits for each n; 0 leaves the first table out")
    parser.add_argument("--max-iter", type=int, default=1000, help="most iterations of a solver")
    arguments = parser.parse_args()
    print_load("start")
    warnings.simplefilter("ignore")  # of fits that are stopped early
    rows = recover(arguments.repeats) if arguments.repeats else []
    problems = {"Ising 10 x 10, n = 2000": ising_problem(10, 2000, 1), "Ising 8 x 8, n = 2000": ising_problem(8, 2000, 1)}
    problems["CRF, 200 trees"] = crf_problem(200, 1)
    races = {name: race(name, fit, arguments.max_iter) for name, (fit, _) in problems.items()}
    header = ["problem", "solver", *(f"{target:g}" for target in TARGETS), "iterations", "ms each", "excess", "weights off"]
    print(markdown(header, [line for each in races.values() for line in race_cells(each)]))
    print_load("end")
    write_results("graph_training", {"machine": machine(), "recovery": rows, "race": races})


if __name__ == "__main__":
    main()
