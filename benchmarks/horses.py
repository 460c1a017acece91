"""Weizmann horses: pixels labelled by a CRF on grids, learned with a tree-reweighted likelihood.

The first 200 images (in a random order with a fixed seed) are learned from, the other 128 tested on. Images are shrunk by
`--scale`; at 1 the longest side has 150 pixels. Features of pixels: red, green, blue and the position, expanded by sines and
cosines of pi times the sum of every subset of them (Domke 2013), and histograms of the directions of gradients around the
pixel at two scales, normalised. Features of edges, apart for neighbours across and down: a constant, and whether colours
differ by more than each of ten thresholds. Errors are shares of wrong pixels of the most probable labelling (by maximum
flows) and of the labels with the largest marginals.

Learners: `auto` is L-BFGS over warm messages. `block` takes one best configuration of an image at a time (Frank-Wolfe in
the dual, with line search), `averaged` reports the mean of its parameters. `truncated` is a double loop: L-BFGS with so many
sweeps of messages, from zero each time. `pixels` has no edges. The paper shows its curves as pictures only, on images that
are not these (other sizes, other features), so there is no number of its own to stand beside ours.
"""

import argparse
import time
import warnings
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np
from datasets import data_directory
from harness import RESULTS, digits, machine, markdown, print_load, write_results
from PIL import Image
from scipy.ndimage import gaussian_filter

from partita import ConvergenceWarning, GraphCRF
from partita.graph.data.graphs import GraphData, read_graphs
from partita.graph.data.labels import read_labels
from partita.objectives import GraphLikelihood
from partita.solvers import BlockFrankWolfe, minimize

matplotlib.use("Agg")
import matplotlib.pyplot as plt

TRAIN, THRESHOLDS = 200, np.arange(1, 11) / 20.0


def images(scale: float) -> list[tuple[np.ndarray, np.ndarray]]:
    """Colours from 0 to 1 and masks, in a random order."""
    folder = data_directory() / "weizmann_horses"
    names = sorted(path.name for path in (folder / "rgb").glob("*.png"))
    out = []
    for k in np.random.default_rng(0).permutation(len(names)):
        colour, mask = (Image.open(folder / kind / names[k]) for kind in ("rgb", "mask"))
        size = tuple(max(2, round(side * scale)) for side in colour.size)
        pixels = np.asarray(colour.convert("RGB").resize(size, Image.Resampling.LANCZOS), dtype=np.float64) / 255.0
        truth = np.asarray(mask.convert("L").resize(size, Image.Resampling.BILINEAR)) > 127
        out.append((pixels, truth.astype(np.int64)))
    return out


def pixel_features(colour: np.ndarray, scale: float) -> np.ndarray:
    height, width = colour.shape[:2]
    rows, columns = np.mgrid[0:height, 0:width]
    s = np.dstack([colour, rows / (height - 1.0), columns / (width - 1.0)]).reshape(-1, 5)
    subsets = (np.arange(1, 32)[:, None] >> np.arange(5)) & 1
    angles = np.pi * s @ subsets.T
    grey = gaussian_filter(colour.mean(2), 1.0)
    down, across = np.gradient(grey)
    direction = np.floor(9.0 * (np.arctan2(down, across) % np.pi) / np.pi).astype(int) % 9
    votes = np.hypot(down, across)[..., None] * (direction[..., None] == np.arange(9))
    parts = [np.sin(angles), np.cos(angles)]
    for sigma in (4.0 * scale, 10.0 * scale):
        pooled = np.dstack([gaussian_filter(votes[..., k], sigma) for k in range(9)]).reshape(-1, 9)
        parts.append(pooled / (np.linalg.norm(pooled, axis=1, keepdims=True) + 1e-3))
    return np.hstack(parts)


def graph(colour: np.ndarray, scale: float, edges: bool = True) -> dict[str, Any]:
    """An image as `GraphCRF` takes it."""
    out: dict[str, Any] = {"nodes": pixel_features(colour, scale)}
    if edges:
        number = np.arange(colour.shape[0] * colour.shape[1]).reshape(colour.shape[:2])
        ends = {"across": (number[:, :-1], number[:, 1:]), "down": (number[:-1], number[1:])}
        out["edges"] = {name: np.column_stack([a.ravel(), b.ravel()]) for name, (a, b) in ends.items()}
        flat = colour.reshape(-1, 3)
        out["edge_features"] = {}
        for name, pairs in out["edges"].items():
            apart = np.linalg.norm(flat[pairs[:, 0]] - flat[pairs[:, 1]], axis=1)
            out["edge_features"][name] = (apart[:, None] > THRESHOLDS).astype(np.float64)
    return out


