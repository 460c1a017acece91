"""Variances and intervals of composite likelihood estimates: what they are over many data sets against what is reported.

The Boltzmann machine of 5 units of the composite likelihood paper. A first table has n times the variance of estimates
over the reported limit, as ratios of traces and of r-th roots of determinants, and for objects drawn once for each example
(frozen) also over the paper's Proposition 2, which leaves the drawing out. A second one has how often estimate +- 1.96
standard errors (the sandwich of each data set) holds the truth.

All fits are `MarkovNetwork.fit`. Where nothing is drawn, the 32 configurations are passed with their counts as weights;
frozen ones, and the intervals, need the rows themselves.
"""

import argparse
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from harness import machine, markdown, print_load, with_threads, write_results

from partita import CompositeLikelihood, MarkovNetwork
from partita.graph.objective.asymptotics import Limits
from partita.objectives.composite.efficiency import efficiency

NET, THETA = MarkovNetwork.boltzmann(5), np.repeat([-1.0, 1.0], 5)
MIXED = {1: 0.7, 2: 0.3}
#: Of the specification of the method: (trace, rdet) over Proposition 2 and over the corrected limit.
SPECIFIED = {
    "0.7 PL1 + 0.3 PL2, frozen": ("1.161, 1.205", "1.006, 1.001"),
    "multinomial (0.7, 0.3), frozen": ("2.038, 2.568", "1.007, 1.003"),
}
#: Data sets of a piece of work.
PIECE = 25


def likelihoods() -> dict[str, CompositeLikelihood]:
    """What is compared; "auto" with the weights of the limit."""
    auto = CompositeLikelihood({1: 1.0, 2: 0.3}, weights="auto", refresh=False)
    beta = Limits(NET.feature_map(), THETA).beta(auto)
    return {
        "PL1": CompositeLikelihood(),
        "PL2": CompositeLikelihood({2: 1.0}),
        "0.7 PL1 + 0.3 PL2, refreshed": CompositeLikelihood(MIXED),
        "0.7 PL1 + 0.3 PL2, frozen": CompositeLikelihood(MIXED, refresh=False),
        "multinomial (0.7, 0.3), frozen": CompositeLikelihood(MIXED, policy="multinomial", refresh=False),
        f"PL1 + 0.3 PL2, frozen, weights 1, {beta[1]:.4f}": replace(auto, weights=dict(zip((1, 2), beta, strict=True))),
        "PL1, refine='full'": CompositeLikelihood(refine="full"),
        "FL": CompositeLikelihood({"full": 1.0}),
    }


def fitted(likelihood: CompositeLikelihood, states: np.ndarray, counts: np.ndarray, rng: Any, rows: bool) -> MarkovNetwork:
    """A fit to data with these counts of configurations, row by row or by weights."""
    seen = counts > 0
    given = replace(likelihood, random_state=rng)
    model = MarkovNetwork.boltzmann(5, likelihood="full" if "full" in likelihood.rates else given, n_jobs=1)
    if rows or not likelihood.refresh:
        return model.fit(np.repeat(states, counts, axis=0))
    return model.fit(states[seen], sample_weight=counts[seen])


def piece(n: int, intervals: bool, seed: np.random.SeedSequence) -> np.ndarray:
    """Estimates, and if asked for their standard errors, of some data sets: (data sets, likelihoods, 1 or 2, parameters)."""
    rng = np.random.default_rng(seed)
    listed = Limits(NET.feature_map(), THETA).enumeration
    assert listed is not None
    states, compared, out = listed.states.T, likelihoods().values(), []
    for _ in range(PIECE):
        counts = rng.multinomial(n, listed.p)
        models = [fitted(likelihood, states, counts, rng, intervals) for likelihood in compared]
        out.append([[m.parameters_, *((m.standard_errors(),) if intervals else ())] for m in models])
    return np.array(out)


