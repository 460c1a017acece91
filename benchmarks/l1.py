"""The race with an l1 penalty: seconds until the objective is within a relative gap of the best known.

The rules are those of `race`: every rival gets the loosest tolerance that reaches the gap, then all run interleaved and
their medians are compared. Every data set is run at several shares of the smallest l1 that sets all coefficients to zero,
and with three kinds of intercept, because the rivals differ in what they can do:

- none: everybody (celer has no intercept);
- free: scikit-learn saga and skglm;
- penalised by the same l1: liblinear, which cannot do otherwise.

More than two classes: only saga applies. Data are handed to each rival in the layout it works on, prepared outside the
clock.
"""

import argparse
import sys
import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from datasets import Matrix, Problem, load
from harness import digits, machine, markdown, print_load, read_results, with_threads, write_results
from race import Race
from rivals import AUTO, Parameters, Rival, objective
from scipy import sparse
from sklearn.linear_model import LogisticRegression

SETS = ("breast_cancer", "a9a", "w8a", "adult", "text", "srbct", "digits")
SHARES = (0.5, 0.1, 0.01)
KINDS = ("none", "free", "penalised")
SAGA_BUDGET = 5.0


class L1Race(Race):
    """A race whose `l2` holds the strength of the l1 penalty."""

    def judge(self, coef: np.ndarray, intercept: Any) -> float:
        """The loss plus l1 times the absolute values."""
        loss = objective(self.problem.X, self.problem.y, coef, intercept, 0.0, False)
        size = np.abs(coef).sum() + (np.abs(intercept).sum() if self.penalize_intercept else 0.0)
        return float(loss + self.l2 * size)


def one_vector(coef: np.ndarray, intercept: Any) -> Parameters:
    """One vector and a number for two classes."""
    coef = np.atleast_2d(coef)
    intercept = np.broadcast_to(intercept, len(coef))
    return (coef[0], float(intercept[0])) if len(coef) == 1 else (coef, intercept)


_columns_first: list[Any] = []


def columns_first(X: Matrix) -> Matrix:
    """X by columns, as skglm and celer want it; the last answer is kept, so that only the warm-up pays for the copy."""
    if not _columns_first or _columns_first[0] is not X:
        _columns_first[:] = [X, sparse.csc_matrix(X) if sparse.issparse(X) else np.asfortranarray(X)]
    return _columns_first[1]


def fit_partita(X: Matrix, y: np.ndarray, l1: float, tol: float, penalised: bool, *, kind: str, threads: int) -> Parameters:
    """Fit with Partita."""
    from partita import SoftmaxRegression

    model = SoftmaxRegression(
        l2=0.0, l1=l1, fit_intercept=kind != "none", penalize_intercept=penalised, tol=tol, n_jobs=threads
    ).fit(X, y)
    return one_vector(model.coef_, model.intercept_)


def fit_sklearn(
    X: Matrix, y: np.ndarray, l1: float, tol: float, penalised: bool, *, kind: str, solver: str, max_iter: int
) -> Parameters:
    """Fit with scikit-learn."""
    model = LogisticRegression(
        C=1.0 / l1, l1_ratio=1.0, tol=tol, solver=solver, max_iter=max_iter, fit_intercept=kind != "none", random_state=0
    ).fit(X, y)
    return one_vector(model.coef_, model.intercept_)


def fit_skglm(X: Matrix, y: np.ndarray, l1: float, tol: float, penalised: bool, *, kind: str) -> Parameters:
    """Fit with skglm, whose loss is a mean."""
    from skglm import SparseLogisticRegression

    model = SparseLogisticRegression(alpha=l1 / len(y), tol=tol, fit_intercept=kind != "none", max_iter=100)
    model.fit(columns_first(X), y)
    return one_vector(model.coef_, model.intercept_)


def fit_celer(X: Matrix, y: np.ndarray, l1: float, tol: float, penalised: bool) -> Parameters:
    """Fit with celer, which has no intercept."""
    from celer import LogisticRegression as Celer

    model = Celer(C=1.0 / l1, tol=tol, fit_intercept=False, max_iter=100).fit(columns_first(X), y)
    return one_vector(model.coef_, 0.0)


def limited_saga(kind: str, budget: float) -> Callable[..., Parameters]:
    """Make a saga that stops after about `budget` seconds; its first call measures how fast it runs."""
    import time

    epochs: list[int] = []

    def fit(X: Matrix, y: np.ndarray, l1: float, tol: float, penalised: bool) -> Parameters:
        if not epochs:
            count = 1
            while True:
                start = time.perf_counter()
                fit_sklearn(X, y, l1, 0.0, penalised, kind=kind, solver="saga", max_iter=count)
                seconds = time.perf_counter() - start
                if seconds > 0.2 or count >= 4096:
                    break
                count *= 4
            epochs.append(max(1, int(count * budget / seconds)))
        return fit_sklearn(X, y, l1, tol, penalised, kind=kind, solver="saga", max_iter=epochs[0])

    return fit


