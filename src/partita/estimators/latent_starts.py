"""Starts for models with hidden states: all must differ, or they stay the same for ever."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import KMeans
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.sparsefuncs import mean_variance_axis

from ..core.results import FloatArray, IntArray
from ..features import LinearMap
from ..objectives import LatentLikelihood, Likelihood
from ..solvers import minimize

#: Newton steps from clusters to weights, and the penalty meanwhile, for each example and columns of variance one: enough to
#: tell clusters apart, without the certainty of weights that grow without bound.
STEPS, PENALTY = 5, 0.01
#: Size of the random weights added to those of clusters: states that got no cluster must differ too.
JITTER = 0.1


class Starts:
    """Draws starts for a mixture in each class, with scores of order one whatever the scale of the columns.

    Parameters
    ----------
    X : array or CSR matrix
        The data.
    Q : array, optional
        The feature map has the columns ``X Q``.
    objective : LatentLikelihood
        Its states are pairs (class, hidden), the hidden state last.
    n_hidden : int
    """

    def __init__(self, X: Any, Q: FloatArray | None, objective: LatentLikelihood, n_hidden: int) -> None:
        assert isinstance(objective.features, LinearMap)
        self.X, self.Q, self.objective, self.n_hidden = X, Q, objective, n_hidden
        self.features: LinearMap = objective.features
        w = objective.weights
        if sp.issparse(X):
            self.mean, variance = mean_variance_axis(X, axis=0, weights=w)
        else:
            self.mean = np.average(X, axis=0, weights=w)
            variance = np.average((X - self.mean) ** 2, axis=0, weights=w)
        if not self.features.intercept:
            variance = variance + self.mean**2
        self.variance = variance if Q is None else np.full(Q.shape[1], variance.mean())
        spread = np.sqrt(variance)
        self.inverse_spread = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0.0)

    def random(self, rng: np.random.Generator) -> FloatArray:
        """Normal weights, scores of about one."""
        shape = (self.features.n_outputs, self.X.shape[1])
        coefficients = rng.standard_normal(shape) * self.inverse_spread / np.sqrt(shape[1])
        intercepts = 0.1 * rng.standard_normal(shape[0]) - coefficients @ self.mean
        return self.pack(coefficients, intercepts)

    def pack(self, coefficients: FloatArray, intercepts: FloatArray) -> FloatArray:
        """The flat vector of weights on the columns of X."""
        return self.features.pack(coefficients if self.Q is None else coefficients @ self.Q, intercepts)

    def kmeans(self, rng: np.random.Generator) -> FloatArray:
        """The clusters of each class as its hidden states, and a rough softmax regression onto them.

        Only rows of which one class is known take part.
        """
        o = self.objective
        jitter = JITTER * self.random(rng)
        classes = o.allowed[:, :: self.n_hidden]
        clear = (classes.sum(axis=1) == 1) & (o.weights > 0.0)
        if not clear.any():
            return self.random(rng)
        scaled = self.X.multiply(self.inverse_spread).tocsr() if sp.issparse(self.X) else self.X * self.inverse_spread
        states = np.zeros(len(clear), np.int64)
        for c in range(classes.shape[1]):
            rows = np.flatnonzero(clear & classes[:, c])
            if len(rows):
                states[rows] = c * self.n_hidden + self._clusters(scaled[rows], o.weights[rows], rng)
        weights = o.weights * clear
        columns = np.tile(PENALTY * weights.sum() * self.variance, (self.features.n_outputs, 1))
        penalty = o.penalty + self.features.pack(columns, np.zeros(len(columns)))
        known: Any = Likelihood(self.features, o.structure, states, weights=weights, penalty=penalty)
        return np.asarray(minimize(known, max_iter=STEPS, tol=0.0).parameters + jitter)

    def _clusters(self, X: Any, weights: FloatArray, rng: np.random.Generator) -> IntArray:
        seed = int(rng.integers(2**31 - 1))
        means = KMeans(min(self.n_hidden, X.shape[0]), n_init=1, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # fewer distinct rows than clusters
            return np.asarray(means.fit_predict(X, sample_weight=weights), dtype=np.int64)


def given_start(init: Any, classes: Any, n_hidden: int, n_columns: int, intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Coefficients and intercepts of an array that a user gave, one row for each state; equal rows are an error."""
    values = np.asarray(init)
    shape = (len(classes), n_hidden, n_columns + intercept)
    if values.dtype.kind not in "iuf" or values.shape != shape or not np.isfinite(values).all():
        raise ValueError(
            f"init must be 'random', 'kmeans' or a finite array of shape {shape} (classes, hidden states, features"
            f"{' and intercept' if intercept else ''}), got {values.dtype} of shape {values.shape}"
        )
    for label, rows in zip(classes.tolist(), values, strict=True):
        if len(np.unique(rows, axis=0)) < n_hidden:
            raise ValueError(
                f"init gives two hidden states of class {label!r} the same weights: their gradients are equal too, and they "
                "would stay the same. Add random numbers to one of them"
            )
    flat = values.reshape(-1, shape[2]).astype(np.float64)
    return flat[:, :n_columns], flat[:, n_columns] if intercept else np.zeros(len(flat))
