"""Latent likelihood: Tables 2 and 5 and Figure 1 of the majorization paper, and a race of the solvers.

`tables`: mixtures of m = 1..4 hidden states per class, without a penalty and with one, by every method of the paper on the
same objective: the log-likelihood of the test part, and the training objective, which says who finds better optima. Random
90/10 splits, columns scaled by their training part, ten starts near 0 in each (`--limit 1 --splits 3` takes half an hour).
A fit ends when the objective changes by less than 1e-6 (the paper's rule), or at a limit of seconds, which the plain bound
often meets. `race`: seconds to a common objective against L-BFGS from the same starts; each pair is timed to the worse of
the two objectives at which they end. `figure`: eight Gaussians, two per class modelled.
"""

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from datasets import load
from harness import RESULTS, digits, machine, markdown, print_load, read_results, with_threads, write_results
from scipy.optimize import OptimizeResult, minimize as scipy_minimize

SETS = {"ion": "ionosphere", "bupa": "bupa", "hepatitis": "hepatitis", "wine": "wine_uci", "srbct": "srbct"}
HIDDEN = (1, 2, 3, 4)
NEAR_ZERO = 0.01
CHANGE = 1e-6
# Test log-likelihoods in Table 5 of the paper, m = 1..4.
PAPER = {
    "BFGS": {
        "ion": (-4.96, -5.55, -5.88, -5.79),
        "bupa": (-22.07, -21.78, -21.92, -21.87),
        "hepatitis": (-4.42, -5.28, -4.95, -4.93),
        "wine": (-0.90, -0.91, -1.79, -1.35),
        "srbct": (-5.99, -6.17, -6.09, -6.06),
    },
    "SD": {
        "ion": (-11.80, -9.92, -5.56, -8.59),
        "bupa": (-21.76, -21.74, -21.73, -21.83),
        "hepatitis": (-4.93, -5.14, -5.01, -5.20),
        "wine": (-1.61, -1.60, -1.37, -1.63),
        "srbct": (-5.61, -5.62, -5.62, -5.61),
    },
    "CG": {
        "ion": (-5.47, -5.81, -5.57, -5.22),
        "bupa": (-21.81, -21.81, -21.81, -21.81),
        "hepatitis": (-4.84, -4.84, -4.84, -4.84),
        "wine": (-0.51, -0.78, -0.95, -0.51),
        "srbct": (-5.62, -5.49, -5.36, -5.76),
    },
    "Newton": {
        "ion": (-5.95, -5.95, -5.95, -5.95),
        "bupa": (-21.85, -21.85, -21.85, -21.85),
        "hepatitis": (-5.50, -5.50, -5.50, -4.50),
        "wine": (-0.71, -0.71, -0.71, -0.71),
        "srbct": (-5.54, -5.54, -5.54, -5.54),
    },
    "Bound": {
        "ion": (-6.08, -4.84, -4.18, -5.17),
        "bupa": (-21.85, -19.95, -20.01, -19.97),
        "hepatitis": (-5.47, -4.40, -4.75, -4.92),
        "wine": (-0.51, -0.51, -0.48, -0.51),
        "srbct": (-5.31, -5.31, -4.90, -0.11),
    },
}

Run = tuple[np.ndarray, np.ndarray, np.ndarray]  # objectives, seconds, last parameters


def settled(change: float) -> Callable[[Any], bool]:
    """A callback that stops when the objective has changed by less than `change`."""
    last = [np.inf]

    def stop(progress: Any) -> bool:
        previous, last[0] = last[0], progress.objective
        return bool(abs(previous - last[0]) < change)

    return stop


def by_partita(solver: Any) -> Callable[..., Run]:
    def run(objective: Any, start: np.ndarray, limit: float, change: float) -> Run:
        from partita import minimize

        found = minimize(
            *(objective, start, solver),
            max_iter=100_000,
            tol=1e-12,
            time_limit=limit,
            callbacks=[settled(change)],
        )
        return found.trace.objective, found.trace.seconds, found.parameters

    return run


def bfgs(objective: Any, start: np.ndarray, limit: float, change: float) -> Run:
    """SciPy's BFGS on the same kernels."""
    stop, begin = settled(change), time.perf_counter()
    values, seconds, last = [objective.at(start).value], [0.0], [start]

    def record(intermediate_result: OptimizeResult) -> None:
        values.append(float(intermediate_result.fun))
        seconds.append(time.perf_counter() - begin)
        last[0] = intermediate_result.x.copy()
        intermediate_result.objective = intermediate_result.fun
        if stop(intermediate_result) or seconds[-1] > limit:
            raise StopIteration

    def function(theta: np.ndarray) -> tuple[float, np.ndarray]:
        point = objective.at(theta)
        return point.value, point.gradient

    scipy_minimize(function, start, jac=True, method="BFGS", callback=record, options={"maxiter": 100_000, "gtol": 1e-12})
    return np.array(values), np.array(seconds), last[0]


