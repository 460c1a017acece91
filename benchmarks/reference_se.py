"""Standard errors of unpenalised fits against statsmodels: the largest relative differences."""

import warnings
from collections.abc import Callable

import numpy as np
import statsmodels.api as sm
from datasets import Problem, load
from harness import machine, markdown, write_results


def binary() -> Problem:
    """Breast cancer reduced to its first five columns, which do not separate the classes."""
    problem = load("breast_cancer")
    return Problem("breast_cancer, 5 columns", problem.X[:, :5].copy(), problem.y, problem.note)


def synthetic() -> Problem:
    """Three overlapping classes drawn from a softmax."""
    rng = np.random.default_rng(3)
    X = rng.standard_normal((600, 4))
    scores = X @ rng.standard_normal((4, 3)) + np.array([0.3, 0.0, -0.3])
    return Problem("synthetic, 3 classes", X, np.argmax(scores + rng.gumbel(size=scores.shape), axis=1), "")


def wine() -> Problem:
    """Wine reduced to alcohol and malic acid, which do not separate the classes."""
    problem = load("wine")
    return Problem("wine, 2 columns", problem.X[:, :2].copy(), problem.y, problem.note)


def expected(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """Estimates and standard errors of statsmodels: one row per class but the first, intercept last."""
    design = np.column_stack([problem.X, np.ones(len(problem.y))])
    if problem.n_classes == 2:
        result = sm.Logit(problem.y, design).fit(method="newton", disp=False, maxiter=200, tol=1e-12)
    else:
        result = sm.MNLogit(problem.y, design).fit(method="newton", disp=False, maxiter=200, tol=1e-12)
    estimates, errors = np.asarray(result.params), np.asarray(result.bse)
    if not result.mle_retvals["converged"] or np.abs(estimates).max() > 1e3:
        raise RuntimeError(f"statsmodels found no finite optimum on {problem.name}; are the classes separable?")
    width = design.shape[1]
    return estimates.reshape(width, -1).T, errors.reshape(width, -1).T


def ours(problem: Problem) -> tuple[np.ndarray, np.ndarray]:
    """The same of Partita, as contrasts to the first class."""
    from partita import SoftmaxRegression

    model = SoftmaxRegression(l2=0.0, tol=1e-12).fit(problem.X, problem.y)
    theta = np.column_stack([model.coef_, model.intercept_])
    if problem.n_classes == 2:
        return theta, model.standard_errors()
    return (theta - theta[0])[1:], model.standard_errors(reference=model.classes_[0])[1:]


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest relative difference of two arrays of one shape."""
    if a.shape != b.shape:
        raise ValueError(f"shapes differ: {a.shape} here, {b.shape} in statsmodels")
    return float(np.max(np.abs(a - b) / np.abs(b)))


def main() -> None:
    """Compare on all problems, print the table, write `results/reference_se.json`."""
    warnings.simplefilter("ignore")
    problems: tuple[Callable[[], Problem], ...] = (binary, synthetic, wine)
    rows = []
    for make in problems:
        problem = make()
        (estimates, errors), (their_estimates, their_errors) = ours(problem), expected(problem)
        rows.append([problem.name, difference(estimates, their_estimates), difference(errors, their_errors)])
    header = ["problem", "estimates, max relative difference", "standard errors, max relative difference"]
    print(markdown(header, [[name, f"{a:.1e}", f"{b:.1e}"] for name, a, b in rows]))
    keys = ("problem", "estimates", "standard_errors")
    write_results("reference_se", {"rows": [dict(zip(keys, row, strict=True)) for row in rows]} | machine())


if __name__ == "__main__":
    main()
