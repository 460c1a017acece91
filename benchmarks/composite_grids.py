"""Composite likelihoods on Ising grids: accuracy and seconds against the exact likelihood, and a race for one pass of
pseudo-likelihood.

Fields and couplings are drawn, N(0, 0.3^2) and N(0.2, 0.3^2); samples are exact on 10 x 10 (junction tree) and from long
Gibbs chains on 30 x 30, where exact sums are out of reach. Rivals of the race, all on the same data and weights: a pass
written with NumPy and SciPy's sparse products; scikit-learn's logistic regression of every variable on its neighbours (a
whole fit against a whole fit); PyPLM (a whole fit; complete graphs only, if it is installed).
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import scipy.sparse as sp
from harness import digits, machine, markdown, print_load, write_results
from sklearn.linear_model import LogisticRegression

from partita import CompositeLikelihood, MarkovNetwork
from partita.graph.objective.composite import GraphComposite
from partita.inference import gibbs_states

LIKELIHOODS: dict[str, Any] = {
    "PL1": "pseudo",
    "PL2": CompositeLikelihood({2: 1.0}),
    "PL1 + 0.3 PL2, drawn once": CompositeLikelihood({1: 1.0, 2: 0.3}, weights="auto", refresh=False, random_state=0),
    "PL1, then a Newton step of PL2": CompositeLikelihood(refine={2: 1.0}),
    "PL1, then a Newton step of FL": CompositeLikelihood(refine="full"),
    "FL": "full",
}


def edges_of(n: int) -> np.ndarray:
    number = np.arange(n * n).reshape(n, n)
    across, down = (number[:, :-1], number[:, 1:]), (number[:-1], number[1:])
    return np.vstack([np.column_stack([a.ravel(), b.ravel()]) for a, b in (across, down)])


def weights_of(n: int, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return np.concatenate([rng.normal(0.0, 0.3, n * n), rng.normal(0.2, 0.3, 2 * n * (n - 1))])


def samples_of(n: int, count: int, seed: int, burn_in: int) -> np.ndarray:
    net = MarkovNetwork.ising(edges_of(n))
    features = net.feature_map()
    u = features.forward(weights_of(n))
    if n <= 12:
        return features.graph.sample(u, count, seed)
    return gibbs_states(features.graph, u, burn_in=burn_in, n_chains=count, random_state=seed)[0]


def accuracy(n: int, count: int, repeats: int, burn_in: int) -> list[dict[str, Any]]:
    theta, rows = weights_of(n), []
    names = [name for name in LIKELIHOODS if n <= 12 or "FL" not in name]
    found: dict[str, list[Any]] = {name: [] for name in names}
    for r in range(repeats):
        X = samples_of(n, count, r, burn_in)
        best = None
        for name in reversed(names):
            start = time.perf_counter()
            model = MarkovNetwork.ising(edges_of(n), likelihood=LIKELIHOODS[name]).fit(X)
            seconds = time.perf_counter() - start
            best = model.parameters_ if name == "FL" else best
            error = model.parameters_ - theta
            away = np.nan if best is None else float(np.sqrt(np.mean((model.parameters_ - best) ** 2)))
            edge = float(np.sqrt(np.mean(error[n * n :] ** 2)))
            found[name].append((seconds, float(np.sqrt(np.mean(error**2))), edge, away, model.n_iter_))
    for name in names:
        seconds, total, edge, away, iterations = np.array(found[name]).T
        rows.append(
            {
                "grid": f"{n} x {n}, {count} samples",
                "likelihood": name,
                "seconds": float(np.median(seconds)),
                "iterations": float(np.median(iterations)),
                "rms error": float(total.mean()),
                "s.e.": float(total.std(ddof=1) / np.sqrt(repeats)) if repeats > 1 else np.nan,
                "rms error of couplings": float(edge.mean()),
                "rms distance to MLE": float(away.mean()),
            }
        )
    return rows


def numpy_pass(X: np.ndarray, edges: np.ndarray) -> Any:
    """Value and gradient of the pseudo-likelihood as one would write them with NumPy and SciPy."""
    S = (2.0 * X - 1.0).T.copy()  # spins, variables by samples
    m = len(S)

    def evaluate(theta: np.ndarray) -> tuple[float, np.ndarray]:
        h, J = theta[:m], theta[m:]
        A = sp.csr_matrix((np.r_[J, J], (np.r_[edges[:, 0], edges[:, 1]], np.r_[edges[:, 1], edges[:, 0]])), (m, m))
        field = A @ S + h[:, None]
        margin = -2.0 * S * field
        value = np.logaddexp(0.0, margin).sum()
        r = -2.0 * S / (1.0 + np.exp(-margin))
        a, b = edges.T
        coupling = np.einsum("es,es->e", r[a], S[b]) + np.einsum("es,es->e", r[b], S[a])
        return float(value), np.concatenate([r.sum(1), coupling])

    return evaluate


def timed(function: Any, repeats: int) -> float:
    function()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def race(repeats: int, burn_in: int) -> list[dict[str, Any]]:
    n, count = 30, 1000
    X, edges, theta = samples_of(n, count, 0, burn_in), edges_of(n), weights_of(n)
    features = MarkovNetwork.ising(edges).feature_map()
    start = time.perf_counter()
    objective = GraphComposite(features, X, CompositeLikelihood())
    setup = time.perf_counter() - start
    start = time.perf_counter()
    GraphComposite(features, X, CompositeLikelihood())
    setup = min(setup, time.perf_counter() - start)
    numpy_evaluate = numpy_pass(X, edges)

    def ours() -> None:
        _ = objective.at(theta).gradient

    point, (value, gradient) = objective.at(theta), numpy_evaluate(theta)
    gap = max(abs(point.value - value) / abs(value), float(np.abs(point.gradient - gradient).max()))
    rounds = [(timed(ours, 20), timed(lambda: numpy_evaluate(theta), 5)) for _ in range(repeats)]
    own, numpy_seconds = np.median(rounds, axis=0)
    start = time.perf_counter()
    model = MarkovNetwork.ising(edges, likelihood="pseudo").fit(X)
    fit = time.perf_counter() - start
    near: list[list[int]] = [[] for _ in range(n * n)]
    for a, b in edges.tolist():
        near[a].append(b)
        near[b].append(a)
    start = time.perf_counter()
    for v in range(n * n):
        LogisticRegression(C=np.inf, tol=1e-6).fit(X[:, near[v]], X[:, v])
    by_node = time.perf_counter() - start
    return [
        {"what": "one pass (value and gradient), seconds", "ours": own, "rival": numpy_seconds, "name": "NumPy and SciPy"},
        {
            "what": "the same with setup",
            "ours": own + setup,
            "rival": numpy_seconds,
            "name": "NumPy and SciPy",
        },
        {"what": "whole fit, seconds", "ours": fit, "rival": by_node, "name": "scikit-learn, node by node"},
        {"what": "largest difference of value and gradient", "ours": gap, "rival": np.nan, "name": "NumPy and SciPy"},
        {"what": "items after rows that agree are one", "ours": objective.sets.n_items, "rival": X.size, "name": "cells"},
        {"what": "iterations of our fit", "ours": model.n_iter_, "rival": np.nan, "name": ""},
    ]


def complete_graph(m: int, count: int) -> list[dict[str, Any]]:
    """PyPLM fits every pair; so do we here."""
    try:
        from joblib import Parallel
        from pyplm.inference.pseudolikelihoodmax import plm
    except ImportError:
        print("PyPLM (pseudolm) is not installed: its race is left out")
        return []
    pairs = [(a, b) for a in range(m) for b in range(a + 1, m)]
    rng = np.random.default_rng(0)
    features = MarkovNetwork.ising(pairs).feature_map()
    u = features.forward(np.r_[np.zeros(m), rng.normal(0.0, 1.0 / m, len(pairs))])
    X = gibbs_states(features.graph, u, burn_in=500, n_chains=count, random_state=0)[0]
    MarkovNetwork.ising(pairs, likelihood="pseudo").fit(X[:50])
    start = time.perf_counter()
    model = MarkovNetwork.ising(pairs, likelihood="pseudo").fit(X)
    ours = time.perf_counter() - start
    start = time.perf_counter()
    with Parallel(n_jobs=2) as parallel:
        theirs = plm(2 * X - 1, parallel)
    rival = time.perf_counter() - start
    difference = np.abs(theirs[tuple(np.array(pairs).T)] - model.parameters_[m:]).max()
    print(f"PyPLM averages two estimates of a coupling, ours is one: largest difference {difference:.3f}")
    return [{"what": f"fit, complete graph of {m}, {count} samples", "ours": ours, "rival": rival, "name": "PyPLM"}]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--burn-in", type=int, default=2000)
    parser.add_argument("--only", choices=["accuracy", "race"])
    options = parser.parse_args()
    print_load("start")
    results: dict[str, Any] = {"machine": machine()}
    if options.only != "race":
        results["accuracy"] = rows = [
            *accuracy(10, 1000, options.repeats, options.burn_in),
            *accuracy(10, 10_000, options.repeats, options.burn_in),
            *accuracy(30, 1000, options.repeats, options.burn_in),
        ]
        print(markdown(list(rows[0]), [[c if isinstance(c, str) else digits(c) for c in row.values()] for row in rows]))
    if options.only != "accuracy":
        results["race"] = rows = race(options.repeats, options.burn_in) + complete_graph(40, 5000)
        cells = [[r["what"], digits(r["ours"]), digits(r["rival"]), digits(r["rival"] / r["ours"]), r["name"]] for r in rows]
        print(markdown(["what", "ours", "rival", "ratio", "rival is"], cells))
    write_results("composite_grids", results)
    print_load("end")


if __name__ == "__main__":
    main()
