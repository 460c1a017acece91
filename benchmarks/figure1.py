"""Figure 1 of the stochastic bound paper: SGD, SPFB and LSPFB of rank 1, 5, 10, 100, as published and mended.

Batches of 1,000 as in the paper, l2 = 1 on the sum. Published: curvature of the gradient's own batch, low rank by the
paper's update. Mended: moving average of earlier batches, low rank by the exact update. **Every** method's step is
tuned on one grid: c / t (t counts batches) of the scaled step for the bounds, c / epoch of the gradient of the mean
loss for SGD, the best by the objective after the last epoch. The paper's own 4/t is among them, and the default
`StochasticBound`, which has no step, is shown as it is. On images the published SPFB, which factors a matrix of 7,850
for each batch, runs only if asked for. Test error is that of the parameters with the best step, on held-out rows:
Fashion-MNIST's own test part; a fifth of adult, and of KMNIST, of which only the test part (10,000) is public here.
`--rows` cuts the sets; every curve ends when its time is up, and curves that were cut say so by their number of
epochs. Also prints the bias experiment: excess per example on wine after starting at the optimum.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from datasets import idx, load, standardize
from harness import digits, machine, markdown, print_load, with_threads, write_results

SETS = ("adult14", "fashion_mnist", "kmnist")
STEPS = (0.01, 0.1, 1, 4, 20, 100)
RANKS = (1, 5, 10, 100)
BATCH_SIZE = 1000
TEST_PART = 0.2
SPECIFIED_BIAS = {"as published": "0.72 0.28 0.031 0.0034", "lagged average": "2e-4 3e-5 2e-5 7e-6"}


def split(name: str, rows: int | None) -> tuple[Any, Any, Any, Any]:
    """Training and test rows and labels."""
    problem = load(name)
    if name == "fashion_mnist":
        X, y, X_test, y_test = problem.X, problem.y, *idx("fashion_mnist", "t10k")
    else:
        order = np.random.default_rng(0).permutation(len(problem.y))
        test = round(TEST_PART * len(order))
        X, y, X_test, y_test = (
            *(problem.X[order[test:]], problem.y[order[test:]]),
            problem.X[order[:test]],
            problem.y[order[:test]],
        )
    return X[:rows], y[:rows], X_test, y_test


def error(objective: Any, theta: Any, X_test: Any, y_test: Any) -> float:
    """The part of the test rows whose label is not the most probable one."""
    coefficients, intercepts = objective.features.unpack(theta)
    scores = X_test @ coefficients.T + intercepts
    best = (scores[:, 0] > 0.0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)
    return float(np.mean(best != y_test))


def curve(objective: Any, solver: Any, optimum: float, epochs: int, limit: float) -> tuple[list[tuple[float, float]], Any]:
    """Seconds and relative excess after every epoch, until the time is up; and the parameters at the end."""
    from partita import minimize

    points: list[tuple[float, float]] = []
    spent = [0.0]
    last = [np.zeros(objective.size)]

    def record(progress: Any) -> None:
        begin = time.perf_counter()
        if progress.iteration:
            points.append((progress.seconds - spent[0], (objective.at(progress.parameters).value - optimum) / optimum))
            last[0] = progress.parameters
        spent[0] += time.perf_counter() - begin

    with np.errstate(all="ignore"):
        minimize(objective, solver=solver, max_iter=epochs, tol=0.0, time_limit=limit, callbacks=[record])
    return points, last[0]


def candidates(
    ranks: tuple[int, ...], highest_published: int, dense_published: bool, lag: int, steps: tuple[float, ...]
) -> dict[str, list[Any]]:
    """For every method its solvers, one for each step of the grid."""
    from partita import SGD, StochasticBound

    options: dict[str, Any] = {"batch_size": BATCH_SIZE, "patience": 1000}
    made: dict[str, list[Any]] = {"SGD": [SGD(learning_rate=c, decay=1.0, **options) for c in steps]}
    kinds: dict[str, dict[str, Any]] = {"SPFB, published": {"curvature": "batch"}} if dense_published else {}
    kinds["SPFB, mended"] = {"curvature": "ema", "lag": lag}
    for k in ranks:
        if k <= highest_published:
            kinds[f"LSPFB {k}, published"] = {"curvature": "batch", "rank": k, "low_rank": "corrected"}
        kinds[f"LSPFB {k}, mended"] = {"curvature": "ema", "rank": k, "lag": lag}
    for label, kind in kinds.items():
        made[label] = [StochasticBound(step=f"{c:g}/t", **kind, **options) for c in steps]
    made["default"] = [StochasticBound(patience=1000)]
    return made


def tuned(objective: Any, optimum: float, solvers: list[Any], epochs: int, limit: float) -> dict[str, Any]:
    """The run of the best of some solvers, by the excess at the end, and what all of them reached."""
    runs = []
    for solver in solvers:
        points, theta = curve(objective, solver, optimum, epochs, limit)
        reached = points[-1][1] if points and np.isfinite(points[-1][1]) else np.inf
        runs.append((reached, str(getattr(solver, "step", None) or f"{solver.learning_rate:g}/epoch"), points, theta))
    reached, step, points, theta = min(runs, key=lambda run: run[0])
    return {"step": step, "points": points, "theta": theta, "all": {run[1]: run[0] for run in runs}}


def draw(name: str, curves: dict[str, list[tuple[float, float]]], path: Path) -> None:
    """Excess by epoch and by seconds."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 2, figsize=(11, 4.2), sharey=True)
    for label, points in curves.items():
        if not points:
            continue
        style = "--" if "published" in label else ":" if label == "SGD" else "-"
        width = 2.5 if label == "default" else 1.3
        excess = [max(value, 1e-9) for _, value in points]
        axes[0].plot(range(1, len(points) + 1), excess, style, marker=".", linewidth=width, label=label)
        axes[1].plot([second for second, _ in points], excess, style, marker=".", linewidth=width)
    axes[0].set(xlabel="epochs", ylabel="relative excess of the objective", yscale="log", title=name)
    axes[1].set(xlabel="seconds", xscale="log", yscale="log")
    for axis in axes:
        axis.set_ylim(top=30.0)
    figure.legend(loc="outside right upper", fontsize=8)
    figure.subplots_adjust(right=0.8)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def bias() -> None:
    """Excess per example on wine after 20 epochs from the optimum, beside the specification's."""
    from sklearn.datasets import load_wine

    from partita import StochasticBound, minimize
    from partita.softmax.estimators.softmax_regression import softmax_objective

    X, y = load_wine(return_X_y=True)
    objective = softmax_objective(standardize(X), y, l2=1.0, penalize_intercept=True)
    optimum = minimize(objective, tol=1e-12)
    rows = []
    for label, options in (
        ("as published", {"curvature": "batch", "step": "4/t"}),
        ("lagged average, 4/t", {"curvature": "ema", "step": "4/t"}),
        ("lagged average", {"curvature": "ema"}),
    ):
        cells = []
        for batch_size in (1, 5, 20, 60):
            values = [
                minimize(
                    objective,
                    optimum.parameters,
                    StochasticBound(batch_size=batch_size, random_state=seed, patience=1000, **options),
                    max_iter=20,
                    tol=0.0,
                ).value
                for seed in range(3)
            ]
            cells.append(digits((float(np.mean(values)) - optimum.value) / len(y), 2))
        rows.append([label, *cells, SPECIFIED_BIAS.get(label, "-")])
    print("\nBias on wine: excess per example after 20 epochs from the optimum, batch 1, 5, 20, 60\n")
    print(markdown(["method", "1", "5", "20", "60", "specification"], rows))


