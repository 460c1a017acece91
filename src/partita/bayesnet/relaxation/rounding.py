"""Hidden labels from a relaxed equivalence relation M = VV'.

If M says which rows agree, the rows of ``U sqrt(E)``, with the v - 1 leading eigenvectors U and eigenvalues E of the
centred matrix HMH, are the indicators of the labels, centred and turned. Relations between are rounded in one of
these ways:

- ``"kmeans"``: the clusters of these points;
- ``"random"``: the best of some draws of v random directions, each point to the one it goes along most;
- ``"simplex"``: the rotation that takes the points nearest to the corners of the simplex, then the nearest corner.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.cluster import KMeans

from ...core.random import generator
from ...core.results import FloatArray, IntArray
from ...core.validation import check_choice, check_count

METHODS = ("kmeans", "random", "simplex")
DRAWS, TURNS = 50, 100
#: Length below which points count as one: the relation is trivial.
ONE_POINT = 1e-7


def round_labels(V: FloatArray, n_values: int, method: str = "kmeans", random_state: Any = 0) -> IntArray:
    """Labels 0 .. n_values - 1 of the rows of V; all are 0 if the relation is trivial.

    Parameters
    ----------
    V : array of shape (n_rows, rank)
        Of a `Relaxation`: ``relaxation.vectors[hidden]``.
    n_values : int
    method : {"kmeans", "random", "simplex"}
    random_state : int, Generator or None
    """
    check_choice("method", method, METHODS)
    if method == "simplex":
        return np.asarray(simplex_weights(V, n_values, random_state).argmax(1))
    points, rng = centred_points(V, n_values), generator(random_state)
    return _draws(points, n_values, rng) if method == "random" else _clusters(points, n_values, rng)


def centred_points(V: FloatArray, n_values: int) -> FloatArray:
    """The rows of U sqrt(E), of shape (n_rows, n_values - 1), from V alone."""
    check_count("n_values", n_values, minimum=2)
    centred = V - V.mean(axis=0)
    values, Q = np.linalg.eigh(centred.T @ centred)
    points = centred @ Q[:, np.argsort(-values)[: n_values - 1]]
    points = points * np.sign(points[np.abs(points).argmax(axis=0), np.arange(points.shape[1])])
    return np.hstack([points, np.zeros((len(points), n_values - 1 - points.shape[1]))])


def simplex_weights(V: FloatArray, n_values: int, random_state: Any = 0) -> FloatArray:
    """Soft labels: points turned and shifted to the simplex, and then to the nearest place in it.

    The rotation is the one that takes them nearest to the (centred) indicators of their own labels, beginning with
    clusters.
    """
    points = centred_points(V, n_values)
    labels = _clusters(points, n_values, generator(random_state))
    corners = np.eye(n_values)
    for _ in range(TURNS):
        share = corners[labels].mean(axis=0)
        left, _, right = np.linalg.svd(points.T @ (corners[labels] - share), full_matrices=False)
        weights = _to_simplex(points @ left @ right + share)
        following = weights.argmax(1)
        if np.array_equal(following, labels):
            break
        labels = following
    return weights


def _to_simplex(points: FloatArray) -> FloatArray:
    """The nearest point of the simplex for every row."""
    falling = -np.sort(-points, axis=1)
    excess = (np.cumsum(falling, axis=1) - 1.0) / np.arange(1, points.shape[1] + 1)
    last = np.sum(falling > excess, axis=1) - 1
    return np.asarray(np.maximum(0.0, points - excess[np.arange(len(points)), last][:, None]))


def _clusters(points: FloatArray, n_values: int, rng: np.random.Generator) -> IntArray:
    """k-means, of no more clusters than there are points that differ."""
    digits = 6 - int(np.floor(np.log10(max(ONE_POINT, np.abs(points).max()))))
    different = len(np.unique(points.round(digits), axis=0)) if np.ptp(points) > ONE_POINT else 1
    if different == 1:
        return np.zeros(len(points), dtype=np.int64)
    model = KMeans(min(n_values, different), n_init=10, random_state=int(rng.integers(2**31)))
    return np.asarray(model.fit_predict(points), dtype=np.int64)


def _draws(points: FloatArray, n_values: int, rng: np.random.Generator) -> IntArray:
    """Of random roundings, the one whose relation YY' is nearest to the centred M."""
    best, nearest = np.zeros(len(points), dtype=np.int64), np.inf
    if np.ptp(points) <= ONE_POINT:
        return best
    for _ in range(DRAWS):
        labels = (points @ rng.standard_normal((points.shape[1], n_values))).argmax(1)
        counts = np.bincount(labels, minlength=n_values)
        sums = np.zeros((n_values, points.shape[1]))
        np.add.at(sums, labels, points)
        # |HYY'H - HMH|^2 less what does not depend on the labels.
        total = float(counts.sum())
        gram = np.diag(counts) - np.outer(counts, counts) / total
        distance = float(np.sum(gram * gram) - 2.0 * np.sum(sums * sums))
        if distance < nearest:
            best, nearest = labels, distance
    return best
