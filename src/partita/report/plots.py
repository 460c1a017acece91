"""Pictures, drawn with matplotlib (an optional extra)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..core.results import Trace
from ..core.validation import check_count
from .labels import Confusion, ratio


def new_figure(width: float, height: float) -> Any:
    """An empty figure that needs no display."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'partita[plot]'") from error
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def plot_convergence(traces: Mapping[str, Trace], path: str | os.PathLike[str], title: str = "") -> None:
    """Save a picture of relative excess objective against seconds and iterations, one curve per solver."""
    figure = new_figure(10, 4.2)
    by_time, by_iteration = figure.subplots(1, 2, sharey=True)
    best = min(float(np.nanmin(trace.objective)) for trace in traces.values())
    for name, trace in traces.items():
        excess = np.maximum((trace.objective - best) / max(abs(best), 1e-300), 1e-14)
        by_time.loglog(np.maximum(trace.seconds, 1e-5), excess, label=name)
        by_iteration.loglog(1 + np.arange(len(trace)), excess, label=name)
    by_time.set(xlabel="seconds", ylabel="objective above the optimum (relative)")
    by_iteration.set(xlabel="iterations + 1")
    by_iteration.legend(fontsize=8)
    for axes in (by_time, by_iteration):
        axes.grid(alpha=0.3)
    figure.suptitle(title)
    figure.savefig(os.fspath(path), dpi=130)


def plot_restarts(
    traces: Sequence[Any], path: str | os.PathLike[str], title: str = "", *, lower: float | None = None, label: str = ""
) -> None:
    """Save a picture of the objective after every iteration, a curve for each start, and a bound below all if there is one.

    Parameters
    ----------
    traces : list of arrays
        As `BayesianNetwork.traces_`; empty ones are passed over.
    path : str or path
    lower : float, optional
        Drawn as a line, with `label` as its name.
    """
    shown = [np.asarray(trace, dtype=np.float64) for trace in traces if len(trace)]
    if not shown:
        raise ValueError("traces has no start with an iteration")
    best = min(float(trace[-1]) for trace in shown)
    top = max(float(trace[min(1, len(trace) - 1)]) for trace in shown)
    figure = new_figure(6.4, 4.2)
    axes = figure.subplots()
    for trace in shown:
        axes.plot(1 + np.arange(len(trace)), trace, color="C1" if trace[-1] <= best else "C0", alpha=0.7, linewidth=1.2)
    floor = best
    if lower is not None:
        axes.axhline(lower, color="black", linestyle="--", linewidth=1.0, label=label or "lower bound")
        axes.legend(fontsize=8)
        floor = min(floor, lower)
    margin = 0.05 * max(top - floor, 1e-12)
    axes.set(xlabel="iterations + 1", ylabel="objective", xscale="log", ylim=(floor - margin, top + margin))
    axes.grid(alpha=0.3)
    figure.suptitle(title)
    figure.savefig(os.fspath(path), dpi=130)


def plot_confusion(table: Confusion, path: str | os.PathLike[str], title: str = "") -> None:
    """Save a picture of a confusion table: each true label's shares of predicted labels, wrong ones in colour.

    Cells hold counts. The colour of correct cells is grey, so that mistakes stand out however rare they are.
    """
    n = len(table.labels)
    if n == 0:
        raise ValueError("table has no labels: expected the confusion of at least one position")
    side = 2.2 + 0.42 * n
    figure = new_figure(side + 0.6, side)
    axes = figure.subplots()
    share = ratio(table.counts, table.counts.sum(axis=1, keepdims=True))
    correct = np.eye(n, dtype=bool)
    wrong = np.sqrt(np.where(correct, 0.0, share))  # the root keeps shares of 1 % visible
    axes.imshow(np.where(correct, share, np.nan), cmap="Greys", vmin=0.0, vmax=3.0)
    axes.imshow(np.where(correct, np.nan, wrong), cmap="Oranges", vmin=0.0, vmax=1.0)
    for i, j in zip(*np.nonzero(table.counts), strict=True):
        ink = "white" if wrong[i, j] > 0.7 else "black"
        axes.text(j, i, f"{table.counts[i, j]}", ha="center", va="center", fontsize=7, color=ink)
    names = [str(label) for label in table.labels]
    axes.set_xticks(range(n), names, rotation=90, fontsize=8)
    axes.set_yticks(range(n), names, fontsize=8)
    axes.set(xlabel="predicted", ylabel="true")
    figure.suptitle(title)
    figure.savefig(os.fspath(path), dpi=130)


def plot_boundary(
    model: Any, X: Any, y: Any, path: str | os.PathLike[str], title: str = "", *, resolution: int = 300
) -> None:
    """Save a picture of the regions in which classifiers predict each class of 2-D data, with the data on top.

    Parameters
    ----------
    model : fitted classifier, or mapping of names to fitted classifiers
        One panel for each.
    X : array of shape (n_samples, 2)
    y : array of shape (n_samples,)
        One known class for each.
    path : str or path
    resolution : int
        Points of the grid along each side.
    """
    models = dict(model) if isinstance(model, Mapping) else {"": model}
    if not models:
        raise ValueError("model is an empty mapping: expected at least one classifier")
    check_count("resolution", resolution, minimum=2)
    if any(label is None or isinstance(label, set | frozenset) for label in y):
        raise ValueError("y must hold a known class for each sample: leave out those where it has None or a set")
    points, y = np.asarray(X, dtype=np.float64), np.asarray(y)
    if points.ndim != 2 or points.shape[1] != 2 or len(points) != len(y) or not len(y):
        raise ValueError(f"X must have shape (n_samples, 2) and y as many labels; got {points.shape} and {y.shape}")
    margin = 0.08 * np.ptp(points, axis=0) + 1e-12
    low, high = points.min(axis=0) - margin, points.max(axis=0) + margin
    side = [np.linspace(low[j], high[j], resolution) for j in range(2)]
    grid = np.column_stack([plane.ravel() for plane in np.meshgrid(*side)])
    regions = [np.asarray(each.predict(grid)) for each in models.values()]
    labels = np.unique(np.concatenate([y, *regions]))
    figure = new_figure(4.2 * len(models), 4.2)
    for axes, name, region in zip(figure.subplots(1, len(models), squeeze=False)[0], models, regions, strict=True):
        for k, label in enumerate(labels):
            colour = f"C{k % 10}"
            inside = (region == label).reshape(resolution, resolution).astype(np.float64)
            if inside.any():
                axes.contourf(*side, inside, levels=[0.5, 1.5], colors=colour, alpha=0.25)
            axes.plot(*points[y == label].T, ".", color=colour, markersize=3, label=str(label))
        axes.set(title=name, xlim=(low[0], high[0]), ylim=(low[1], high[1]))
    axes.legend(fontsize=8)
    figure.suptitle(title)
    figure.savefig(os.fspath(path), dpi=100)