def line_up(problem: Problem, kind: str, threads: int, budget: float) -> list[Rival]:
    """The rivals that can minimise the same objective."""
    rivals = [Rival(AUTO, "partita", partial(fit_partita, kind=kind, threads=threads), budget)]
    binary = problem.n_classes == 2
    if binary and kind != "free":
        liblinear = partial(fit_sklearn, kind=kind, solver="liblinear", max_iter=300)
        rivals.append(Rival("sklearn liblinear", "sklearn", liblinear, budget))
    if kind != "penalised":
        rivals.append(Rival("sklearn saga", "sklearn", limited_saga(kind, min(SAGA_BUDGET, budget)), budget))
        if binary:
            rivals.append(Rival("skglm", "skglm", partial(fit_skglm, kind=kind), budget))
    if binary and kind == "none":
        rivals.append(Rival("celer", "celer", fit_celer, budget))
    return rivals


def race(problem: Problem, share: float, kind: str, options: argparse.Namespace) -> dict[str, Any]:
    """Run all gaps of one problem."""
    from partita import l1_max

    l1 = share * l1_max(problem.X, problem.y, fit_intercept=kind != "none")
    rivals = line_up(problem, kind, options.threads, options.budget)
    for rival in rivals:  # compilation, which must not be cut short: it would start again with every fit
        if rival.family != "sklearn":
            rival.fit(problem.X, problem.y, l1, 0.1, kind == "penalised")
    contest = L1Race(problem, l1, kind == "penalised", rivals, options.search_budget, options.cell_seconds)
    cells = {}
    for gap, chosen in contest.search(options.gaps).items():
        print(f"{problem.name} l1={share:g} l1_max, intercept {kind}, gap {gap:g}", file=sys.stderr, flush=True)
        cells[f"{problem.name}|{share:g}|{kind}|{gap:g}"] = {
            "set": problem.name,
            "share": share,
            "l1": l1,
            "intercept": kind,
            "gap": gap,
            "optimum": contest.best(),
            "rows": contest.run(chosen),
            "machine": machine(),
        }
    return cells


def table(cells: list[dict[str, Any]]) -> str:
    """One line per cell: milliseconds of everybody, and the best rival's time divided by ours."""
    names = [AUTO, "sklearn liblinear", "sklearn saga", "skglm", "celer"]
    header = ["set", "l1 / max", "intercept", "gap", "ours ms", *(f"{name} ms" for name in names[1:]), "best rival / ours"]
    lines = []
    for cell in cells:
        rows = {row["rival"]: row for row in cell["rows"]}
        medians = [rows[name]["median"] if name in rows else None for name in names]
        texts = [
            "" if name not in rows else digits(1e3 * median) if median else rows[name]["note"]
            for name, median in zip(names, medians, strict=True)
        ]
        others = [median for median in medians[1:] if median]
        ratio = digits(min(others) / medians[0]) if others and medians[0] else "-"
        place = [cell["set"], f"{cell['share']:g}", cell["intercept"], f"{cell['gap']:g}"]
        lines.append([*place, *texts, ratio])
    return markdown(header, lines)


def agreement(cells: list[dict[str, Any]]) -> str:
    """How far each rival's best answer lies from the best known, as the race left it."""
    header = ["set", "l1 / max", "intercept", "gap asked", "rival", "reached"]
    lines = [
        [cell["set"], f"{cell['share']:g}", cell["intercept"], f"{cell['gap']:g}", row["rival"], f"{row['reached']:.1e}"]
        for cell in cells
        for row in cell["rows"]
        if row["median"] is not None
    ]
    return markdown(header, lines)


def main() -> None:
    """Run the cells asked for, print the tables, merge the results into the JSON file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--shares", default=",".join(map(str, SHARES)), help="l1 as shares of l1_max")
    parser.add_argument("--intercepts", default=",".join(KINDS))
    parser.add_argument("--gaps", default="1e-6,1e-8")
    parser.add_argument("--threads", type=int, default=1, choices=(1, 2))
    parser.add_argument("--budget", type=float, default=20.0, help="seconds for one fit")
    parser.add_argument("--search-budget", type=float, default=30.0, help="seconds to find a rival's tolerances")
    parser.add_argument("--cell-seconds", type=float, default=5.0, help="seconds of timed rounds per cell")
    parser.add_argument("--agreement", action="store_true", help="also print how close every rival came")
    options = parser.parse_args()
    options.gaps = [float(gap) for gap in options.gaps.split(",")]
    with_threads(options.threads)
    warnings.simplefilter("ignore")
    print_load("start")
    done: list[dict[str, Any]] = []
    for name in options.sets.split(","):
        problem = load(name)
        for share in map(float, options.shares.split(",")):
            for kind in options.intercepts.split(","):
                if problem.n_classes > 2 and kind == "penalised":
                    continue  # nobody to race against
                cells = race(problem, share, kind, options)
                done += cells.values()
                write_results(f"l1-{options.threads}t", read_results(f"l1-{options.threads}t") | cells)
    print(table(done))
    if options.agreement:
        print("\n" + agreement(done))
    print_load("end")


if __name__ == "__main__":
    main()