class Cold(GraphLikelihood):
    """Messages begin at zero at every evaluation."""

    def infer(self, u: np.ndarray) -> Any:
        self._messages.clear()
        return super().infer(u)


class Problem:
    """Compiled training and test images."""

    def __init__(self, pictures: list[tuple[np.ndarray, np.ndarray]], scale: float, l2: float, edges: bool = True) -> None:
        self.l2 = l2
        self.model = GraphCRF(l2=l2, likelihood="bethe")
        parts = pictures[:TRAIN], pictures[TRAIN:]
        start = time.perf_counter()
        self.train, self.test = (read_graphs([graph(c, scale, edges) for c, _ in part], True) for part in parts)
        self.labels, self.truth = (
            read_labels([truth.ravel() for _, truth in part], data, {"node": np.array([0, 1])})[0]
            for part, data in zip(parts, (self.train, self.test), strict=True)
        )
        m = self.model
        m.kinds_, m.widths_ = list(self.train.factors), [F.shape[1] for _, F in self.train.factors.values()]
        m.classes_, m.symmetric_ = np.array([0, 1]), False
        self.map, self.test_map = self.compile(self.train), self.compile(self.test)
        print(
            f"{len(self.labels)} pixels to learn from, {len(self.truth)} to test on; {self.map.size} weights; "
            f"{time.perf_counter() - start:.1f} s to read",
            flush=True,
        )

    def compile(self, data: GraphData) -> Any:
        return self.model._compile(data)[1]

    def objective(self, kind: type[GraphLikelihood] = GraphLikelihood, **options: Any) -> GraphLikelihood:
        return kind(
            self.map, self.labels, penalty=self.l2, engine="trw", options={"tol": 1e-7} | options, inexact=not options
        )

    def marginals(self, theta: np.ndarray) -> np.ndarray:
        """Of the test pixels, the probability of a horse."""
        u = self.test_map.forward(theta)
        found = self.test_map.graph.infer(u, "trw", lower=False, tol=1e-3, max_iter=50).marginals
        return found[: 2 * len(self.truth)].reshape(-1, 2)[:, 1]

    def best(self, theta: np.ndarray) -> np.ndarray:
        u = self.test_map.forward(theta)
        return self.test_map.graph.argmax(u, self.test_map.graph.decoder(u))[0]

    def errors(self, theta: np.ndarray) -> tuple[float, float]:
        """Shares of wrong pixels, by best labellings and by marginals."""
        return float(np.mean(self.best(theta) != self.truth)), float(np.mean((self.marginals(theta) > 0.5) != self.truth))


def learn(problem: Problem, objective: GraphLikelihood, solver: Any, passes: int, limit: float) -> list[tuple[Any, ...]]:
    """Seconds, passes, certificate and parameters as they come."""
    rows: list[tuple[Any, ...]] = []

    def record(progress: Any) -> None:
        rows.append((progress.seconds, progress.iteration, progress.objective, progress.gap, progress.parameters.copy()))

    minimize(
        objective,
        None,
        solver,
        max_iter=passes,
        tol=0.0,
        gap_tol=1e-6 * objective.scale,
        time_limit=limit,
        callbacks=[record],
    )
    return rows


def line(name: str, row: tuple[Any, ...]) -> list[Any]:
    seconds, k, value, gap, _, best, marginal = row
    return [name, k, digits(seconds), f"{value:.1f}", f"{gap:.2g}", f"{100 * best:.2f}", f"{100 * marginal:.2f}"]


