"""The programs in the race, and the one objective that judges them all.

A fit is called as `fit(X, y, l2, tol, penalize_intercept)` and returns `(coef, intercept)`: one vector and a
number for two classes, one row and one entry per class for more.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from datasets import Matrix, Problem, csr
from scipy import sparse
from scipy.optimize import minimize
from scipy.special import logsumexp
from sklearn.linear_model import LogisticRegression

Parameters = tuple[np.ndarray, np.ndarray | float]
Fit = Callable[[Matrix, np.ndarray, float, float, bool], Parameters]
ValueAndGradient = Callable[[np.ndarray], tuple[float, np.ndarray]]

AUTO = "partita auto"
SAGA_BUDGET = 20.0
LARGEST_HESSIAN = 2500
ENOUGH_ITERATIONS = 100_000


@dataclass(frozen=True)
class Rival:
    """A program, the family it belongs to, and the seconds one of its fits may take."""

    name: str
    family: str
    fit: Fit
    fit_budget: float


def objective(X: Matrix, y: np.ndarray, coef: np.ndarray, intercept: Any, l2: float, penalize_intercept: bool) -> float:
    """Evaluate sum_i -log p(y_i | x_i) + l2/2 ||coef||^2 (+ l2/2 ||intercept||^2 if penalised)."""
    codes = np.unique(y, return_inverse=True)[1]
    if coef.ndim == 1:
        loss = np.logaddexp(0.0, (1 - 2 * codes) * (X @ coef + intercept)).sum()
    else:
        scores = X @ coef.T + intercept
        loss = (logsumexp(scores, axis=1) - scores[np.arange(len(codes)), codes]).sum()
    penalty = np.sum(coef**2) + (np.sum(np.square(intercept)) if penalize_intercept else 0.0)
    return float(loss + 0.5 * l2 * penalty)


def fit_partita(
    X: Matrix, y: np.ndarray, l2: float, tol: float, penalize_intercept: bool, *, solver: Any, threads: int
) -> Parameters:
    """Fit with Partita."""
    from partita import SoftmaxRegression

    model = SoftmaxRegression(
        l2=l2,
        penalize_intercept=penalize_intercept,
        solver=solver,
        tol=tol,
        max_iter=ENOUGH_ITERATIONS,
        n_jobs=threads,
    ).fit(X, y)
    return _one_vector(model.coef_, model.intercept_)


def fit_sklearn(
    X: Matrix,
    y: np.ndarray,
    l2: float,
    tol: float,
    penalize_intercept: bool,
    *,
    solver: str,
    max_iter: int = ENOUGH_ITERATIONS,
) -> Parameters:
    """Fit with scikit-learn; a penalised intercept is the weight of a column of ones (not in liblinear)."""
    column = penalize_intercept and solver != "liblinear"
    model = LogisticRegression(
        C=1.0 / l2, tol=tol, solver=solver, max_iter=max_iter, fit_intercept=not column, random_state=0
    ).fit(with_ones(X) if column else X, y)
    if column:
        return _one_vector(model.coef_[:, :-1], model.coef_[:, -1])
    return _one_vector(model.coef_, model.intercept_)


def _one_vector(coef: np.ndarray, intercept: np.ndarray) -> Parameters:
    return (coef[0], intercept[0]) if len(coef) == 1 else (coef, intercept)


_last_with_ones: list[Matrix] = []


def with_ones(X: Matrix) -> Matrix:
    """Append a column of ones; the last answer is kept, so that only the warm-up pays for the copy."""
    if not _last_with_ones or _last_with_ones[0] is not X:
        ones = np.ones((X.shape[0], 1))
        wide = csr(sparse.hstack([X, ones])) if sparse.issparse(X) else np.hstack([X, ones])
        _last_with_ones[:] = [X, wide]
    return _last_with_ones[1]


def fit_scipy(X: Matrix, y: np.ndarray, l2: float, tol: float, penalize_intercept: bool) -> Parameters:
    """Fit with SciPy's L-BFGS-B; `tol` bounds the largest entry of the mean gradient."""
    function, size = plain_objective(X, y, l2, penalize_intercept)
    limits = {"maxiter": ENOUGH_ITERATIONS, "maxfun": 2 * ENOUGH_ITERATIONS, "maxcor": 10, "maxls": 50}
    options = limits | {"ftol": 0.0, "gtol": tol * X.shape[0]}
    theta = minimize(function, np.zeros(size), jac=True, method="L-BFGS-B", options=options).x
    columns = X.shape[1]
    if size == columns + 1:
        return theta[:-1], theta[-1]
    split = size // (columns + 1) * columns
    coef = theta[:split].reshape(columns, -1).T if sparse.issparse(X) else theta[:split].reshape(-1, columns)
    return coef, theta[split:]


