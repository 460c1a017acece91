"""Matchings of the Bethe learning paper: drawn permutations, points of a toy house and hotel, roommates.

The paper shows these results as pictures only, so that beside ours stand its words, or the numbers of the specification of
the method (`spec`). `matching.py` has the parts about speed.
"""

import argparse
import resource
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from warnings import catch_warnings, simplefilter

import numpy as np
from harness import RESULTS, digits, machine, markdown, print_load, read_results, write_results
from matching_data import (
    BASELINES,
    LEVELS,
    PARTS,
    Pairs,
    contexts,
    frame_pairs,
    questionnaire_truth,
    roommates,
    year_groups,
)
from matching_rivals import perceptron, structured_svm, wrong
from sklearn.metrics import roc_auc_score
from uai import timed

from partita import BlockFrankWolfe, MatchingCRF, minimize
from partita.matching.features import EdgeFeatures
from partita.matching.objective.likelihood import Group, MatchingLikelihood
from partita.structures import BipartiteMatching

RHOS = {"exact": None, "Bethe": 1.0, "RW": 0.5}
NOT_PRINTED = "not printed in the text"


def draw(path: Path, panels: dict[str, dict[str, tuple[Sequence[float], Sequence[float]]]], **axes: Any) -> None:
    """Curves side by side."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, places = plt.subplots(1, len(panels), figsize=(5.2 * len(panels), 4.0), squeeze=False)
    for axis, (title, curves) in zip(places[0], panels.items(), strict=True):
        for label, (x, y) in curves.items():
            axis.plot(x, y, marker=".", label=label)
        axis.set(title=title, **axes)
        axis.legend(fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(exist_ok=True)
    figure.savefig(path, dpi=110)
    plt.close(figure)


def likelihoods(off: float, m: int, seed: int) -> np.ndarray:
    """Penalised log-likelihoods for each matching, (estimators, kinds of likelihood), of `m` matchings drawn exactly.

    All examples have the same features, one for each edge, so that one with the mean of the matchings stands for them.
    """
    n = 10
    s, W = BipartiteMatching(n), np.where(np.eye(n) > 0.0, 0.0, off)
    shares = s.indicators(s.sample(W, m, random_state=seed)).mean(0)
    group = Group(s, EdgeFeatures(np.eye(n * n)[:, None, :]), shares[None], np.array([float(m)]))
    objectives = [MatchingLikelihood([group], 1.0, rho) for rho in RHOS.values()]
    found = [minimize(o, tol=0.0, gap_tol=1e-6 * m, max_iter=2000).parameters for o in objectives]
    return np.array([[-o.at(np.asarray(theta)).value / m for o in objectives] for theta in found])


def synthetic(arguments: argparse.Namespace) -> dict[str, Any]:
    """Figures 1 and 8: true and approximate likelihoods at three estimates, l2 = 1."""
    spec = {(-2.0, 100): "-7.224, -7.263, -8.913", (-2.0, 10_000): "-7.481, -7.524, -9.308"}
    spec[-0.5, 10_000] = "-14.9213, -14.9214, -14.9262"
    sizes = (10, 30, 100, 300, 1000, 3000, 10_000)
    estimates, optima, bounds, panels = [], [], [], {}
    for name, off in (("high", -2.0), ("low", -0.5)):
        found = np.array([[likelihoods(off, m, seed) for seed in range(arguments.draws)] for m in sizes])
        mean, spread = found.mean(1), found.std(1, ddof=1)
        for k, m in enumerate(sizes):
            at = mean[k]
            true = ", ".join(f"{at[i, 0]:.4f}" for i in range(3))
            sd = f"{spread[k][0, 0]:.2g}"
            estimates.append([name, m, true, sd, spec.get((off, m), "-")])
            inside = found[k]
            order = (inside[:, 2, 2] <= inside[:, 0, 0]) & (inside[:, 0, 0] <= inside[:, 1, 1])
            optima.append([name, m, *(f"{at[i, i]:.4f}" for i in (2, 0, 1)), f"{order.sum()} of {len(order)}"])
            for i, estimator in ((1, "Bethe"), (2, "RW")):
                order = (inside[:, i, 2] <= inside[:, i, 0]) & (inside[:, i, 0] <= inside[:, i, 1])
                cells = (f"{at[i, j]:.4f}" for j in (2, 0, 1))
                bounds.append([name, m, estimator, *cells, f"{order.sum()} of {len(order)}"])
        panels[f"{name}: true likelihood"] = {label: (sizes, mean[:, i, 0]) for i, label in enumerate(RHOS)}
        panels[f"{name}: each at its optimum"] = {label: (sizes, mean[:, i, i]) for i, label in enumerate(RHOS)}
    draw(RESULTS / "matching_synthetic.png", panels, xscale="log", xlabel="matchings", ylabel="log-likelihood of one")
    print("\nFigure 1 a, b: true penalised log-likelihood of one matching at the exact, Bethe and RW estimates")
    print(markdown(["model", "M", f"mean of {arguments.draws} data sets", "sd of one", "spec: one data set"], estimates))
    print(f"\nFigure 1 c, d: each likelihood at its own optimum (paper: always in this order; numbers {NOT_PRINTED})")
    print(markdown(["model", "M", "RW", "true", "Bethe", "in order"], optima))
    print(f"\nFigure 8: the three likelihoods at one estimate (numbers {NOT_PRINTED})")
    print(markdown(["model", "M", "estimate", "RW", "true", "Bethe", "in order"], bounds), flush=True)
    return {"figure 1 a, b": estimates, "figure 1 c, d": optima, "figure 8": bounds}


Fit = Callable[[Pairs], list[tuple[Any, np.ndarray]]]


def crf(rho: float) -> Fit:
    """`MatchingCRF` with several penalties, the strongest first."""

    def fits(train: Pairs) -> list[tuple[Any, np.ndarray]]:
        out = []
        for l2 in (100.0, 30.0, 10.0, 3.0, 1.0, 0.3):
            model = MatchingCRF(l2=l2, rho=rho, tol=1e-4, max_iter=200).fit(train.X, train.y)
            out.append(((l2, model.gap_), model.parameters_))
        return out

    return fits


def svm(train: Pairs) -> list[tuple[Any, np.ndarray]]:
    """The structured SVM with several penalties, the strongest first."""
    found = [(l2, structured_svm(train.groups(), l2)) for l2 in (100.0, 10.0, 1.0, 0.1, 0.01, 0.001)]
    return [((l2, gap), theta) for l2, (theta, gap) in found]


def averaged_perceptron(train: Pairs) -> list[tuple[Any, np.ndarray]]:
    """The averaged perceptron with several numbers of passes, fewest first."""
    return [((passes, None), theta) for passes, theta in perceptron(train.groups(), (1, 3, 10, 30, 100, 300)).items()]


def unlearned(train: Pairs) -> list[tuple[Any, np.ndarray]]:
    """The same weight for every cell."""
    return [((None, None), np.ones(train.X.shape[1]))]


def chosen(parts: dict[str, Pairs], fits: Fit) -> tuple[np.ndarray, Any, float]:
    """Share of wrong points of each test pair for the fit that is best on validation, its setting, and seconds of all fits.

    Of equally good ones the first: it is the most penalised.
    """
    found, seconds = timed(lambda: fits(parts["train"]))
    errors = [wrong(parts["validate"].groups(), theta).mean() for _, theta in found]
    setting, theta = found[int(np.argmin(errors))]
    return wrong(parts["test"].groups(), theta), setting, seconds


def house(arguments: argparse.Namespace) -> dict[str, Any]:
    """Figure 4: wrong points against the number of frames between two pictures; Figure 2: the same for several rho."""
    methods: dict[str, Fit] = {"likelihood": crf(1.0), "SVM": svm, "perceptron": averaged_perceptron, "unlearned": unlearned}
    rows, totals, panels = [], [], {}
    for name in ("house", "hotel"):
        points = contexts(name)
        tests: dict[str, list[np.ndarray]] = {method: [] for method in methods}
        for baseline in arguments.baselines:
            parts = {part: frame_pairs(points, baseline, part) for part in PARTS}
            cells, notes = [], []
            for method, fits in methods.items():
                errors, setting, seconds = chosen(parts, fits)
                tests[method].append(errors)
                cells.append(f"{errors.mean():.4f}")
                if method == "likelihood":
                    notes = [f"{setting[0]:g}", f"{setting[1]:.1e}", digits(seconds)]
            rows.append([name, baseline, len(parts["train"].X), *cells, *notes])
            print(*rows[-1], flush=True)
        panels[name] = {m: (arguments.baselines, [e.mean() for e in found]) for m, found in tests.items()}
        pooled = {method: np.concatenate(found) for method, found in tests.items()}
        for rival in list(methods)[1:]:
            difference = pooled["likelihood"] - pooled[rival]
            error = difference.std(ddof=1) / np.sqrt(len(difference))
            means = f"{pooled['likelihood'].mean():.4f}", f"{pooled[rival].mean():.4f}"
            totals.append([name, rival, len(difference), *means, f"{difference.mean():+.4f} ({error:.4f})"])
    draw(RESULTS / "matching_house.png", panels, xlabel="frames between the two", ylabel="share of wrong points")
    print(f"\nFigure 4: share of wrong points on test pairs (paper: {NOT_PRINTED})")
    header = ["set", "baseline", "pairs", *methods, "l2", "certificate", "s of all l2"]
    print(markdown(header, rows))
    print("\nAll baselines (paper: likelihood slightly better on the house, SVM slightly better on the hotel)")
    print(markdown(["set", "rival", "pairs", "likelihood", "rival's", "difference (standard error)"], totals))
    return {"figure 4": rows, "totals": totals, "figure 2": sweep(arguments), "gap": against_gap(arguments)}


def sweep(arguments: argparse.Namespace) -> list[list[Any]]:
    """Figure 2: the house at one baseline for several rho."""
    points, rows = contexts("house"), []
    parts = {part: frame_pairs(points, arguments.sweep_baseline, part) for part in PARTS}
    for rho in arguments.rho:
        errors, (l2, gap), seconds = chosen(parts, crf(rho))
        error = errors.std(ddof=1) / np.sqrt(len(errors))
        rows.append([rho, f"{errors.mean():.4f} ({error:.4f})", f"{l2:g}", f"{gap:.1e}", digits(seconds)])
        print(*rows[-1], flush=True)
    print(f"\nFigure 2: house, {arguments.sweep_baseline} frames apart (paper: little difference; numbers {NOT_PRINTED})")
    print(markdown(["rho", "wrong points (standard error)", "l2", "certificate", "s of all l2"], rows), flush=True)
    return rows


def against_gap(arguments: argparse.Namespace) -> list[list[Any]]:
    """Wrong points against the certificate, as training goes on: the house at the baseline of the sweep, l2 = 1."""
    points, rows = contexts("house"), []
    parts = {part: frame_pairs(points, arguments.sweep_baseline, part) for part in PARTS}
    runs: list[tuple[str, Any, int]] = [("block Frank-Wolfe", BlockFrankWolfe(), k) for k in (1, 3, 10, 30, 100)]
    runs += [("auto", "auto", k) for k in (1, 3, 10, 30)]
    for name, solver, passes in runs:
        model = MatchingCRF(l2=1.0, solver=solver, max_iter=passes, tol=1e-6)
        with catch_warnings():
            simplefilter("ignore")  # that it has not converged
            _, seconds = timed(lambda m=model: m.fit(parts["train"].X, parts["train"].y))
        errors = [wrong(parts[part].groups(), model.parameters_).mean() for part in ("train", "test")]
        rows.append([name, model.n_iter_, digits(seconds), f"{model.gap_:.2g}", *(f"{e:.4f}" for e in errors)])
        print(*rows[-1], flush=True)
    print(f"\nWrong points against the certificate: house, {arguments.sweep_baseline} frames apart, l2 = 1")
    print(markdown(["solver", "passes", "s", "certificate", "train", "test"], rows), flush=True)
    return rows


def room_mates(arguments: argparse.Namespace) -> list[list[Any]]:
    """Figure 5: areas under the ROC curve of all pairs of a third year, learned from two."""
    n, l2 = arguments.students, arguments.l2
    rng = np.random.default_rng(0)
    truth = questionnaire_truth(rng)
    years = [roommates(n, truth, rng) for _ in range(3)]
    train, test = year_groups(years[:2]), year_groups(years[2:])[0]

    def area(weights: np.ndarray) -> float:
        return float(roc_auc_score(test.observed[0], weights))

    constant = np.zeros(test.features.size)
    constant[: len(LEVELS)] = -1.0
    spec = {1000: (".663", ".714, 9.7 s"), 2500: (".659", ".710, 67 s")}.get(n, ("-", "-"))
    rows: list[list[Any]] = []

    def add(name: str, scores: np.ndarray, *cells: Any) -> None:
        rows.append([name, digits(area(scores)), *cells])
        print(*rows[-1], flush=True)

    for name, theta, note in (("constant", constant, spec[0]), ("weights of the model", truth, "-")):
        add(name, test.features.forward(theta)[0], "-", "-", "-", note)
    objective = MatchingLikelihood(train, l2, 1.0, tol=1e-10)
    found, seconds = timed(lambda: minimize(objective, tol=0.0, gap_tol=1e-7, max_iter=1000))
    scores = test.features.forward(np.asarray(found.parameters))[0]
    add("200 features", scores, found.n_iter, f"{found.point.gap:.1e}", digits(seconds), spec[1])
    model = MatchingCRF(bipartite=False, l2=l2, tol=1e-7 / (2 * n), max_iter=1000)
    X, y = [{"nodes": year.answers} for year in years[:2]], [year.partners for year in years[:2]]
    _, seconds = timed(lambda: model.fit(X, y))
    ends, T = test.structure.ends, model.parameters_
    W = years[2].answers @ (0.5 * (T + T.T)) @ years[2].answers.T
    cells = model.n_iter_, f"{model.gap_:.1e}", digits(seconds)
    add("MatchingCRF, all 64 x 64", W[ends[:, 0], ends[:, 1]], *cells, "-")
    if n <= arguments.rivals_up_to:
        passes = 20
        theta, seconds = timed(lambda: perceptron(train, [passes])[passes])
        add("perceptron", test.features.forward(theta)[0], passes, "-", digits(seconds), "paper: below the constant")
        for strength in (1e-2, 1.0, 100.0):
            (theta, gap), seconds = timed(lambda s=strength: structured_svm(train, s, passes=passes))
            cells = passes, f"{gap:.1e}", digits(seconds)
            add(f"SVM, l2 = {strength:g}", test.features.forward(theta)[0], *cells, "paper: .504 at best")
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"\nFigure 5 on made-up students, {n} in each year, l2 = {l2:g}; peak of memory {memory:.0f} MB")
    print(markdown(["scores", "AUC", "iterations", "certificate", "s", "beside"], rows), flush=True)
    return rows


PARTS_OF_PAPER = {"synthetic": synthetic, "house": house, "roommates": room_mates}


def main() -> None:
    """Run the parts, print their tables, and write `results/matching_paper.json`; results merge by part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=list(PARTS_OF_PAPER), default=list(PARTS_OF_PAPER))
    parser.add_argument("--draws", type=int, default=10, help="data sets of each size (synthetic)")
    parser.add_argument("--baselines", type=int, nargs="+", default=list(BASELINES), help="frames between pictures (house)")
    parser.add_argument("--sweep-baseline", type=int, default=50, help="the one of the sweep over rho (house)")
    parser.add_argument("--rho", type=float, nargs="+", default=[0.5, 0.6, 0.7, 0.8, 0.9, 1.0], help="the sweep (house)")
    parser.add_argument("--students", type=int, default=2400, help="in each year, an even number (roommates)")
    parser.add_argument("--l2", type=float, default=100.0, help="the penalty, the paper's by default (roommates)")
    parser.add_argument("--rivals-up-to", type=int, default=600, help="students for which perceptron and SVM run too")
    arguments = parser.parse_args()
    print_load("start")
    found = {name: PARTS_OF_PAPER[name](arguments) for name in arguments.only}
    print_load("end")
    write_results("matching_paper", read_results("matching_paper") | {"machine": machine(), **found})


if __name__ == "__main__":
    main()
