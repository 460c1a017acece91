"""Quadratic programs of constrained likelihoods: our solvers against DAQP, PIQP, OSQP and Clarabel.

The programs are Newton steps of real fits: the Hessian and gradient of a softmax likelihood halfway to its constrained
optimum. Seconds are warm, interleaved medians on one thread; errors are distances to our solution, which the tests check by
its optimality conditions. "warm" is our solver from the last active set, "dual only" without block exchanges.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import digits, machine, markdown, print_load, with_threads, write_results

from partita import minimize
from partita.constraints import Box, Monotone, Simplex
from partita.numerics import quadratic_program as qp
from partita.objectives import Constrained, compile_constraints
from partita.softmax.estimators.softmax_regression import softmax_objective

SIZES = (50, 200, 1000)
KINDS: dict[str, Any] = {"box": [Box(lower=0.0)], "monotone": [Monotone()], "simplex": [Simplex()]}
FAR = 1e20


def program(kind: str, size: int) -> qp.Program:
    """The Newton program of a likelihood with about `size` parameters, halfway to its optimum."""
    rng = np.random.default_rng(size)
    classes = 5
    X = rng.standard_normal((4 * size, size // classes))
    y = (X @ rng.standard_normal((X.shape[1], classes)) + 3 * rng.gumbel(size=(len(X), classes))).argmax(1)
    likelihood = softmax_objective(X, y, l2=1.0, penalize_intercept=True, fit_intercept=False)
    objective = Constrained(likelihood, compile_constraints(KINDS[kind], likelihood.features))
    end = minimize(objective, tol=1e-6).parameters
    start = objective.project(np.zeros(objective.size))
    point = objective.at(objective.feasible.snap(0.5 * (start + end)))
    x, feasible = point.parameters, objective.feasible
    model = point.inner.model("hessian")
    values, (low, high) = feasible.row_values(x), feasible.row_bounds()
    return qp.Program(
        model.matrix(), model.gradient0, feasible.lower - x, feasible.upper - x, feasible.rows, low - values, high - values
    )


def error(p: qp.Program, x: np.ndarray) -> float:
    """Distance to the reference solution relative to its length."""
    exact = qp.solve_program(p).x
    return float(np.linalg.norm(x - exact) / np.linalg.norm(exact))


def rivals(p: qp.Program) -> dict[str, Callable[[], np.ndarray]]:
    """Solvers as closures over data in the form they like, prepared outside the timed region."""
    import clarabel
    import daqp
    import osqp
    import piqp

    d = len(p.g)
    rows = sp.csr_matrix((0, d)) if p.rows is None else p.rows
    guess = qp.solve_program(p).active
    dense = np.ascontiguousarray(rows.toarray())
    lower, upper = (np.clip(np.concatenate(s), -FAR, FAR) for s in ((p.lower, p.row_lower), (p.upper, p.row_upper)))
    sense = np.where(lower == upper, 5, 0).astype(np.int32)
    stacked = sp.vstack([sp.identity(d), rows], format="csr")
    columns = sp.csc_matrix(stacked)
    P = sp.csc_matrix(np.triu(p.C))

    def piqp_solve() -> np.ndarray:
        solver = piqp.DenseSolver()
        equal = p.row_lower == p.row_upper
        arguments = [p.C, p.g, dense[equal], p.row_lower[equal], dense[~equal]]
        solver.setup(*arguments, p.row_lower[~equal], p.row_upper[~equal], p.lower, p.upper)
        solver.solve()
        return np.array(solver.result.x)

    def osqp_solve() -> np.ndarray:
        solver = osqp.OSQP()
        settings = {"eps_abs": 1e-7, "eps_rel": 1e-7, "max_iter": 20_000, "polishing": True, "verbose": False}
        solver.setup(P, p.g, columns, lower, upper, **settings)
        return np.array(solver.solve().x)

    def clarabel_solve() -> np.ndarray:
        low, high = lower > -FAR, upper < FAR
        settings = clarabel.DefaultSettings()
        settings.verbose = False
        A = sp.vstack([-stacked[low], stacked[high]], format="csc")
        cones = [clarabel.NonnegativeConeT(A.shape[0])]
        right = np.concatenate([-lower[low], upper[high]])
        return np.array(clarabel.DefaultSolver(P, p.g, A, right, cones, settings).solve().x)

    return {
        "ours": lambda: qp.solve_program(p).x,
        "ours, warm": lambda: qp.solve_program(p, guess).x,
        "ours, dual only": lambda: qp._dual_active_set(p, qp._definite(p.C)[1]).x,
        "daqp": lambda: daqp.solve(np.ascontiguousarray(p.C), p.g, dense, upper, lower, sense)[0],
        "piqp": piqp_solve,
        "osqp": osqp_solve,
        "clarabel": clarabel_solve,
    }


def median_seconds(calls: dict[str, Callable[[], Any]], budget: float) -> dict[str, float]:
    """Interleaved medians; a call that uses up its share of the budget leaves the race."""
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(15):
        for name, call in calls.items():
            if sum(times[name]) < budget / len(calls):
                start = time.perf_counter()
                call()
                times[name].append(time.perf_counter() - start)
    return {name: statistics.median(entries) for name, entries in times.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--budget", type=float, default=20.0, help="seconds per program")
    arguments = parser.parse_args()
    with_threads(1)
    print_load("start")
    table, payload = [], {"machine": machine(), "programs": []}
    for kind in KINDS:
        for size in SIZES:
            p = program(kind, size)
            calls = rivals(p)
            errors = {}
            for name, call in list(calls.items()):
                try:
                    errors[name] = error(p, call())
                except Exception as failure:  # a rival that cannot, does not take part
                    print(f"{kind} {size}: {name} failed: {failure}")
                    calls.pop(name)
            seconds = median_seconds(calls, arguments.budget)
            payload["programs"].append({"kind": kind, "size": size, "seconds": seconds, "errors": errors})
            for name, value in seconds.items():
                ratio = value / seconds["ours"]
                table.append([kind, size, name, digits(1e3 * value), digits(ratio), f"{errors[name]:.0e}"])
    print(markdown(["constraints", "d", "solver", "ms", "times ours", "relative error"], table))
    print_load("end")
    write_results("qp", payload)


if __name__ == "__main__":
    main()
