"""Stochastic solvers: excess loss by epoch and by seconds. Partita's default against rivals tuned over a grid.

Excess is (objective - optimum) / optimum of the same penalised objective. Every rival has the same batch size and six
learning rates; at each of our times the best excess that any of its six runs has reached is taken, so rivals are tuned for
every cell apart. Evaluating the objective is not timed. scikit-learn's SGDClassifier trains one class against the rest, so
on more than two classes it has another optimum; it is shown on adult only.
"""

import argparse
import time
from typing import Any

import numpy as np
from datasets import Problem, load
from harness import digits, machine, markdown, print_load, with_threads, write_results

EPOCHS = 8
RATES = {
    "plain": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    "averaged": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
    "adam": (0.001, 0.003, 0.01, 0.03, 0.1, 0.3),
    "saga": (0.03, 0.1, 0.3, 1.0, 3.0, 10.0),
}
SKLEARN_RATES = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
Curve = list[tuple[float, float]]


def trace(objective: Any, solver: Any, optimum: float, epochs: int) -> Curve:
    """Seconds and excess after every epoch."""
    from partita import minimize

    curve: Curve = []
    spent = [0.0]

    def record(progress: Any) -> None:
        begin = time.perf_counter()
        if progress.iteration:
            value = objective.at(progress.parameters).value
            curve.append((progress.seconds - spent[0], (value - optimum) / optimum))
        spent[0] += time.perf_counter() - begin

    with np.errstate(all="ignore"):
        minimize(objective, solver=solver, max_iter=epochs, tol=0.0, callbacks=[record])
    return curve


def sklearn_curve(problem: Problem, objective: Any, optimum: float, l2: float, rate: float, epochs: int) -> Curve:
    """SGDClassifier, one partial_fit per epoch on the same objective (binary)."""
    from sklearn.linear_model import SGDClassifier

    rows = problem.X.shape[0]
    model = SGDClassifier(
        loss="log_loss", alpha=l2 / rows, learning_rate="invscaling", eta0=rate, power_t=0.25, average=False, random_state=0
    )
    curve: Curve = []
    spent = 0.0
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(rows)
        X, y = problem.X[order], problem.y[order]  # partial_fit does not shuffle; not timed
        begin = time.perf_counter()
        model.partial_fit(X, y, classes=np.unique(problem.y))
        spent += time.perf_counter() - begin
        value = objective.at(objective.features.pack(model.coef_, model.intercept_)).value
        curve.append((spent, (value - optimum) / optimum))
    return curve


def best_by(curves: list[Curve], seconds: float) -> float:
    """The lowest excess that any run has reached within `seconds`; the first epoch counts at any time."""
    reached = [excess for curve in curves for second, excess in curve if second <= seconds and np.isfinite(excess)]
    return min(reached, default=min(curve[0][1] for curve in curves if np.isfinite(curve[0][1])))


def race(name: str, l2: float, epochs: int) -> dict[str, Any]:
    """All curves on one data set, interleaved with a repetition of ours at the end."""
    from partita import SGD, SoftmaxRegression, StochasticBound
    from partita.softmax.estimators.softmax_regression import softmax_objective

    problem = load(name)
    optimum = float(SoftmaxRegression(l2=l2, tol=1e-8).fit(problem.X, problem.y).trace_.objective[-1])
    objective = softmax_objective(problem.X, problem.y, l2=l2)
    trace(objective, StochasticBound(), optimum, 3)  # compile
    curves: dict[str, list[Curve]] = {"StochasticBound (default)": [trace(objective, StochasticBound(), optimum, epochs)]}
    for method, rates in RATES.items():
        trace(objective, SGD(method=method, learning_rate=rates[0]), optimum, 1)
        # Rivals may run longer than we do: what counts is seconds.
        curves[f"SGD {method}"] = [
            trace(objective, SGD(method=method, learning_rate=rate, patience=100), optimum, 2 * epochs) for rate in rates
        ]
    if problem.n_classes == 2:
        curves["sklearn SGDClassifier"] = [
            sklearn_curve(problem, objective, optimum, l2, rate, 2 * epochs) for rate in SKLEARN_RATES
        ]
    curves["StochasticBound (default)"].append(trace(objective, StochasticBound(), optimum, epochs))
    return curves


def report(name: str, curves: dict[str, list[Curve]]) -> None:
    """Excess after 1, 4 and 8 of our epochs, and the rivals' best at equal epochs and at equal seconds."""
    ours = curves["StochasticBound (default)"]
    marks = [0, 3, 7]
    seconds = [float(np.median([curve[mark][0] for curve in ours])) for mark in marks]
    values = [float(np.median([curve[mark][1] for curve in ours])) for mark in marks]
    rows = [
        ["StochasticBound, untuned", *[f"{digits(v, 2)} at {digits(s, 2)} s" for v, s in zip(values, seconds, strict=True)]]
    ]
    for rival, runs in curves.items():
        if rival.startswith("Stochastic"):
            continue
        by_epoch = [min((curve[mark][1] for curve in runs if len(curve) > mark), default=np.nan) for mark in marks]
        by_time = [best_by(runs, second) for second in seconds]
        cells = [f"{digits(e, 2)}, {digits(t, 2)} ({t / v:.1f}x)" for e, t, v in zip(by_epoch, by_time, values, strict=True)]
        rows.append([f"{rival}, tuned", *cells])
    print(f"\n{name}: excess after 1, 4, 8 epochs; rivals: at equal epochs, at equal seconds (times ours)\n")
    print(markdown(["method", "1 epoch", "4 epochs", "8 epochs"], rows), flush=True)


def main() -> None:
    """Race on adult and Fashion-MNIST."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--sets", default="adult,fashion_mnist")
    parser.add_argument("--l2", type=float, default=1.0)
    arguments = parser.parse_args()
    with_threads(arguments.threads)
    print_load("start")
    results: dict[str, Any] = {"machine": machine()}
    for name in arguments.sets.split(","):
        results[name] = race(name, arguments.l2, EPOCHS)
        report(name, results[name])
    print_load("end")
    write_results(f"stochastic-{arguments.threads}t", results)


if __name__ == "__main__":
    main()
