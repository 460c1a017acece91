"""What likelihoods cost and how accurate they are."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..core.results import FloatArray
from ..core.validation import check_choice
from .plots import new_figure
from .tables import format_table


@dataclass(frozen=True)
class Tradeoff:
    """One row for each likelihood. ``print`` it, take the arrays, or `plot` it.

    Attributes
    ----------
    names : tuple of str
    operations : array
        Of one evaluation for one example, by a model of the cost that counts every example by itself.
    seconds : array
        Measured.
    loss : array
        The smaller the better: what `measured` says.
    measured : str
        ``"variance"``, relative to the likelihood of the whole, or ``"held-out"``, the mean negative log-likelihood of
        examples that were not used.
    timed : str
        What the seconds are of.
    """

    names: tuple[str, ...]
    operations: FloatArray
    seconds: FloatArray
    loss: FloatArray
    measured: str
    timed: str

    def frontier(self, cost: str = "operations") -> Any:
        """Which rows have no other that is at least as cheap and as accurate, and better in one of the two."""
        c = self._cost(cost)
        cheaper = (c[:, None] <= c) & (self.loss[:, None] <= self.loss)
        better = (c[:, None] < c) | (self.loss[:, None] < self.loss)
        return ~(cheaper & better).any(0) & np.isfinite(self.loss)

    def _cost(self, cost: str) -> FloatArray:
        check_choice("cost", cost, ("operations", "seconds"))
        return self.operations if cost == "operations" else self.seconds

    def __str__(self) -> str:
        best = self.frontier()
        header = ("", "operations", f"s, {self.timed}", self.measured, "frontier")
        rows = [
            [name, f"{self.operations[i]:.4g}", f"{self.seconds[i]:.4g}", f"{self.loss[i]:.6g}", "*" if best[i] else ""]
            for i, name in enumerate(self.names)
        ]
        return format_table(header, rows)

    def plot(self, path: str | os.PathLike[str], cost: str = "operations", title: str = "") -> None:
        """Save a picture of loss against cost; what cannot be reached by these likelihoods is shaded."""
        c, best = self._cost(cost), self.frontier(cost)
        figure = new_figure(7.0, 4.6)
        axes = figure.subplots()
        order = np.flatnonzero(best)[np.argsort(c[best])]
        axes.scatter(c[~best], self.loss[~best], s=14, color="0.6")
        axes.scatter(c[order], self.loss[order], s=26, color="C0", zorder=3)
        x = np.concatenate(([c[order[0]]], np.repeat(c[order[1:]], 2), [c.max() * 1.15]))
        y = np.repeat(self.loss[order], 2)
        floor = self.loss[order].min() - 0.06 * float(np.ptp(self.loss)) - 1e-12
        axes.step(c[order], self.loss[order], where="post", color="C0", lw=1)
        axes.fill_between(x, y, floor, color="C0", alpha=0.08, lw=0)
        for i in order:
            axes.annotate(self.names[i], (c[i], self.loss[i]), fontsize=7, xytext=(4, 4), textcoords="offset points")
        axes.set(
            xscale="log",
            xlabel="operations for an example" if cost == "operations" else f"seconds, {self.timed}",
            ylabel="variance, relative to full likelihood" if self.measured == "variance" else "held-out loss per example",
        )
        axes.grid(alpha=0.3)
        figure.suptitle(title)
        figure.savefig(os.fspath(path), dpi=130)