def plain_objective(X: Matrix, y: np.ndarray, l2: float, penalize_intercept: bool) -> tuple[ValueAndGradient, int]:
    """Build the value and gradient a careful user would write, and count its parameters (intercepts last)."""
    classes, codes = np.unique(y, return_inverse=True)
    vectors = 1 if len(classes) == 2 else len(classes)
    size = vectors * (X.shape[1] + 1)
    loss = _binary_loss(X, codes) if vectors == 1 else _multinomial_loss(X, codes, vectors)
    penalised = slice(0, size if penalize_intercept else size - vectors)

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = loss(theta)
        part = theta[penalised]
        gradient[penalised] += l2 * part
        return value + 0.5 * l2 * (part @ part), gradient

    return function, size


def _binary_loss(X: Matrix, codes: np.ndarray) -> ValueAndGradient:
    sign = 2.0 * codes - 1.0
    transposed = X.T

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        margin = X @ theta[:-1]
        margin += theta[-1]
        margin *= sign
        tail = np.exp(-np.abs(margin))
        value = np.log1p(tail).sum() - np.minimum(margin, 0.0).sum()
        residual = np.where(margin >= 0.0, tail, 1.0)
        tail += 1.0
        residual /= tail
        residual *= -sign
        gradient = np.empty_like(theta)
        gradient[:-1] = transposed @ residual
        gradient[-1] = residual.sum()
        return value, gradient

    return loss


def _multinomial_loss(X: Matrix, codes: np.ndarray, classes: int) -> ValueAndGradient:
    """Scores are classes first, where NumPy reduces fastest; weights as each matrix product likes them."""
    rows, columns = X.shape
    split = classes * columns
    transposed, examples = X.T, np.arange(rows)
    is_sparse = sparse.issparse(X)

    def loss(theta: np.ndarray) -> tuple[float, np.ndarray]:
        if is_sparse:
            scores = np.ascontiguousarray((X @ theta[:split].reshape(columns, classes)).T)
        else:
            scores = theta[:split].reshape(classes, columns) @ transposed
        scores += theta[split:, None]
        scores -= scores.max(axis=0)
        value = -scores[codes, examples].sum()
        np.exp(scores, out=scores)
        total = scores.sum(axis=0)
        value += np.log(total).sum()
        scores /= total
        scores[codes, examples] -= 1.0
        gradient = np.empty_like(theta)
        gradient[:split] = (transposed @ scores.T if is_sparse else scores @ X).ravel()
        gradient[split:] = scores.sum(axis=1)
        return value, gradient

    return loss


def saga_epochs(X: Matrix, y: np.ndarray, l2: float, penalize_intercept: bool, budget: float) -> int:
    """Count the epochs that fit into `budget` seconds (compiled saga cannot be interrupted)."""
    epochs = 1
    while True:
        start = time.perf_counter()
        fit_sklearn(X, y, l2, 0.0, penalize_intercept, solver="saga", max_iter=epochs)
        seconds = time.perf_counter() - start
        if seconds > 0.2 or epochs >= 4096:
            return max(1, int(epochs * budget / seconds))
        epochs *= 4


def limited_saga(budget: float) -> Fit:
    """Make a saga that stops after about `budget` seconds; its first call measures how fast it runs."""
    epochs: list[int] = []

    def fit(X: Matrix, y: np.ndarray, l2: float, tol: float, penalize_intercept: bool) -> Parameters:
        if not epochs:
            epochs.append(saga_epochs(X, y, l2, penalize_intercept, budget))
        return fit_sklearn(X, y, l2, tol, penalize_intercept, solver="saga", max_iter=epochs[0])

    return fit


def partita_solvers() -> dict[str, Any]:
    """Every solver of Partita that fits a softmax regression."""
    from partita.solvers import Majorize

    accelerations = ("subspace", "anderson", "squarem")
    named = {name: name for name in ("newton", "lbfgs", "majorize", "cg", "steepest")}
    return named | {f"majorize+{name}": Majorize(acceleration=name) for name in accelerations}


def line_up(
    problem: Problem, l2: float, penalize_intercept: bool, threads: int, budget: float, every_solver: bool
) -> list[Rival]:
    """List the rivals that apply to a problem, `partita auto` first."""
    solvers = {"auto": "auto"} | (partita_solvers() if every_solver else {})
    rivals = [
        Rival(f"partita {name}", "partita", partial(fit_partita, solver=solver, threads=threads), budget)
        for name, solver in solvers.items()
    ]
    names = ["lbfgs", "newton-cg"]
    if problem.n_parameters <= LARGEST_HESSIAN:
        names.append("newton-cholesky")
    if penalize_intercept:
        names.append("liblinear")
    for name in names:
        rivals.append(Rival(f"sklearn {name}", "sklearn", partial(fit_sklearn, solver=name), budget))
    short = min(budget, SAGA_BUDGET)
    saga = Rival("sklearn saga", "sklearn", limited_saga(short), short)
    return [*rivals, saga, Rival("scipy L-BFGS", "scipy", fit_scipy, budget)]
