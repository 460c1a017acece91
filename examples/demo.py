"""Train softmax regression on scikit-learn's digits with every solver; print a table and save a convergence plot."""

from __future__ import annotations

import time
from pathlib import Path

from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from partita import LBFGS, ConjugateGradient, Majorize, Newton, SoftmaxRegression, SteepestDescent
from partita.report import format_table, plot_convergence

SOLVERS = {
    "auto": "auto",
    "newton (cg)": Newton("cg"),
    "lbfgs": LBFGS(),
    "majorize + subspace": Majorize(),
    "majorize + anderson": Majorize(acceleration="anderson"),
    "majorize + squarem": Majorize(acceleration="squarem"),
    "majorize, plain": Majorize(bound="descending", acceleration=None),
    "majorize, Böhning": Majorize(bound="bohning", acceleration=None),
    "conjugate gradient": ConjugateGradient(),
    "steepest descent": SteepestDescent(),
}


def main() -> None:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.3, random_state=0)
    SoftmaxRegression().fit(X_train, y_train)  # load the compiled kernels outside the timing
    rows, traces = [], {}
    for name, solver in SOLVERS.items():
        start = time.perf_counter()
        model = SoftmaxRegression(l2=1.0, solver=solver, max_iter=200, tol=1e-7)
        with_warning = _quiet_fit(model, X_train, y_train)
        seconds = time.perf_counter() - start
        traces[name] = model.trace_
        objective, accuracy = model.trace_.objective[-1], model.score(X_test, y_test)
        rows.append([name, str(model.n_iter_), f"{seconds:.3f}", f"{objective:.6f}", f"{accuracy:.4f}", with_warning])
    print(f"Softmax regression on digits: {len(X_train)} training images, {X.shape[1]} pixels, 10 classes, l2 = 1\n")
    print(format_table(["solver", "iterations", "seconds", "objective", "test accuracy", "stopped"], rows))
    picture = Path("demo-output") / "convergence.png"
    picture.parent.mkdir(exist_ok=True)
    plot_convergence(traces, picture, "Softmax regression on digits")
    print(f"\nConvergence plot: {picture}")


def _quiet_fit(model: SoftmaxRegression, X: object, y: object) -> str:
    """Fit; slow solvers are meant to hit the iteration limit here, so their warning becomes a word in the table."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model.status_.name.lower()


if __name__ == "__main__":
    main()
