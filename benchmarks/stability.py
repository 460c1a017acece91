"""`StochasticBound` at its defaults: the relative excess after 20 epochs, and how fits end, for batches of 1, 5, 20 and 100.

Five standardised sets (adult and w8a: 3,000 rows of the LIBSVM versions). The excess is (objective - optimum) / optimum of
what is returned, without the default's patience; the status is that of a fit with everything at its default but 100
epochs, and beside it the epochs that it took.
"""

import argparse
from typing import Any

import numpy as np
from datasets import load, standardize
from harness import digits, machine, markdown, print_load, with_threads, write_results

SETS = ("wine", "breast_cancer", "digits", "a9a", "w8a")
ROWS = 3000


def problem(name: str, rows: int) -> tuple[Any, Any]:
    """Standardised columns and labels, of a random part of the rows where there are more."""
    loaded = load(name)
    chosen = np.random.default_rng(0).permutation(len(loaded.y))[:rows] if len(loaded.y) > rows else np.arange(len(loaded.y))
    X = loaded.X[chosen]
    X = X.toarray() if hasattr(X, "toarray") else X
    return standardize(X[:, X.std(axis=0) > 0.0]), loaded.y[chosen]


def cell(objective: Any, optimum: float, batch_size: int, epochs: int) -> dict[str, Any]:
    """The excess after so many epochs, and how a fit at the defaults ends."""
    from partita import StochasticBound, minimize

    solver = StochasticBound(batch_size=batch_size, patience=10**6)
    with np.errstate(all="ignore"):
        fixed = minimize(objective, solver=solver, max_iter=epochs, tol=0.0)
        free = minimize(objective, solver=StochasticBound(batch_size=batch_size), max_iter=100)
    return {
        "excess": (fixed.value - optimum) / optimum,
        "seconds": float(fixed.trace.seconds[-1]),
        "status": free.status.name,
        "epochs": free.n_iter,
        "final": (free.value - optimum) / optimum,
    }


def main() -> None:
    """Print one table for each penalty."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--batches", default="1,5,20,100")
    parser.add_argument("--l2", default="1,0.1")
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--rows", type=int, default=ROWS)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    with_threads(arguments.threads)
    print_load("start")
    from partita import minimize
    from partita.softmax.estimators.softmax_regression import softmax_objective

    batches = [int(b) for b in arguments.batches.split(",")]
    results: dict[str, Any] = {"machine": machine()}
    for l2 in map(float, arguments.l2.split(",")):
        table = []
        for name in arguments.sets.split(","):
            objective = softmax_objective(*problem(name, arguments.rows), l2=l2)
            optimum = minimize(objective, tol=1e-10).value
            cells = {b: cell(objective, optimum, b, arguments.epochs) for b in batches}
            results[f"{name}, l2 = {l2:g}"] = cells
            table.append([name, *(f"{digits(c['excess'], 2)}, {c['status']} at {c['epochs']}" for c in cells.values())])
            print(f"{name} done", flush=True)
        print(f"\nl2 = {l2:g}: relative excess after {arguments.epochs} epochs; how and when fits at the defaults end\n")
        print(markdown(["set", *(f"batch {b}" for b in batches)], table), flush=True)
    print_load("end")
    write_results("stability", results)


if __name__ == "__main__":
    main()
