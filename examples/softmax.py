"""Train softmax regression on scikit-learn's digits with every solver, then show streams, l1, constraints and MaxEnt."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from partita import LBFGS, ConjugateGradient, Majorize, MaxEnt, Newton, SoftmaxRegression, SteepestDescent, StochasticBound
from partita.constraints import Box
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
    "stochastic bound": StochasticBound(batch_size=64),
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
    _more(X_train, y_train, X_test, y_test)


def _more(X_train: np.ndarray, y_train: np.ndarray, X_test: np.ndarray, y_test: np.ndarray) -> None:
    """What else the library does, one line each."""
    stream = SoftmaxRegression()
    for part in np.array_split(np.arange(len(X_train)), 10):
        stream.partial_fit(X_train[part], y_train[part], classes=np.arange(10))
    print(f"partial_fit, ten pieces, one pass: test accuracy {stream.score(X_test, y_test):.4f}")
    sparse = SoftmaxRegression(l2=0.0, l1=3.0).fit(X_train, y_train)
    zeros = np.mean(sparse.coef_ == 0.0)
    print(f"l1 = 3: {zeros:.0%} of the weights are zero, certified gap {sparse.trace_.gap[-1]:.1e}")
    signed = SoftmaxRegression(constraints=[Box(lower=0.0)]).fit(X_train, y_train)
    print(f"weights >= 0: smallest {signed.coef_.min():g}, test accuracy {signed.score(X_test, y_test):.4f}")
    die = MaxEnt(features=np.arange(1, 7)[:, None], equality=[4.5]).fit()
    print(f"a die whose mean is 4.5: {die.probabilities_.round(4).tolist()}")


def _quiet_fit(model: SoftmaxRegression, X: object, y: object) -> str:
    """Fit; slow solvers are meant to hit the iteration limit here, so their warning becomes a word in the table."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y)
    return model.status_.name.lower()


if __name__ == "__main__":
    main()