def many(run: Callable[[np.random.SeedSequence], np.ndarray], repeats: int, jobs: int, seed: int) -> np.ndarray:
    """All pieces, on `jobs` processes."""
    seeds = np.random.SeedSequence(seed).spawn(-(-repeats // PIECE))
    with ProcessPoolExecutor(jobs) as pool:
        return np.concatenate(list(pool.map(run, seeds)))


def against(estimates: np.ndarray, n: int, limit: np.ndarray) -> tuple[float, float, float]:
    """n times the variance of estimates over a limit: trace, the error of that by chance, and rdet."""
    spread = n * np.cov(estimates.T)
    squares = n * ((estimates - estimates.mean(0)) ** 2).sum(1)
    error = float(squares.std() / np.sqrt(len(squares)) / np.trace(limit))
    return float(np.trace(spread) / np.trace(limit)), error, efficiency(spread, np.linalg.inv(limit), "rdet")


def variances(n: int, repeats: int, jobs: int) -> dict[str, Any]:
    """The first table."""
    found = many(partial(piece, n, False), repeats, jobs, seed=1)[:, :, 0]
    rows, record = [], {}
    for i, (name, likelihood) in enumerate(likelihoods().items()):
        trace, error, rdet = against(found[:, i], n, likelihood.asymptotic_covariance(NET, THETA))
        record[name] = {"trace": trace, "error": error, "rdet": rdet}
        cells = [f"{trace:.3f} ± {error:.3f}", f"{rdet:.3f}", "-", "-", "-"]
        if not likelihood.refresh:
            printed = against(found[:, i], n, replace(likelihood, refresh=True).asymptotic_covariance(NET, THETA))
            record[name] |= {"proposition 2": printed}
            cells[2] = f"{printed[0]:.3f}, {printed[2]:.3f}"
        if name in SPECIFIED:
            cells[3:] = SPECIFIED[name]
        bias = (found[:, i].mean(0) - THETA) / found[:, i].std(0)
        record[name]["bias"] = float(np.abs(bias).max())
        rows.append([name, *cells, f"{record[name]['bias']:.3f}"])
    print(f"\nn Var over what is reported, n = {n}, {len(found)} data sets; specified for 4000\n")
    header = ["", "trace", "rdet", "Proposition 2: trace, rdet", "specified, P2", "specified", "largest bias / sd"]
    print(markdown(header, rows), flush=True)
    return record | {"data sets": len(found)}


def coverage(n: int, repeats: int, jobs: int) -> dict[str, Any]:
    """The second table."""
    found = many(partial(piece, n, True), repeats, jobs, seed=2)
    rows, record = [], {}
    for i, name in enumerate(likelihoods()):
        held = np.abs(found[:, i, 0] - THETA) <= 1.96 * found[:, i, 1]
        each = 100.0 * held.mean(0)
        ratio = float(np.mean(found[:, i, 1].mean(0) / found[:, i, 0].std(0)))
        record[name] = {"overall": float(each.mean()), "each": each.tolist(), "errors over sd": ratio}
        worst = float(each[np.argmax(np.abs(each - 95.0))])
        rows.append(
            [name, f"{each.mean():.2f}", f"{each.min():.2f} to {each.max():.2f}", f"{worst - 95.0:+.2f}", f"{ratio:.3f}"]
        )
    print(f"\nIntervals that hold the truth, of 95 %, n = {n}, {len(found)} data sets")
    print(f"(one parameter is known to ± {100.0 * np.sqrt(0.0475 / len(found)):.2f})\n")
    print(markdown(["", "%", "parameters", "farthest off", "standard errors / sd"], rows), flush=True)
    return record | {"data sets": len(found)}


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=4000, help="data sets of the first table")
    parser.add_argument("--intervals", type=int, default=2000, help="data sets of the second table")
    parser.add_argument("--jobs", type=int, default=2, help="processes")
    arguments = parser.parse_args()
    with_threads(1)
    print_load("start")
    start = time.perf_counter()
    results: dict[str, Any] = {"machine": machine()}
    results["variances"] = variances(20_000, arguments.repeats, arguments.jobs)
    results["coverage"] = coverage(2000, arguments.intervals, arguments.jobs)
    results["seconds"] = time.perf_counter() - start
    write_results("composite_monte_carlo", results)
    print(f"\n{results['seconds']:.0f} s")
    print_load("end")


if __name__ == "__main__":
    main()
