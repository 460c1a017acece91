"""The relaxation of joint EM against cvxpy, and its seconds against the number of rows.

Data are drawn from naive Bayes models with a hidden root of two values and binary children: 6 of them, so that there are
at most 64 distinct rows, and more, so that few rows are equal. The penalty is a share of the critical one. cvxpy gets all
rows, as the relaxation is usually written down, with a quadratic form for each loss or one for all; ours finds equal rows
itself.
"""

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from harness import digits, machine, markdown, print_load, read_results, write_results

from partita.objectives import ChildTerm, HiddenTerm, Relaxation, critical_alpha, relax
from partita.report.plots import new_figure

DOCS = Path(__file__).resolve().parents[1] / "docs"
SHARES = (0.1, 0.5)
SMALL = (12, 20, 40)
SIZES = (100, 1000, 10_000, 100_000)
REPEATS = 5
#: Rivals: solver, whether all losses share one quadratic form, and options that are as precise as the comparison needs.
RIVALS: dict[str, tuple[str, bool, dict[str, Any]]] = {
    "CLARABEL": ("CLARABEL", False, {}),
    "CLARABEL, one form": ("CLARABEL", True, {}),
    "SCS, one form": ("SCS", True, {"eps": 1e-6, "max_iters": 50_000}),
}


def draw(t: int, children: int, seed: int = 0) -> np.ndarray:
    """Rows of a naive Bayes model whose root is hidden."""
    rng = np.random.default_rng(seed)
    hidden, p = rng.integers(0, 2, t), rng.beta(0.5, 0.5, (2, children))
    return (rng.random((t, children)) < p[hidden]).astype(np.int64)


def terms_of(x: np.ndarray) -> list[HiddenTerm | ChildTerm]:
    return [HiddenTerm(), *(ChildTerm(column, n_values=2) for column in x.T)]


def by_cvxpy(x: np.ndarray, alpha: float, rival: str) -> tuple[float, float]:
    """Optimum and seconds."""
    import cvxpy as cp

    solver, joined, options = RIVALS[rival]
    t, k = x.shape
    M, F, U = cp.Variable((t, t), PSD=True), [cp.Variable((t, 2)) for _ in range(k)], cp.Variable((t, 1))
    own = t * cp.log_sum_exp(U[:, 0] - cp.log(cp.sum(M, axis=1))) - cp.sum(U)
    losses = [cp.sum(cp.log_sum_exp(f, axis=1)) - cp.sum(cp.multiply(np.eye(2)[y], f)) for f, y in zip(F, x.T, strict=True)]
    forms = [cp.hstack([*F, U])] if joined else [*F, U]
    penalty = 0.5 * alpha * sum(cp.matrix_frac(form, M) for form in forms)
    problem = cp.Problem(cp.Minimize(own + sum(losses) + penalty), [cp.diag(M) == 1, M >= 0])
    start = time.perf_counter()
    problem.solve(solver=solver, **options)
    return float(problem.value), time.perf_counter() - start


def timed(terms: list[HiddenTerm | ChildTerm], t: int, alpha: float, repeats: int) -> tuple[Relaxation, float]:
    """The solution and the median of seconds."""
    found = [relax(terms, t, alpha) for _ in range(repeats)]
    return found[0], float(np.median([each.seconds for each in found]))


def clarabel_table(limit: int) -> list[dict[str, Any]]:
    """Seconds and optima, ours between those of the rivals."""
    rows, cells = [], []
    for children in (6, 12):
        for t in (t for t in SMALL if t <= limit):
            x = draw(t, children)
            terms = terms_of(x)
            alpha = SHARES[0] * critical_alpha(terms, t)[0]
            relax(terms, t, alpha)
            times, values = [], {}
            for solver in RIVALS:
                ours, seconds = timed(terms, t, alpha, REPEATS)
                times.append(seconds)
                values[solver] = by_cvxpy(x, alpha, solver)
            row = {
                "t": t,
                "children": children,
                "distinct": ours.n_distinct,
                "alpha": alpha,
                "seconds": float(np.median(times)),
            }
            rows.append(row | {"objective": ours.objective, "gap": ours.gap, "rivals": values})
            cell = [t, children, ours.n_distinct, f"{ours.objective:.6f}", digits(ours.gap, 2), digits(row["seconds"])]
            for value, seconds in values.values():
                cell += [digits(seconds), f"{seconds / row['seconds']:.0f}", digits(abs(value / ours.objective - 1.0), 2)]
            cells.append(cell)
    header = ["t", "children", "distinct", "objective", "gap", "s"]
    header += [name for solver in RIVALS for name in (f"{solver} s", "ratio", "difference")]
    print(f"\nAgainst cvxpy, alpha = {SHARES[0]:g} of the critical one\n")
    print(markdown(header, cells), flush=True)
    return rows


def sizes_table(limit: int) -> list[dict[str, Any]]:
    """Seconds and certified gaps as t grows."""
    rows = []
    for children in (6, 20):
        for t in (t for t in SIZES if t <= limit):
            terms = terms_of(draw(t, children))
            critical = critical_alpha(terms, t)[0]
            for share in SHARES:
                found, seconds = timed(terms, t, share * critical, 1)
                row = {"t": t, "children": children, "share": share, "distinct": found.n_distinct, "seconds": seconds}
                row |= {"gap": found.gap, "rank": found.rank, "n_iter": found.n_iter, "violation": found.violation}
                rows.append(row | {"objective": found.objective, "status": found.status.name})
                print(".", end="", flush=True)
    cells = []
    for r in rows:
        cells.append([r["t"], r["children"], r["share"], r["distinct"], digits(r["seconds"]), digits(r["gap"], 2)])
        cells[-1] += [r["rank"], r["n_iter"], digits(r["violation"], 2) if r["violation"] else "-", r["status"]]
    print("\n\nSeconds against t\n")
    header = ["t", "children", "alpha / critical", "distinct", "s", "certified gap", "rank", "iterations", "violation", ""]
    print(markdown(header, cells), flush=True)
    return rows


def picture(rows: list[dict[str, Any]]) -> None:
    figure = new_figure(6.4, 4.4)
    axes = figure.subplots()
    for children in sorted({r["children"] for r in rows}):
        for share, style in zip(SHARES, ("o-", "s--"), strict=True):
            mine = [r for r in rows if r["children"] == children and r["share"] == share]
            label = f"{children} children, α = {share:g} of the critical"
            axes.loglog([r["t"] for r in mine], [r["seconds"] for r in mine], style, label=label)
    axes.set(xlabel="rows", ylabel="seconds to a certified gap of 1e-6")
    figure.legend(fontsize=8, loc="outside lower center", ncols=2)
    axes.grid(alpha=0.3)
    figure.savefig(DOCS / "relaxation-seconds.png", dpi=120)


def main() -> None:
    """Print tables and write `results/convex_em.json`; results merge by part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="clarabel,sizes", help="parts: clarabel, sizes")
    parser.add_argument("--limit", type=int, default=max(SIZES), help="most rows")
    parser.add_argument("--picture", action="store_true", help="draw docs/relaxation-seconds.png")
    arguments = parser.parse_args()
    parts = arguments.only.split(",")
    print_load("start")
    results = read_results("convex_em") | {"machine": machine()}
    relax(terms_of(draw(12, 6)), 12, 0.5)
    if "clarabel" in parts:
        results["clarabel"] = clarabel_table(arguments.limit)
    if "sizes" in parts:
        results["sizes"] = sizes_table(arguments.limit)
    if arguments.picture:
        picture(results["sizes"])
    write_results("convex_em", results)
    print_load("end")


if __name__ == "__main__":
    main()
