"""Fashion-MNIST, where a fit takes minutes: one run of each program, its time to a gap read off its own history.

scikit-learn keeps no history, so its solvers run once with an iteration limit that takes them to about `--factor` times
our time to 1e-8; the gap they have reached there says whether they are slower than that factor or faster.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable

import numpy as np
from datasets import load
from harness import markdown, print_load, with_threads, write_results
from rivals import objective, plain_objective
from scipy.optimize import minimize as scipy_minimize
from sklearn.linear_model import LogisticRegression

from partita import SoftmaxRegression

GAPS = (1e-6, 1e-8)


def timed(call: Callable[[], object]) -> tuple[float, object]:
    start = time.perf_counter()
    result = call()
    return time.perf_counter() - start, result


def scipy_history(X: np.ndarray, y: np.ndarray, l2: float, seconds: float) -> list[tuple[float, float]]:
    """(seconds, value) of every evaluation of SciPy's L-BFGS."""
    function, size = plain_objective(X, y, l2, False)
    history: list[tuple[float, float]] = []
    start = time.perf_counter()

    def recorded(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = function(theta)
        history.append((time.perf_counter() - start, float(value)))
        if history[-1][0] > seconds:
            raise StopIteration
        return value, gradient

    try:
        options = {"maxcor": 10, "maxiter": 10**6, "maxfun": 10**6, "ftol": 0.0, "gtol": 1e-9}
        scipy_minimize(recorded, np.zeros(size), jac=True, method="L-BFGS-B", options=options)
    except StopIteration:
        pass
    return history


def sklearn_gap(
    problem: object, l2: float, best: float, solver: str, seconds: float, probe: int
) -> tuple[float, int, float]:
    """Seconds, iterations and gap of one run that takes about `seconds`, by the time of `probe` iterations."""
    make = lambda k: LogisticRegression(C=1 / l2, solver=solver, tol=1e-9, max_iter=k)  # noqa: E731
    per_iteration = timed(lambda: make(probe).fit(problem.X, problem.y))[0] / probe
    taken, model = timed(lambda: make(max(1, int(seconds / per_iteration))).fit(problem.X, problem.y))
    value = objective(problem.X, problem.y, model.coef_, model.intercept_, l2, False)
    return taken, int(model.n_iter_[0]), (value - best) / best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--set", default="fashion_mnist")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--factor", type=float, default=3.0)
    arguments = parser.parse_args()
    with_threads(arguments.threads)
    warnings.simplefilter("ignore")
    print_load("start")
    problem, l2 = load(arguments.set), 1.0
    SoftmaxRegression(l2=l2, n_jobs=arguments.threads).fit(problem.X[:3000], problem.y[:3000])
    total, model = timed(lambda: SoftmaxRegression(l2=l2, tol=1e-8, n_jobs=arguments.threads).fit(problem.X, problem.y))
    trace = model.trace_
    best = float(trace.objective.min())
    overhead = total - trace.seconds[-1]
    ours = {gap: float(trace.seconds[np.argmax(trace.objective <= best * (1 + gap))]) + overhead for gap in GAPS}
    rows = [["partita auto", *(f"{ours[gap]:.1f} s" for gap in GAPS), f"{model.n_iter_} iterations, {model.status_.name}"]]
    print(rows[-1], flush=True)
    limit = arguments.factor * ours[1e-8]
    history = scipy_history(problem.X, problem.y, l2, limit)
    times = {gap: next((t for t, value in history if value <= best * (1 + gap)), None) for gap in GAPS}
    cells = [f"{t:.1f} s ({t / ours[g]:.1f}x)" if t else f"> {limit:.0f} s" for g, t in times.items()]
    lowest = (min(value for _, value in history) - best) / best
    rows.append(["scipy L-BFGS", *cells, f"{len(history)} evaluations, gap {lowest:.1e} at {history[-1][0]:.0f} s"])
    print(rows[-1], flush=True)
    for solver, probe in (("lbfgs", 30), ("newton-cg", 5)):
        taken, iterations, gap = sklearn_gap(problem, l2, best, solver, limit, probe)
        cells = [("<" if gap <= g else ">") + f" {taken:.0f} s" for g in GAPS]
        rows.append([f"sklearn {solver}", *cells, f"{iterations} iterations, gap {gap:.1e} at {taken:.0f} s"])
        print(rows[-1], flush=True)
    print(markdown(["program", "to 1e-6", "to 1e-8", "note"], rows))
    print_load("end")
    write_results(f"large-{arguments.threads}t", {"set": arguments.set, "rows": rows})


if __name__ == "__main__":
    main()
