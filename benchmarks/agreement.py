"""Does `SoftmaxRegression` find scikit-learn's optimum? Relative difference of the objective on each data set."""

from __future__ import annotations

import warnings

import datasets
from harness import markdown
from rivals import objective
from sklearn.linear_model import LogisticRegression

from partita import SoftmaxRegression

SETS = ("digits", "wine", "breast_cancer", "adult", "srbct", "text", "a9a", "w8a", "secstr")


def main() -> None:
    warnings.simplefilter("ignore")
    rows = []
    for name in SETS:
        problem = datasets.load(name)
        ours = SoftmaxRegression(l2=1.0, tol=1e-10).fit(problem.X, problem.y)
        theirs = LogisticRegression(C=1.0, solver="newton-cg", tol=1e-10, max_iter=20_000).fit(problem.X, problem.y)
        binary = len(ours.classes_) == 2
        parameters = [(m.coef_[0], m.intercept_[0]) if binary else (m.coef_, m.intercept_) for m in (ours, theirs)]
        a, b = (objective(problem.X, problem.y, coef, intercept, 1.0, False) for coef, intercept in parameters)
        rows.append([name, f"{a:.10f}", f"{b:.10f}", f"{(a - b) / b:+.1e}"])
    print(markdown(["set", "partita", "scikit-learn newton-cg", "relative difference"], rows))


if __name__ == "__main__":
    main()
