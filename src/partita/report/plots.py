"""Pictures, drawn with matplotlib (an optional extra)."""

from __future__ import annotations

import os
from collections.abc import Mapping

import numpy as np

from ..core.results import Trace


def plot_convergence(traces: Mapping[str, Trace], path: str | os.PathLike[str], title: str = "") -> None:
    """Save a picture of relative excess objective against seconds and iterations, one curve per solver."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError("plots need matplotlib: pip install 'partita[plot]'") from error
    figure = Figure(figsize=(10, 4.2), layout="constrained")
    FigureCanvasAgg(figure)
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
