"""A picture of an equivalence relation."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from .plots import new_figure

#: Rows that are drawn, at most.
MOST_ROWS = 1000


def plot_relation(M: Any, path: str | os.PathLike[str], labels: Any = None, title: str = "") -> None:
    """Save a picture of a relation between rows, those of one cluster side by side.

    Parameters
    ----------
    M : array of shape (n_rows, n_rows), or (n_rows, rank) with rank < n_rows
        The relation, or V where it is VV'. More than 1000 rows are thinned out evenly, after they are in order.
    path : str or path
    labels : array of shape (n_rows,), optional
        Clusters. Within each, and without any, rows are in the order of the leading eigenvector of the centred
        relation.
    """
    given = np.asarray(M, dtype=np.float64)
    if given.ndim != 2 or given.shape[1] > len(given) or not len(given):
        raise ValueError(f"M must have shape (n_rows, n_rows) or (n_rows, rank), got {given.shape}")
    codes = np.zeros(len(given)) if labels is None else np.asarray(labels)
    if codes.shape != (len(given),):
        raise ValueError(f"labels must have shape ({len(given)},), got {codes.shape}")
    square = given.shape[0] == given.shape[1]
    centred = given - given.mean(axis=0)
    _, Q = np.linalg.eigh(centred - centred.mean(axis=1, keepdims=True) if square else centred.T @ centred)
    order = np.lexsort((Q[:, -1] if square else centred @ Q[:, -1], codes))
    order = order[np.linspace(0, len(order) - 1, min(len(order), MOST_ROWS)).astype(int)]
    shown = given[np.ix_(order, order)] if square else given[order] @ given[order].T
    figure = new_figure(5.4, 4.6)
    axes = figure.subplots()
    image = axes.imshow(shown, cmap="viridis", vmin=float(shown.min()), vmax=1.0, interpolation="nearest")
    for edge in np.flatnonzero(codes[order][1:] != codes[order][:-1]):
        axes.axhline(edge + 0.5, color="w", lw=0.8)
        axes.axvline(edge + 0.5, color="w", lw=0.8)
    some = "" if len(order) == len(given) else f" ({len(order)} of {len(given)})"
    axes.set(xlabel=f"rows{some}", xticks=[], yticks=[])
    figure.colorbar(image, ax=axes, label="relation")
    figure.suptitle(title)
    figure.savefig(os.fspath(path), dpi=130)
