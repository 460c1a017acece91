"""K-means that gives the same clusters at any number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.cluster import kmeans_plusplus

from ..core.results import FloatArray, IntArray

#: Most iterations.
MEANS_ITER = 50


def nearest_means(X: Any, count: int, random: np.random.Generator, weights: FloatArray | None = None) -> IntArray:
    """Which of at most `count` means each row of an array or a CSR matrix is nearest to.

    Scikit-learn's k-means adds up in an order that threads decide.
    """
    rows, count = np.arange(X.shape[0]), min(count, X.shape[0])
    w = np.ones(len(rows)) if weights is None else weights
    means = kmeans_plusplus(X, count, sample_weight=w, random_state=int(random.integers(2**31)))[0]
    nearest = np.full(len(rows), -1)
    for _ in range(MEANS_ITER):
        before, nearest = nearest, (0.5 * (means**2).sum(1) - X @ means.T).argmin(1)
        if np.array_equal(before, nearest):
            break
        sizes = np.bincount(nearest, weights=w, minlength=count)[:, None]
        sums = sp.csr_matrix((w, (nearest, rows)), shape=(count, len(rows))) @ X
        sums = sums.toarray() if sp.issparse(sums) else sums
        means = np.where(sizes > 0.0, sums / np.where(sizes > 0.0, sizes, 1.0), means)
    return nearest