def methods() -> dict[str, Callable[..., Run]]:
    from partita import EM, LBFGS, ConjugateGradient, Majorize, Newton, SteepestDescent

    return {
        "Bound": by_partita(Majorize("descending", None)),
        "Bound + subspace": by_partita(Majorize()),
        "Newton": by_partita(Newton()),
        "BFGS": bfgs,
        "CG": by_partita(ConjugateGradient()),
        "SD": by_partita(SteepestDescent()),
        "L-BFGS": by_partita(LBFGS()),
        "L-BFGS, memory 20": by_partita(LBFGS(memory=20)),
        "conditional EM": by_partita(EM(None)),
        "conditional EM + SQUAREM": by_partita(EM()),
    }


IN_TABLES = ("Bound", "Bound + subspace", "Newton", "BFGS", "CG", "SD", "L-BFGS")


def split(name: str, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """90 % to train and 10 % to test, columns scaled by the training part; wide data in the row space of that."""
    from partita.features import row_space

    problem = load(name)
    y = np.unique(problem.y, return_inverse=True)[1]
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[len(y) // 10 :], order[: len(y) // 10]
    scale = problem.X[train].std(axis=0)
    X = (problem.X - problem.X[train].mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
    if X.shape[1] > len(train):
        X = X @ row_space(X[train])[1]
    return np.ascontiguousarray(X[train]), y[train], X[test], y[test]


def test_likelihood(objective: Any, theta: np.ndarray, X: np.ndarray, y: np.ndarray, n_hidden: int) -> float:
    coefficients, intercepts = objective.features.unpack(theta)
    scores = (X @ coefficients.T + intercepts).reshape(len(X), -1, n_hidden)
    classes = np.logaddexp.reduce(scores, axis=2)
    return float(np.sum(classes[np.arange(len(y)), y] - np.logaddexp.reduce(classes, axis=1)))


def tables(l2: float, splits: int, starts: int, limit: float, sets: list[str]) -> dict[str, Any]:
    """Objective and test log-likelihood of every method, set and m: lists over splits of lists over starts."""
    from partita.softmax.estimators.latent_softmax import latent_objective

    runs = {name: run for name, run in methods().items() if name in IN_TABLES}
    results: dict[str, Any] = {}
    for name in sets:
        parts = [split(SETS[name], seed) for seed in range(splits)]
        for m in HIDDEN:
            cell: dict[str, Any] = {key: {"train": [], "test": [], "cut": 0} for key in runs}
            for seed, (X, y, X_test, y_test) in enumerate(parts):
                objective = latent_objective(X, np.eye(y.max() + 1, dtype=bool)[y], n_hidden=m, l2=l2)
                rng = np.random.default_rng(seed)
                begin = NEAR_ZERO * rng.standard_normal((starts, objective.size))
                for key, run in runs.items():
                    ends = [run(objective, start, limit, CHANGE) for start in begin]
                    cell[key]["train"].append([float(values[-1]) for values, _, _ in ends])
                    cell[key]["test"].append([test_likelihood(objective, theta, X_test, y_test, m) for _, _, theta in ends])
                    cell[key]["cut"] += sum(int(seconds[-1] >= limit) for _, seconds, _ in ends)
            results[f"{name} m={m}"] = cell
            print(f"{name} m={m}", end=" ", flush=True)
    return results


def best_start(part: dict[str, Any], wanted: str) -> float:
    """`wanted` at the start with the lowest training objective of each split, averaged over splits."""
    train = np.array(part["train"])
    return float(np.mean(np.array(part[wanted])[np.arange(len(train)), train.argmin(axis=1)]))


def print_tables(results: dict[str, Any], l2: float) -> None:
    """Medians over splits and starts and the best starts, the paper's numbers, and who ends above or below L-BFGS."""
    for title, wanted, reduce in (
        ("median test log-likelihood", "test", lambda part: float(np.median(part["test"]))),
        ("test log-likelihood of the start with the lowest objective", "test", lambda part: best_start(part, "test")),
        ("median training objective", "train", lambda part: float(np.median(part["train"]))),
        ("lowest training objective over starts", "train", lambda part: best_start(part, "train")),
    ):
        lines = []
        for label, cell in results.items():
            name, m = label.split(" m=")
            lines.append([label])
            for key in IN_TABLES:
                paper = f" ({PAPER[key][name][int(m) - 1]:.2f})" if wanted == "test" and key in PAPER and l2 == 0.0 else ""
                lines[-1].append(f"{reduce(cell[key]):.2f}{paper}")
        print(f"\nl2 = {l2:g}, {title} (the paper's in brackets)\n" + markdown(["set", *IN_TABLES], lines))
    hidden = [cell for label, cell in results.items() if not label.endswith("m=1")]
    lines = []
    for key in IN_TABLES:
        excess = np.concatenate([np.subtract(cell[key]["train"], cell["L-BFGS"]["train"]).ravel() for cell in hidden])
        test = np.concatenate([np.subtract(cell[key]["test"], cell["L-BFGS"]["test"]).ravel() for cell in hidden])
        cut = sum(cell[key]["cut"] for cell in hidden) / len(excess)
        counts = [f"{np.mean(d < -s):.0%} / {np.mean(d > s):.0%}" for d, s in ((excess, 0.01), (-test, 0.1))]
        lines.append([key, *counts, digits(float(np.median(excess))), f"{cut:.0%}"])
    header = ["m = 2..4", "lower / higher objective", "better / worse test", "median difference of objective", "cut by time"]
    print(f"\nl2 = {l2:g}, against L-BFGS from the same start\n" + markdown(header, lines))


RACE = {"wine": 0.1, "bupa": 0.1, "ionosphere": 0.1, "hepatitis": 0.1, "breast_cancer": 0.1, "digits": 1.0}


def race(starts: int, limit: float) -> dict[str, Any]:
    """Seconds of every method and of L-BFGS to the worse of the objectives at which the two end."""
    from partita.softmax.estimators.latent_softmax import latent_objective

    results: dict[str, Any] = {}
    for name, l2 in RACE.items():
        X, y, _, _ = split(name, 0)
        objective = latent_objective(X, np.eye(y.max() + 1, dtype=bool)[y], n_hidden=2, l2=l2)
        rng = np.random.default_rng(0)
        cell: dict[str, Any] = {key: {"ratio": [], "end": []} for key in methods()}
        for _ in range(1 if name == "digits" else starts):
            start = rng.standard_normal(objective.size) / np.sqrt(X.shape[1])
            runs = {key: run(objective, start, limit, 1e-8) for key, run in methods().items() if key != "SD"}
            for key, (values, seconds, _) in runs.items():
                rival = runs["L-BFGS"]
                goal = max(values[-1], rival[0][-1]) * (1.0 + 1e-5)
                arrivals = [s[np.argmax(v <= goal)] for v, s in ((values, seconds), rival[:2])]
                cell[key]["ratio"].append(float(arrivals[0] / max(arrivals[1], 1e-9)))
                cell[key]["end"].append(float(values[-1]))
        results[name] = {key: entry for key, entry in cell.items() if entry["end"]}
    return results


def print_race(results: dict[str, Any]) -> None:
    lines = [
        [key, *(f"{np.median(cell[key]['ratio']):.2f} ({np.mean(cell[key]['end']):.2f})" for cell in results.values())]
        for key in next(iter(results.values()))
    ]
    print("\nseconds / seconds of L-BFGS to a common objective, median over starts (mean objective at the end), m = 2")
    print(markdown(["method", *(f"{name} l2={RACE[name]:g}" for name in results)], lines))


class GenerativeMixture:
    """EM for the joint likelihood: a mixture of Gaussians in each class, and Bayes' rule."""

    def __init__(self, n_hidden: int, covariance: str, seed: int) -> None:
        self.options = {"n_components": n_hidden, "covariance_type": covariance, "random_state": seed}

    def fit(self, X: np.ndarray, y: np.ndarray) -> "GenerativeMixture":
        from sklearn.mixture import GaussianMixture

        self.classes_, counts = np.unique(y, return_counts=True)
        self.log_prior = np.log(counts / len(y))
        self.parts = [GaussianMixture(**self.options).fit(X[y == label]) for label in self.classes_]
        return self

    def predict_log_proba(self, X: np.ndarray) -> np.ndarray:
        joint = np.column_stack([part.score_samples(X) for part in self.parts]) + self.log_prior
        return np.asarray(joint - np.logaddexp.reduce(joint, axis=1)[:, None])

    def predict(self, X: np.ndarray) -> np.ndarray:
        return np.asarray(self.classes_[self.predict_log_proba(X).argmax(axis=1)])


def eight_gaussians(seed: int, count: int = 50) -> tuple[np.ndarray, np.ndarray]:
    """Four Gaussians per class: columns of alternating class, two of them in each column."""
    rng = np.random.default_rng(seed)
    centres = np.array([(20.0 * k / 3.0, y) for k in range(4) for y in (0.0, -20.0)])
    X = (centres[:, None] + 1.5 * rng.standard_normal((8, count, 2))).reshape(-1, 2)
    return X, np.repeat(np.arange(8) // 2 % 2, count)


def figure(starts: int, picture: str | None) -> dict[str, Any]:
    """Test log-likelihood and accuracy over starts, and the picture of the best fits."""
    from partita import LatentSoftmax, Majorize
    from partita.report import plot_boundary

    X, y = eight_gaussians(0)
    X_test, y_test = eight_gaussians(1)
    bound = Majorize("descending", None)
    makers: dict[str, Callable[[int], Any]] = {
        "bound": lambda seed: LatentSoftmax(l2=0.01, solver=bound, random_state=seed, tol=1e-5, max_iter=3000),
        "bound, k-means": lambda seed: LatentSoftmax(l2=0.01, solver=bound, init="kmeans", random_state=seed, max_iter=3000),
        "auto": lambda seed: LatentSoftmax(l2=0.01, random_state=seed),
        "newton": lambda seed: LatentSoftmax(l2=0.01, solver="newton", random_state=seed),
        "EM, one variance": lambda seed: GenerativeMixture(2, "spherical", seed),
        "EM, full covariance": lambda seed: GenerativeMixture(2, "full", seed),
    }
    results: dict[str, Any] = {}
    best: dict[str, Any] = {}
    for name, make in makers.items():
        fits = [make(seed).fit(X, y) for seed in range(starts)]
        logs = [fit.predict_log_proba(X)[np.arange(len(y)), y].sum() for fit in fits]
        results[name] = {
            "train": [float(log) for log in logs],
            "test": [float(fit.predict_log_proba(X_test)[np.arange(len(y)), y_test].sum()) for fit in fits],
            "accuracy": [float(np.mean(fit.predict(X_test) == y_test)) for fit in fits],
        }
        best[name] = fits[int(np.argmax(logs))]
    lines = [
        [name, *(f"{np.mean(cell[key]):.4g}" for key in ("train", "test", "accuracy")), f"{np.max(cell['accuracy']):.3f}"]
        for name, cell in results.items()
    ]
    print("\neight Gaussians, two hidden states per class; means over starts")
    print(markdown(["method", "train log-likelihood", "test log-likelihood", "accuracy", "best accuracy"], lines))
    if picture:
        shown = {"latent likelihood, bound": best["bound"], "generative EM": best["EM, full covariance"]}
        plot_boundary(shown, X, y, picture)
    return results


def main() -> None:
    """Run the parts, print tables, write `results/latent.json`."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="tables,race,figure", help="parts, comma-separated")
    parser.add_argument("--sets", default=",".join(SETS), help="data sets of the tables, comma-separated")
    parser.add_argument("--splits", type=int, default=1, help="random splits of the tables")
    parser.add_argument("--starts", type=int, default=10)
    parser.add_argument("--limit", type=float, default=0.2, help="seconds for one fit in the tables")
    parser.add_argument("--l2", default="0,1", help="penalties of the tables, comma-separated")
    parser.add_argument("--picture", default=str(RESULTS / "latent.png"), help="where the picture goes")
    options = parser.parse_args()
    with_threads(1)
    import warnings

    warnings.simplefilter("ignore")
    print_load("start")
    results = read_results("latent")
    RESULTS.mkdir(exist_ok=True)
    if "tables" in options.only:
        for l2 in (float(number) for number in options.l2.split(",")):
            found = tables(l2, options.splits, options.starts, options.limit, options.sets.split(","))
            print_tables(found, l2)
            results[f"tables l2={l2:g}"] = found
    if "race" in options.only:
        results["race"] = race(max(1, options.starts // 3), max(2.0, options.limit))
        print_race(results["race"])
    if "figure" in options.only:
        results["figure"] = figure(max(1, options.starts // 2), options.picture)
    write_results("latent", {**results, "machine": machine()})
    print_load("end")


if __name__ == "__main__":
    main()
