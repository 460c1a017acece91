"""Starts for models with hidden states: all must differ, or they stay the same for ever."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...core.results import FloatArray
from ...core.types import LabelArray
from ...estimators.nearest_means import nearest_means
from ...estimators.restarts import rough_fit
from ..features.linear import LinearMap
from ..features.standard_columns import StandardColumns
from ..objective.latent import LatentLikelihood
from ..objective.likelihood import Likelihood

#: Newton steps from clusters to weights, and the penalty meanwhile, for each example and columns of variance one: enough to
#: tell clusters apart, without the certainty of weights that grow without bound.
STEPS, PENALTY = 5, 0.01
#: Size of the random weights added to those of clusters: states that got no cluster must differ too.
JITTER = 0.1


class Starts:
    """Draws starts for a mixture in each class, with scores of order one whatever the scale of the columns.

    Parameters
    ----------
    columns : StandardColumns
        The data.
    objective : LatentLikelihood
        On the rows of these; its states are pairs (class, hidden), the hidden state last.
    n_hidden : int
    """

    def __init__(self, columns: StandardColumns, objective: LatentLikelihood, n_hidden: int) -> None:
        assert isinstance(objective.features, LinearMap)
        self.columns: StandardColumns = columns
        self.objective: LatentLikelihood = objective
        self.n_hidden: int = n_hidden
        self.features: LinearMap = objective.features

    def random(self, rng: np.random.Generator) -> FloatArray:
        """Normal weights, scores of about one."""
        varies, Q = self.columns.varies, self.columns.Q
        coefficients = rng.standard_normal((self.features.n_outputs, len(varies))) * varies / np.sqrt(len(varies))
        intercepts = 0.1 * rng.standard_normal(len(coefficients))
        return self.features.pack(coefficients if Q is None else coefficients @ Q, intercepts)

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
        states = np.zeros(len(clear), np.int64)
        for c in range(classes.shape[1]):
            rows = np.flatnonzero(clear & classes[:, c])
            if len(rows):
                states[rows] = c * self.n_hidden + nearest_means(
                    self.columns.rows[rows], self.n_hidden, rng, o.weights[rows]
                )
        weights = o.weights * clear
        penalty = o.penalty.copy()
        penalty[: self.features.n_coefficients] += PENALTY * weights.sum()
        known: Any = Likelihood(self.features, o.structure, states, weights=weights, penalty=penalty)
        return rough_fit(known, None, "auto", STEPS, 0.0) + jitter


def given_start(
    init: ArrayLike, classes: LabelArray, n_hidden: int, n_columns: int, intercept: bool
) -> tuple[FloatArray, FloatArray]:
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