def main() -> None:
    """Learn, print the errors over time, and write `results/horses.json` and two pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--scale", type=float, default=0.33)
    parser.add_argument("--l2", type=float, default=100.0)
    parser.add_argument("--passes", type=int, default=60)
    parser.add_argument("--limit", type=float, default=600.0, help="seconds for each learner")
    parser.add_argument("--only", nargs="+")
    arguments = parser.parse_args()
    print_load("start")
    warnings.simplefilter("ignore", ConvergenceWarning)  # wild parameters early on
    pictures = images(arguments.scale)
    problem = Problem(pictures, arguments.scale, arguments.l2)
    learners: dict[str, Any] = {
        "auto": (lambda: problem.objective(), "auto"),
        "block": (lambda: problem.objective(), BlockFrankWolfe(averaging=False)),
        "averaged": (lambda: problem.objective(), BlockFrankWolfe()),
        "truncated 5": (lambda: problem.objective(Cold, max_iter=5), "auto"),
        "truncated 40": (lambda: problem.objective(Cold, max_iter=40), "auto"),
    }
    found: dict[str, list[tuple[Any, ...]]] = {}
    table = []
    for name, (make, solver) in learners.items():
        if arguments.only and name not in arguments.only:
            continue
        rows = learn(problem, make(), solver, arguments.passes if "auto" not in (name, solver) else 300, arguments.limit)
        kept = sorted({min(k, len(rows) - 1) for k in (1, 3, 10, 30, 60, 150, 300)})
        found[name] = [(*rows[k], *problem.errors(rows[k][-1])) for k in kept]
        for seconds, k, value, gap, _, best, marginal in found[name]:
            table.append(
                [name, k, digits(seconds), f"{value:.1f}", f"{gap:.2g}", f"{100 * best:.2f}", f"{100 * marginal:.2f}"]
            )
            print(*table[-1], flush=True)
    if not arguments.only or "pixels" in arguments.only:
        alone = Problem(pictures, arguments.scale, arguments.l2, edges=False)
        rows = learn(alone, alone.objective(), "auto", 300, arguments.limit)
        table.append(line("pixels", (*rows[-1], *alone.errors(rows[-1][-1]))))
    base = float(problem.truth.mean())
    print(markdown(["learner", "pass", "s", "objective", "certificate", "error of best %", "of marginals %"], table))
    print(f"always background: {100 * base:.2f} % wrong")
    print_load("end")
    curves = {name: [[row[0], row[1], row[3], row[5], row[6]] for row in rows] for name, rows in found.items()}
    write_results("horses", {"machine": machine(), "scale": arguments.scale, "l2": arguments.l2, "curves": curves})
    plot(problem, pictures[TRAIN:], found)


def plot(problem: Problem, pictures: list[tuple[np.ndarray, np.ndarray]], found: dict[str, list[tuple[Any, ...]]]) -> None:
    """Errors over time, and marginals of four test images as training goes on."""
    RESULTS.mkdir(exist_ok=True)
    figure, axis = plt.subplots(figsize=(6, 4))
    for name, rows in found.items():
        axis.plot([row[0] for row in rows], [100 * row[6] for row in rows], marker=".", label=name)
    axis.set(xscale="log", xlabel="seconds of training", ylabel="wrong test pixels, %", title="Weizmann horses")
    axis.legend()
    figure.tight_layout()
    figure.savefig(RESULTS / "horses-error.png", dpi=120)
    ends = np.cumsum([0, *(truth.size for _, truth in pictures)])
    shown = [0, 1, 2, 3]
    for name, rows in found.items():
        chosen = [row for row in rows if row[1] in (1, 10, 60)] or rows[-1:]
        figure, axes = plt.subplots(len(shown), len(chosen) + 3, figsize=(2.0 * (len(chosen) + 3), 1.6 * len(shown)))
        columns = [(f"after {row[1]}", problem.marginals(row[4])) for row in chosen]
        columns.append(("best", problem.best(rows[-1][4]).astype(float)))
        for line, k in zip(axes, shown, strict=True):
            colour, truth = pictures[k]
            flat = [values[ends[k] : ends[k + 1]].reshape(truth.shape) for _, values in columns]
            for axis, picture in zip(line, [colour, *flat, truth], strict=True):
                axis.imshow(picture, cmap="gray", vmin=0, vmax=1)
                axis.set_axis_off()
        for axis, title in zip(axes[0], ["image", *(title for title, _ in columns), "truth"], strict=True):
            axis.set_title(title, fontsize=9)
        figure.tight_layout()
        figure.savefig(RESULTS / f"horses-{Path(name.replace(' ', '-')).name}.png", dpi=120)
        plt.close(figure)


if __name__ == "__main__":
    main()
