from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from partita.estimators.nearest_means import nearest_means


@pytest.mark.parametrize("convert", [np.asarray, sp.csr_matrix])
def test_every_row_is_nearest_to_the_weighted_mean_of_its_cluster(convert):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((60, 3)), rng.integers(1, 20, 60) / 3.0
    found = nearest_means(convert(X), 4, np.random.default_rng(1), weights)
    means = np.array([np.average(X[found == k], axis=0, weights=weights[found == k]) for k in range(4)])
    assert np.array_equal(((X[:, None] - means) ** 2).sum(2).argmin(1), found)
    plain = nearest_means(convert(X), 4, np.random.default_rng(1))
    assert not np.array_equal(plain, found)


def test_clusters_that_lie_apart_are_found():
    rng = np.random.default_rng(0)
    side = rng.integers(2, size=50)
    found = nearest_means(10.0 * side[:, None] + rng.standard_normal((50, 2)), 2, rng)
    assert np.array_equal(found, side) or np.array_equal(found, 1 - side)


def test_fewer_rows_than_means_and_equal_rows():
    rng = np.random.default_rng(0)
    assert sorted(nearest_means(np.array([[1.0], [5.0]]), 3, rng)) == [0, 1]
    assert nearest_means(np.ones((4, 2)), 2, rng).tolist() == [0] * 4
