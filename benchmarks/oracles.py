"""OracleCRF against exact answers: families whose log Z is known otherwise, and one with many parts.

Every family is given to `OracleCRF` as nothing but a solver for the best configuration. Beside it stands exact maximum
likelihood with the same penalty, by the matrix-tree theorem, dynamic programming, or enumeration, and SciPy's L-BFGS.
"""

import argparse
import itertools
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from harness import machine, markdown, print_load, write_results
from scipy.optimize import linear_sum_assignment, minimize as scipy_minimize
from scipy.sparse import coo_array
from scipy.sparse.csgraph import minimum_spanning_tree
from scipy.special import logsumexp

from partita import BlockFrankWolfe, OracleCRF
from partita.inference import PartGroup

L2 = 1.0
TRUTH = np.array([1.0, -0.7, 0.4])


@dataclass
class Case:
    """A family: a solver for its best configuration, all configurations, and groups of parts if there are any."""

    name: str
    size: int
    best: Callable[[np.ndarray], np.ndarray]
    every: np.ndarray
    groups: list[Any] | None = None
    rho: float | None = None


def trees(n: int) -> Case:
    """Spanning trees of a complete graph, by SciPy."""
    ends = np.array(list(itertools.combinations(range(n), 2)))

    def best(scores: np.ndarray) -> np.ndarray:
        cost = 1.0 + scores.max() - scores  # SciPy takes zeros for no edge
        tree = minimum_spanning_tree(coo_array((cost, (ends[:, 0], ends[:, 1])), shape=(n, n)).tocsr()).tocoo()
        pairs = {(min(i, j), max(i, j)) for i, j in zip(tree.row.tolist(), tree.col.tolist(), strict=True)}
        return np.array([tuple(pair) in pairs for pair in ends.tolist()])

    from partita.structures import SpanningTree

    return Case(f"spanning trees of K{n}", len(ends), best, np.asarray(SpanningTree(n).enumerate(), dtype=float))


def paths(layers: int, width: int) -> Case:
    """Paths through layers, by dynamic programming."""
    size = width + (layers - 1) * width * width + width
    first, last = np.arange(width), np.arange(size - width, size)
    between = np.arange(width, size - width).reshape(layers - 1, width, width)
    every = []
    for nodes in itertools.product(range(width), repeat=layers):
        row = np.zeros(size)
        row[first[nodes[0]]] = row[last[nodes[-1]]] = 1.0
        for k in range(layers - 1):
            row[between[k, nodes[k], nodes[k + 1]]] = 1.0
        every.append(row)

    def best(scores: np.ndarray) -> np.ndarray:
        value, back = scores[first], []
        for table in scores[between]:
            through = value[:, None] + table
            back.append(through.argmax(0))
            value = through.max(0)
        node = int((value + scores[last]).argmax())
        out = np.zeros(size)
        out[last[node]] = 1.0
        for k in range(layers - 2, -1, -1):
            before = int(back[k][node])
            out[between[k, before, node]] = 1.0
            node = before
        out[first[node]] = 1.0
        return out

    cuts = [first, *[table.ravel() for table in between], last]
    return Case(f"paths, {layers} layers of {width}", size, best, np.array(every), [PartGroup(c, 1, True) for c in cuts])


def permutations(n: int) -> Case:
    """Permutations, by SciPy's assignment."""

    def best(scores: np.ndarray) -> np.ndarray:
        out = np.zeros((n, n))
        out[linear_sum_assignment(scores.reshape(n, n), maximize=True)] = 1.0
        return out.ravel()

    every = np.array([np.eye(n)[list(p)].ravel() for p in itertools.permutations(range(n))])
    cells = np.arange(n * n).reshape(n, n)
    groups = [PartGroup(group, 1, True) for group in (*cells, *cells.T)]
    return Case(f"permutations of {n}", n * n, best, every, groups, 1.0)


def two_factors(n: int) -> Case:
    """Sets of edges of a complete graph with two at each vertex, listed."""
    ends = np.array(list(itertools.combinations(range(n), 2)))
    at = np.array([[v in pair for pair in ends.tolist()] for v in range(n)], dtype=float)
    every = []
    for chosen in itertools.combinations(range(len(ends)), n):
        row = np.zeros(len(ends))
        row[list(chosen)] = 1.0
        if (at @ row == 2.0).all():
            every.append(row)
    table = np.array(every)
    groups = [PartGroup(np.flatnonzero(row), 2, True) for row in at]
    return Case(f"2-factors of K{n}", len(ends), lambda scores: table[np.argmax(table @ scores)], table, groups)


