"""Constrained softmax regression and maximum entropy against cvxpy (with Clarabel): the same optimum, and how much sooner.

First, `--problems` random problems of each kind: the largest relative difference of the objective, both judged by our
objective at both answers, infeasibility of theirs included. Then seconds at 200 parameters, warm, interleaved medians on one
thread. cvxpy is given its best case: the problem is compiled once, before the clock starts; "with compilation" adds that.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import cvxpy as cp
import numpy as np
from harness import digits, machine, markdown, print_load, with_threads, write_results

from partita import MaxEnt, SoftmaxRegression
from partita.constraints import Ball, Box, CvxpySet, Linear, Monotone, Simplex, Ties

TIGHT = {"tol_gap_abs": 1e-10, "tol_gap_rel": 1e-10, "tol_feas": 1e-10}


def constraints_of(kind: str, rng: Any, classes: int, features: int) -> tuple[list[Any], Any]:
    """Our constraints, and a function from a cvxpy variable to cvxpy's."""
    rows = rng.standard_normal((3, classes, features))
    if kind == "box":
        return [Box(-0.1, 0.2)], lambda W: [W >= -0.1, W <= 0.2]
    if kind == "inequalities":
        return [Linear(rows, upper=-0.1)], lambda W: [cp.sum(cp.multiply(row, W)) <= -0.1 for row in rows]
    if kind == "equalities":
        return [Linear(rows, equal=0.3)], lambda W: [cp.sum(cp.multiply(row, W)) == 0.3 for row in rows]
    if kind == "ties":
        return [Ties(features=[0, 1, 2])], lambda W: [W[:, 0] == W[:, 1], W[:, 1] == W[:, 2]]
    if kind == "monotone":
        return [Monotone()], lambda W: [cp.diff(W, axis=1) >= 0]
    if kind == "simplex":
        return [Simplex()], lambda W: [W >= 0, cp.sum(W, axis=1) == 1]
    if kind == "inf ball":
        return [Ball(0.1, norm=np.inf)], lambda W: [cp.max(cp.abs(W)) <= 0.1]
    if kind == "l2 ball":
        return [Ball(0.3)], lambda W: [cp.norm(W, "fro") <= 0.3]
    if kind == "l1 ball":
        return [Ball(0.5, norm=1)], lambda W: [cp.sum(cp.abs(W)) <= 0.5]
    if kind == "mixture":
        ours = [Box(lower=-0.1), Monotone([0, 1]), Linear(rows[:1], upper=0.1), Ball(0.4)]
        return ours, lambda W: [
            *(W >= -0.1, W[:, 1] >= W[:, 0], cp.sum(cp.multiply(rows[0], W)) <= 0.1, cp.norm(W, "fro") <= 0.4)
        ]
    set_of = lambda W: [cp.norm(W, "nuc") <= 0.3]  # noqa: E731
    return [CvxpySet(set_of)], set_of


KINDS = (
    *("box", "inequalities", "equalities", "ties", "monotone", "simplex", "inf ball"),
    *("l2 ball", "l1 ball", "mixture", "cvxpy set"),
)


def data(rng: Any, n: int, features: int, classes: int) -> tuple[np.ndarray, np.ndarray]:
    X = rng.standard_normal((n, features))
    y = (X @ rng.standard_normal((features, classes)) + 2 * rng.gumbel(size=(n, classes))).argmax(1)
    y[:classes] = np.arange(classes)
    return X, y


def loss(X: np.ndarray, y: np.ndarray, l2: float, W: np.ndarray, b: np.ndarray) -> float:
    """The objective, written down apart from the library."""
    s = X @ W.T + b
    if len(W) == 1:
        s = np.hstack([np.zeros_like(s), s])
    top = s.max(1)
    return float((top + np.log(np.exp(s - top[:, None]).sum(1)) - s[np.arange(len(y)), y]).sum() + 0.5 * l2 * (W**2).sum())


def cvxpy_problem(X: np.ndarray, y: np.ndarray, l2: float, make: Any) -> tuple[cp.Problem, cp.Variable, cp.Variable]:
    classes = len(np.unique(y))
    rows = 1 if classes == 2 else classes
    W, b = cp.Variable((rows, X.shape[1])), cp.Variable(rows)
    scores = X @ W.T + np.ones((len(X), 1)) @ cp.reshape(b, (1, rows), order="F")
    if rows == 1:
        value = cp.sum(cp.logistic(scores[:, 0])) - y @ scores[:, 0]
    else:
        value = cp.sum(cp.log_sum_exp(scores, axis=1)) - cp.sum(cp.multiply(np.eye(classes)[y], scores))
    return cp.Problem(cp.Minimize(value + 0.5 * l2 * cp.sum_squares(W)), make(W)), W, b


