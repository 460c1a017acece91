"""Matchings: exact sums, free energies, Frank-Wolfe through best matchings, learning, and best matchings themselves.

Beside ours stand the numbers of the specification of the method (`spec`), where it gives any. Weights are beta times
uniform numbers from 0 to 1, unless said otherwise. Every part is warm: its kernels have run before.
"""

import argparse
from typing import Any

import numpy as np
from harness import digits, machine, markdown, print_load, write_results
from uai import timed

from partita import MatchingCRF
from partita.inference.frank_wolfe import VARIANTS, maximize
from partita.matching.engines.frank_wolfe import MatchingEnergy
from partita.matching.features import EdgeFeatures
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.structures import BipartiteMatching, Matching


def exact() -> list[list[Any]]:
    """Milliseconds of log Z and of all marginals."""
    spec = {10: (0.005, 0.15), 15: (0.2, 21), 20: (35, 929)}
    rows = []
    for n, given in spec.items():
        s, W = BipartiteMatching(n, n_jobs=1), np.random.default_rng(n).standard_normal((n, n))
        s.infer(W, "exact")
        times = [[timed(lambda c=c, W=W: c(W, engine="exact"))[1] for _ in range(5)] for c in (s.log_partition, s.infer)]
        seconds = [min(each) for each in times]
        rows.append([n, *(digits(1e3 * t) for t in seconds), *given])
    print(markdown(["n", "log Z ms", "marginals ms", "spec: permanent ms", "spec: marginals ms"], rows), flush=True)
    return rows


def marginals() -> list[list[Any]]:
    """Largest errors of marginals, n = 10: Bethe, and perturb-and-MAP with 10,000 best matchings."""
    spec: dict[float, Any] = {0.25: (0.0002, 0.008), 1.0: None, 5.0: None, 10.0: (0.071, 0.153), 20.0: (0.214, 0.182)}
    s, rows = BipartiteMatching(10), []
    for beta, given in spec.items():
        W = beta * np.random.default_rng(0).random((20, 10, 10))
        truth, found = s.infer(W, "exact").marginals, s.infer(W, rho=1.0).marginals
        drawn = s.infer(W[:4], "perturb_and_map", n_samples=10_000, random_state=0).marginals
        errors = [np.abs(truth[: len(p)] - p).max(axis=(1, 2)) for p in (found, drawn)]
        rows.append([beta, *(f"{np.median(e):.4f} ({e.max():.4f})" for e in errors), *(given or ("-", "-"))])
    print(markdown(["beta", "Bethe", "perturb-and-MAP", "spec: Bethe", "spec: perturb-and-MAP"], rows), flush=True)
    return rows


def frank_wolfe() -> list[list[Any]]:
    """Calls of the solver until the certificate is small."""
    spec = {("plain", 10, 1): "1757/8218", ("pairwise", 10, 1): "295/653", ("blended", 10, 1): "55/86"}
    spec |= {("plain", 20, 10): "-/-", ("pairwise", 20, 10): "5546/17012", ("blended", 20, 10): "2078/2209"}
    rows = []
    for n, beta in ((5, 1), (10, 1), (20, 1), (20, 10)):
        W = beta * np.random.default_rng(0).random((n, n))
        s = BipartiteMatching(n, n_jobs=1)
        plain = 0  # calls of the first variant to 1e-3
        for variant in VARIANTS:
            cells: list[Any] = []
            for tol, limit in ((1e-3, 10_000), (1e-6, 10_000)):
                energy = MatchingEnergy(s, W.ravel(), 1.0)
                (_, _, gap, calls), seconds = timed(lambda e=energy, v=variant, t=tol, m=limit: maximize(e, v, t, m))
                cells += [calls if gap <= tol else f"> {limit}", digits(seconds)]
                if tol == 1e-3:
                    plain = plain or calls
                    cells.append(digits(calls / plain))
            rows.append([n, beta, variant, *cells, spec.get((variant, n, beta), "-")])
            print(*rows[-1], flush=True)
    header = ["n", "beta", "variant", "calls to 1e-3", "s", "of plain", "calls to 1e-6", "s", "spec: calls"]
    print(markdown(header, rows), flush=True)
    return rows