def drawn(case: Case, examples: int, seed: int) -> tuple[np.ndarray, list[np.ndarray]]:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((examples, len(TRUTH), case.size))
    y = []
    for x in X:
        scores = case.every @ (TRUTH @ x)
        p = np.exp(scores - logsumexp(scores))
        y.append(case.every[rng.choice(len(p), p=p / p.sum())])
    return X, y


def exact(case: Case, X: np.ndarray, y: list[np.ndarray]) -> np.ndarray:
    """Maximum likelihood with the penalty."""

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        value, slope = 0.5 * L2 * theta @ theta, L2 * theta
        for x, row in zip(X, y, strict=True):
            scores = case.every @ (theta @ x)
            log_z = logsumexp(scores)
            value += log_z - theta @ x @ row
            slope = slope + x @ (np.exp(scores - log_z) @ case.every - row)
        return value, slope

    found = scipy_minimize(function, np.zeros(len(TRUTH)), jac=True, method="L-BFGS-B", options={"gtol": 1e-9})
    return np.asarray(found.x)


def true_likelihood(case: Case, theta: np.ndarray, X: np.ndarray, y: list[np.ndarray]) -> np.ndarray:
    """log p of each example."""
    return np.array([theta @ x @ row - logsumexp(case.every @ (theta @ x)) for x, row in zip(X, y, strict=True)])


def beside(case: Case, examples: int, seed: int) -> list[dict[str, Any]]:
    """Rows: what each entropy learns beside exact maximum likelihood."""
    X, y = drawn(case, examples, seed)
    best, few = exact(case, X, y), slice(0, 20)
    rows = []
    choices: list[tuple[str, dict[str, Any]]] = [("independent", {})]
    if case.groups is not None:
        choices.append(("groups, upper bound", {"entropy": "bethe", "groups": case.groups}))
        if case.rho is not None:
            choices.append((f"groups, rho={case.rho:g}", {"entropy": "bethe", "groups": case.groups, "rho": case.rho}))
    for name, options in choices:
        calls, seconds = {}, {}
        for tol in (1e-2, 1e-4):
            begin = time.perf_counter()
            with catch_warnings():
                simplefilter("error")
                model = OracleCRF(case.best, l2=L2, tol=tol, max_iter=5000, **options).fit(X, y)
            calls[tol], seconds[tol] = model.n_oracle_calls_, time.perf_counter() - begin
        value, lower, upper = model.log_likelihood(X[few], y[few], bounds=True)
        true, gaps = true_likelihood(case, model.parameters_, X[few], y[few]), []
        for x, tau in zip(X[few], model.predict_marginals(X[few]), strict=True):
            scores = case.every @ (model.parameters_ @ x)
            gaps.append(np.abs(np.exp(scores - logsumexp(scores)) @ case.every - tau).max())
        valid = bool((true <= upper + 1e-9).all() and (lower <= true + 1e-9).all())
        rows.append(
            {
                "family": case.name,
                "entropy": name,
                "weights": " ".join(f"{v:.2f}" for v in model.parameters_),
                "exact ML": " ".join(f"{v:.2f}" for v in best),
                "log p (with H)": f"{value.mean():.3f}",
                "log p (true)": f"{true.mean():.3f}",
                "log p of exact ML": f"{true_likelihood(case, best, X[few], y[few]).mean():.3f}",
                "bounds hold": valid,
                "error of marginals": f"{max(gaps):.3f}",
                "calls to 1e-2 / 1e-4": f"{calls[1e-2]} / {calls[1e-4]}",
                "seconds": f"{seconds[1e-2]:.2f} / {seconds[1e-4]:.2f}",
            }
        )
    return rows