def agreement(kind: str, problems: int) -> dict[str, float]:
    """The largest excess of our objective over cvxpy's, our violation, and how many fits converged."""
    excess, converged, violation, skipped = [], 0, 0.0, 0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        classes, features = int(rng.integers(2, 5)), int(rng.integers(3, 9))
        X, y = data(rng, 60, features, classes)
        rows = 1 if classes == 2 else classes
        ours, make = constraints_of(kind, rng, rows, features)
        l2 = float(rng.choice([0.01, 0.1, 1.0]))
        problem, W, b = cvxpy_problem(X, y, l2, make)
        try:
            problem.solve(solver=cp.CLARABEL, **TIGHT)
        except cp.SolverError:
            skipped += 1
            continue
        model = SoftmaxRegression(l2=l2, constraints=ours, tol=1e-7).fit(X, y)
        reference = loss(X, y, l2, W.value, b.value)
        excess.append((loss(X, y, l2, model.coef_, model.intercept_) - reference) / reference)
        converged += model.status_.ok
        W.value = model.coef_
        violation = max([violation, *(float(np.max(c.violation())) for c in problem.constraints)])
    largest = max(excess, key=abs)
    return {"excess": largest, "violation": violation, "converged": converged, "problems": len(excess), "skipped": skipped}


def race(kind: str, rounds: int, n: int = 1000, features: int = 50, classes: int = 4) -> dict[str, float]:
    """Seconds at `classes * features` parameters."""
    rng = np.random.default_rng(0)
    X, y = data(rng, n, features, classes)
    ours, make = constraints_of(kind, rng, classes, features)
    start = time.perf_counter()
    problem, W, b = cvxpy_problem(X, y, 1.0, make)
    problem.get_problem_data(cp.CLARABEL)
    compilation = time.perf_counter() - start
    model = SoftmaxRegression(l2=1.0, constraints=ours, n_jobs=1)
    calls = {"ours": lambda: model.fit(X, y), "cvxpy": lambda: problem.solve(solver=cp.CLARABEL)}
    times: dict[str, list[float]] = {name: [] for name in calls}
    model.fit(X, y)
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    seconds = {name: statistics.median(entries) for name, entries in times.items()}
    value = loss(X, y, 1.0, model.coef_, model.intercept_)
    reference = loss(X, y, 1.0, W.value, b.value)
    return {
        "ours": seconds["ours"],
        "cvxpy": seconds["cvxpy"],
        "ratio": seconds["cvxpy"] / seconds["ours"],
        "ratio with compilation": (seconds["cvxpy"] + compilation) / seconds["ours"],
        "excess": (value - reference) / reference,
    }


def entropy(problems: int) -> dict[str, float]:
    """Relative entropy against cvxpy on random moment problems, equalities and inequalities; seconds at 1000 states."""
    worst = 0.0
    for seed in range(problems):
        rng = np.random.default_rng(seed)
        F, G = rng.standard_normal((40, 3)), rng.standard_normal((40, 3))
        inside, prior = rng.dirichlet(np.ones(40)), rng.dirichlet(np.ones(40))
        target, bound = inside @ F, inside @ G - rng.random(3) * 0.3
        model = MaxEnt(F, target, (G, bound), prior).fit()
        p = cp.Variable(40)
        problem = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(p, prior))), [cp.sum(p) == 1, p @ F == target, p @ G >= bound])
        problem.solve(solver=cp.CLARABEL, **TIGHT)
        worst = max(worst, abs(model.relative_entropy_ - problem.value) / max(1.0, abs(problem.value)))
    rng = np.random.default_rng(0)
    F, G = rng.standard_normal((1000, 20)), rng.standard_normal((1000, 20))
    inside, prior = rng.dirichlet(np.ones(1000)), rng.dirichlet(np.ones(1000))
    target, bound = inside @ F, inside @ G - 0.01
    p = cp.Variable(1000)
    problem = cp.Problem(cp.Minimize(cp.sum(cp.rel_entr(p, prior))), [cp.sum(p) == 1, p @ F == target, p @ G >= bound])
    times: dict[str, list[float]] = {"ours": [], "cvxpy": []}
    problem.get_problem_data(cp.CLARABEL)
    for _ in range(5):
        for name, call in (
            ("ours", lambda: MaxEnt(F, target, (G, bound), prior).fit()),
            ("cvxpy", lambda: problem.solve(solver=cp.CLARABEL)),
        ):
            start = time.perf_counter()
            call()
            times[name].append(time.perf_counter() - start)
    seconds = {name: statistics.median(entries) for name, entries in times.items()}
    return {"difference": worst, **seconds, "ratio": seconds["cvxpy"] / seconds["ours"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=5)
    arguments = parser.parse_args()
    with_threads(1)
    warnings.simplefilter("ignore")
    print_load("start")
    agreements = {kind: agreement(kind, arguments.problems) for kind in KINDS}
    rows = [
        [kind, f"{a['excess']:+.1e}", f"{a['violation']:.0e}", f"{a['converged']}/{a['problems']}", a["skipped"]]
        for kind, a in agreements.items()
    ]
    print(markdown(["constraints", "largest relative difference", "our violation", "converged", "cvxpy failed"], rows))
    races = {kind: race(kind, arguments.rounds) for kind in KINDS}
    rows = [
        [
            *(kind, digits(1e3 * r["ours"]), digits(1e3 * r["cvxpy"]), digits(r["ratio"])),
            *(digits(r["ratio with compilation"]), f"{r['excess']:+.0e}"),
        ]
        for kind, r in races.items()
    ]
    head = ["200 parameters, 1000 examples", "ours, ms", "cvxpy, ms", "ratio", "with compilation", "relative difference"]
    print(markdown(head, rows))
    moments = entropy(arguments.problems)
    print(markdown(list(moments), [[digits(v) for v in moments.values()]]))
    print_load("end")
    write_results("constraints", {"machine": machine(), "agreement": agreements, "race": races, "entropy": moments})


if __name__ == "__main__":
    main()