def figure(name: str, arguments: argparse.Namespace) -> dict[str, Any]:
    """All methods on one set: the picture, the table, and what goes into the file of results."""
    from partita import SoftmaxRegression
    from partita.softmax.estimators.softmax_regression import softmax_objective

    X, y, X_test, y_test = split(name, arguments.rows)
    image = X.shape[1] > 100
    best = SoftmaxRegression(l2=1.0, tol=1e-8).fit(X, y)
    optimum = float(best.trace_.objective[-1])
    objective = softmax_objective(X, y, l2=1.0)
    ranks = tuple(int(k) for k in arguments.ranks.split(","))
    steps = tuple(float(c) for c in arguments.steps.split(","))
    highest = arguments.highest_published if image else max(ranks)
    methods = candidates(ranks, highest, not image or arguments.dense_published, 5 if image else 1, steps)
    runs = {}
    for label, solvers in methods.items():
        runs[label] = tuned(objective, optimum, solvers, arguments.epochs, arguments.limit)
        print(f"{name}: {label} done", flush=True)
    draw(name, {label: run["points"] for label, run in runs.items()}, arguments.out / f"figure1-{name}.png")
    table, result = [], {}
    for label, run in runs.items():
        points = run["points"]
        wrong = error(objective, run["theta"], X_test, y_test)
        result[label] = {"step": run["step"], "points": points, "test error": wrong, "all": run["all"]}
        cells = [digits(points[min(e, len(points)) - 1][1], 2) if points else "-" for e in (1, 4, arguments.epochs)]
        table.append([label, run["step"], len(points), *cells, f"{wrong:.4f}", digits(points[-1][0], 2) if points else "-"])
    wrong = float(np.mean(best.predict(X_test) != y_test))
    print(f"\n{name}, {len(y)} rows: relative excess of the objective, each method at its best step")
    print(f"(test error at the optimum: {wrong:.4f})\n")
    header = ["method", "step", "epochs", "1", "4", "last", "test error", "seconds"]
    print(markdown(header, table), flush=True)
    return {"rows": len(y), "test error at the optimum": wrong, "methods": result}


def main() -> None:
    """Draw `docs/figure1-<set>.png` and print the excess after the last epoch, and the test error."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--rows", type=int, help="training rows of every set; default: all")
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per curve, looked at after every epoch")
    parser.add_argument("--ranks", default=",".join(map(str, RANKS)))
    parser.add_argument("--steps", default=",".join(map(str, STEPS)), help="c of the steps c/t that are tried")
    parser.add_argument("--highest-published", type=int, default=10, help="highest rank of the published method on images")
    parser.add_argument(
        "--dense-published", action="store_true", help="published SPFB on images: a matrix of 7,850 per batch"
    )
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    with_threads(arguments.threads)
    print_load("start")
    bias()
    results: dict[str, Any] = {"machine": machine()}
    for name in arguments.sets.split(","):
        results[name] = figure(name, arguments)
        write_results("figure1", results)
    print_load("end")


if __name__ == "__main__":
    main()