def many_parts(parts: int, examples: int, solver: str = "scipy", passes: int = 100) -> dict[str, Any]:
    """A black box with many parts: spanning trees of a sparse graph, by a fast solver (SciPy) or a slow one (networkx, plain
    Python); the share of time within the solver."""
    import networkx

    rng = np.random.default_rng(0)
    n = parts // 4
    tails = np.concatenate([np.arange(1, n), rng.integers(0, n, parts - n + 1)])
    heads = np.concatenate([rng.integers(0, np.arange(1, n)), rng.integers(0, n, parts - n + 1)])
    keys = np.unique(np.minimum(tails, heads) * n + np.maximum(tails, heads))
    i, j = keys // n, keys % n
    i, j = i[i != j], j[i != j]
    order = np.lexsort((j, i))
    i, j = i[order], j[order]
    spent = [0.0]

    def best(scores: np.ndarray) -> np.ndarray:
        begin = time.perf_counter()
        cost = 1.0 + scores.max() - scores
        if solver == "scipy":
            tree = minimum_spanning_tree(coo_array((cost, (i, j)), shape=(n, n)).tocsr()).tocoo()
            low, high = np.minimum(tree.row, tree.col), np.maximum(tree.row, tree.col)
        else:
            graph = networkx.Graph()
            graph.add_weighted_edges_from(zip(i.tolist(), j.tolist(), cost.tolist(), strict=True))
            low, high = np.sort([edge[:2] for edge in networkx.minimum_spanning_edges(graph, data=False)], axis=1).T
        out = np.isin(i.astype(np.int64) * n + j, low.astype(np.int64) * n + high)
        spent[0] += time.perf_counter() - begin
        return out

    X = rng.standard_normal((examples, 5, len(i)))
    truth = np.array([1.0, -1.0, 0.5, 0.0, 0.0])
    y = [best(truth @ x + rng.gumbel(size=len(i))) for x in X]
    with catch_warnings():  # compile
        simplefilter("ignore")
        OracleCRF(best, max_iter=20, tol=0.0).fit(X[:1, :, :], y[:1])
    spent[0], begin = 0.0, time.perf_counter()
    with catch_warnings():
        simplefilter("ignore")
        model = OracleCRF(best, tol=1.0, max_iter=passes).fit(X, y)
    seconds = time.perf_counter() - begin
    return {
        "solver": solver,
        "parts": len(i),
        "examples": examples,
        "passes": model.n_iter_,
        "calls": model.n_oracle_calls_,
        "seconds": f"{seconds:.1f}",
        "share of the solver": f"{spent[0] / seconds:.0%}",
        "gap per example": f"{model.gap_ / examples:.3g}",
        "objective per example": f"{model.trace_.objective[-1] / examples:.5g}",
    }


def variants(case: Case) -> list[dict[str, Any]]:
    """Kinds of steps: calls to a gap of 1e-2 for each example."""
    X, y = drawn(case, 30, 1)
    rows = []
    for name, solver in {
        "blended": BlockFrankWolfe(),
        "pairwise": BlockFrankWolfe(variant="pairwise"),
        "plain, line search, mean": BlockFrankWolfe(variant="plain"),
        "plain, rule, mean": BlockFrankWolfe(line_search=False),
        "all at once": BlockFrankWolfe(batch=True),
    }.items():
        begin = time.perf_counter()
        with catch_warnings():
            simplefilter("ignore")
            model = OracleCRF(case.best, l2=L2, tol=1e-2, max_iter=1000, solver=solver).fit(X, y)
        rows.append(
            {
                "family": case.name,
                "steps": name,
                "calls": model.n_oracle_calls_,
                "seconds": f"{time.perf_counter() - begin:.2f}",
                "gap per example": f"{model.gap_ / len(y):.2g}",
            }
        )
    return rows


def show(rows: list[dict[str, Any]]) -> None:
    print(markdown(list(rows[0]), [list(row.values()) for row in rows]), flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--examples", type=int, default=100)
    parser.add_argument("--parts", type=int, default=10_000)
    args = parser.parse_args()
    print_load("start")
    cases = [trees(6), paths(4, 4), permutations(5), two_factors(6)]
    table = [row for seed, case in enumerate(cases) for row in beside(case, args.examples, seed)]
    show(table)
    steps = [row for case in (cases[0], cases[2]) for row in variants(case)]
    show(steps)
    large = [many_parts(args.parts, *case) for case in ((1,), (10,), (1, "networkx"))]
    show(large)
    print_load("end")
    write_results("oracles", {"machine": machine(), "families": table, "steps": steps, "many parts": large})


if __name__ == "__main__":
    main()