def inference() -> list[list[Any]]:
    """Messages to 1e-6 against Frank-Wolfe with line search to 1e-2."""
    rows = []
    for n in (20, 50, 100):
        s, W = BipartiteMatching(n, n_jobs=1), np.random.default_rng(n).random((n, n))
        s.infer(W, rho=1.0, tol=1e-6)
        result, ours = timed(lambda s=s, W=W: s.infer(W, rho=1.0, tol=1e-6))
        (_, _, gap, calls), theirs = timed(lambda s=s, W=W: maximize(MatchingEnergy(s, W.ravel()), "plain", 1e-2, 3000))
        rows.append([n, digits(ours), result.n_iter, digits(theirs), calls, digits(gap), f"{theirs / ours:.0f}x"])
    print(markdown(["n", "messages s", "sweeps", "Frank-Wolfe s", "calls", "its gap", "ratio"], rows), flush=True)
    return rows


def learning(passes: int = 1000) -> list[list[Any]]:
    """N = 30, M = 20, K = 10, l2 = 1: the best solver to a certificate of 1e-6, and passes of Frank-Wolfe in the dual."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((20, 10, 30, 30))
    theta = rng.standard_normal(10)
    y = [BipartiteMatching(30).argmax(np.tensordot(theta, x, 1) + rng.gumbel(size=(30, 30)))[0] for x in X]
    MatchingCRF().fit(X, y)
    model, seconds = timed(lambda: MatchingCRF(tol=1e-6 / 1200).fit(X, y))
    rows = [["auto", digits(seconds), model.n_iter_, f"{model.gap_:.1e}", "1", "46 ms, 3.5e-10"]]
    structure, features = BipartiteMatching(30), EdgeFeatures(X.reshape(20, 10, -1).transpose(1, 0, 2))
    group = Group(structure, features, structure.indicators(np.array(y)), np.ones(20))
    blocks = MatchingLikelihood([group], l2=1.0).blocks()

    def run() -> None:
        for _ in range(passes):
            for m in np.random.default_rng(0).permutation(20).tolist():
                blocks.step(m, None)

    _, theirs = timed(run)  # steps alone: `BlockFrankWolfe` also evaluates the likelihood after every pass
    ratio = f"{theirs / seconds:.0f}"
    rows.append(["block Frank-Wolfe", digits(theirs), passes, f"{blocks.gap():.2g}", ratio, "11.4 s, 1000 passes, 8.6"])
    print(markdown(["solver", "s", "iterations", "certificate", "times auto", "spec"], rows), flush=True)
    return rows


def best() -> list[list[Any]]:
    """Best perfect matchings of complete graphs."""
    rows = []
    for n in (100, 500, 2500):
        W = np.random.default_rng(n).standard_normal((n, n))
        W = W + W.T
        s = Matching(n)
        (_, value), seconds = timed(lambda s=s, W=W: s.argmax(W))
        rows.append([n, digits(seconds), f"{value[0]:.6f}"])
    print(markdown(["n", "s", "value"], rows), flush=True)
    return rows


PARTS = {part.__name__: part for part in (exact, marginals, frank_wolfe, inference, learning, best)}


def main() -> None:
    """Run the parts, print their tables, and write `results/matching.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS), default=list(PARTS))
    parser.add_argument("--passes", type=int, default=1000, help="of Frank-Wolfe (learning)")
    arguments = parser.parse_args()
    options = {"learning": {"passes": arguments.passes}}
    print_load("start")
    found = {name: PARTS[name](**options.get(name, {})) for name in arguments.only}
    print_load("end")
    write_results("matching", {"machine": machine(), **found})


if __name__ == "__main__":
    main()
